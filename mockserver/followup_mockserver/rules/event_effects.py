"""The effects of inbound events, by event type: each calls the rule of a resource (specification, section 6.1).

The ``data`` of an event is any JSON object, in which some keys have a meaning.
"""

import functools
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

import attrs

from followup import Appointment, Patient, PatientInput
from followup import _for_mockserver as sdk
from followup_mockserver.rules import appointments, intake_requests, patients, treatments, visits
from followup_mockserver.rules.patients import PatientReference
from followup_mockserver.world.schema.errors import ServiceError, invalid, missing
from followup_mockserver.world.schema.shapes import object_shape, shape_of, shape_of_parameters
from followup_mockserver.world.schema.validation import Path, Reading, Shape, dotted, object_of
from followup_mockserver.world.state.tenant import Tenant


@attrs.frozen(eq=False, repr=False)
class Effect:
    """The effect of one event type, and its data. Keys that the shape does not know are stored, and not read.

    Attributes:
        shape: the shape of the known part of the ``data``.
        apply: processes the event with the parsed data and the source of the event, and returns the object that was
            created or changed; None if the service stores the event only.
    """

    shape: Shape
    apply: Callable[[Tenant, Any, sdk.EventSource], Any] | None = None

    def parse(self, data: Mapping[str, Any], *, reject_mistaken: bool) -> tuple[Any, list[str]]:
        """Validate the data. A key whose value is null counts as omitted.

        Args:
            data: the ``data`` of the event, as the request has it.
            reject_mistaken: whether a key like ``full_name`` is an error where the schema knows ``fullName``, and a key
                beside the object that it belongs into.

        Returns:
            The arguments of the rule, and the paths of the keys that the schema does not know, such as ``data.doctor``.

        Raises:
            ServiceError: the data is invalid; the path of the field begins with ``data``.
        """
        unknown: list[tuple[Path, Shape]] = []
        how = Reading(reject_unknown=False, omit_nulls=True, unknown=unknown)
        try:
            return self.shape.read(data, how, ("data",)), [dotted(path) for path, _ in unknown]
        finally:
            # Also before another error: a misspelled key explains why a field is missing.
            for path, shape in unknown if reject_mistaken else ():
                _check_key(path, shape)


def without_nulls(value: Any) -> Any:
    """Return JSON without the keys whose value is null, at any depth."""
    if isinstance(value, Mapping):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def _check_key(path: Path, shape: Shape) -> None:
    """Raise an error if an unknown key is another spelling of a known one, or belongs into an object beside it."""
    (_, *place), key = path[:-1], str(path[-1])
    correct = [name for name in shape.fields if _letters(name) == _letters(key)]
    if not correct:
        correct = [dotted((*place, name, key)) for name, each in shape.fields.items() if key in _fields_in(each)]
    if correct:
        message = f"There is no such field; did you mean {' or '.join(correct)}?"
        raise invalid("parameter_unknown", message, dotted(path))


def _fields_in(shape: Shape) -> Mapping[str, Shape]:
    """Return the fields of a shape, or of the object among the members of a union."""
    return next((each.fields for each in shape.members if each.fields), shape.fields)


def _letters(key: str) -> str:
    return "".join(character for character in key if character.isalnum()).casefold()


_APPOINTMENT_SOURCES: Mapping[sdk.EventSource, sdk.AppointmentSource] = {
    "api": "api",
    "pms": "pms",
    "import": "pms",
    "email": "agent",
    "tool": "agent",
    "manual": "manual",
}
"""The source of an appointment, by the source of its event. The agent reads e-mails and uses tools."""

_VISIT_SOURCES: Mapping[sdk.EventSource, sdk.VisitSource] = {"pms": "pms", "import": "pms"}
"""The source of a visit, by the source of its event; ``manual`` for all others."""


def _create_appointment(tenant: Tenant, data: Any, source: sdk.EventSource) -> Any:
    return _create_resource(tenant, appointments.create, data, "appointment", source=_APPOINTMENT_SOURCES[source])


def _complete_visit(tenant: Tenant, data: Any, source: sdk.EventSource) -> Any:
    return _create_resource(tenant, visits.create, data, "visit", source=_VISIT_SOURCES.get(source, "manual"))


def _prescribe(tenant: Tenant, data: Any, _: sdk.EventSource) -> Any:
    return _create_resource(tenant, treatments.create, data, "treatment")


def _create_resource(tenant: Tenant, create: Callable[..., Any], data: Any, part: str, **source: Any) -> Any:
    """Create a resource from the data of an event, whose fields are under ``data[part]``."""
    try:
        return create(tenant, patient=data["patient"], found_by=patients.IN_EVENTS, **data[part], **source)
    except ServiceError as error:
        # Rules name fields as in the body of a request, where those of the resource are beside its patient.
        is_about_patient = (error.param or "").partition(".")[0] == "patient"
        raise error if is_about_patient else error.under(part) from None


def _upsert_patient(tenant: Tenant, data: Any, _: sdk.EventSource) -> Any:
    return PatientReference(tenant, data["patient"], found_by=patients.IN_EVENTS).resolve(patients.overwrite)


def _reschedule(tenant: Tenant, data: Any, _: sdk.EventSource) -> Any:
    return appointments.update(tenant, _find_appointment(tenant, data), start_at=data["appointment"]["start_at"])


def _cancel(tenant: Tenant, data: Any, _: sdk.EventSource) -> Any:
    return appointments.cancel(tenant, _find_appointment(tenant, data), reason=data["appointment"].get("reason"))


def _find_appointment(tenant: Tenant, data: Any) -> Appointment:
    appointment = tenant.appointments.find("external_id", data["appointment"]["external_id"])
    if appointment is None:
        raise missing("appointment", status=400, param="appointment.externalId")
    return appointment


def _fields_of(declaration: sdk.Declaration) -> Shape:
    """Return the shape of an object with the body parameters of an operation, except the patient."""
    return shape_of_parameters(
        each for each in declaration.parameters if each.place == "body" and each.name != "patient"
    )


def _object_of(parts: Mapping[str, Shape]) -> Shape:
    """Return the shape of an object that consists of these parts, all of them required."""
    return object_of(parts, [*parts], is_open=True)


def _effect(apply: Callable[[Tenant, Any, sdk.EventSource], Any], **parts: Shape) -> Effect:
    return Effect(_object_of(parts), apply)


def _appointment(fields: Mapping[str, Any], required: Iterable[str]) -> Shape:
    """Return the shape of an appointment that is identified by its external id."""
    kinds = {each.name: each.kinds for each in sdk.Appointments.create.parameters}
    return object_shape({"external_id": kinds["external_id"], **fields}, ["external_id", *required])


_TIME = datetime | str  # ``effects`` runs when it is first needed; freezegun may have replaced ``datetime`` by then


@functools.cache
def effects() -> Mapping[str, Effect]:
    """Return what each event type does. ``order.issued`` is accepted, and does nothing yet."""
    reference = shape_of(PatientInput)

    order = {"patient": Shape({"type": "object"}), "order": Shape({"type": "object"})}
    return {
        "intake.requested": Effect(
            shape_of_parameters(sdk.IntakeRequests.create.parameters),
            lambda tenant, data, _: intake_requests.create(tenant, **data),
        ),
        "patient.upserted": _effect(_upsert_patient, patient=reference),
        "appointment.created": _effect(
            _create_appointment, patient=reference, appointment=_fields_of(sdk.Appointments.create)
        ),
        "appointment.rescheduled": _effect(
            _reschedule, appointment=_appointment({"start_at": _TIME}, required=["start_at"])
        ),
        "appointment.cancelled": _effect(_cancel, appointment=_appointment({"reason": str}, required=[])),
        "visit.completed": _effect(_complete_visit, patient=reference, visit=_fields_of(sdk.Visits.create)),
        "treatment.prescribed": _effect(_prescribe, patient=reference, treatment=_fields_of(sdk.Treatments.create)),
        "order.issued": Effect(object_of(order, (), is_open=True)),
    }


def patient_of_order(tenant: Tenant, data: Mapping[str, Any]) -> Patient | None:
    """Return the patient of an ``order.issued``, who is not created; None if the data identifies nobody."""
    try:
        shape = _object_of({"patient": shape_of(PatientInput)})
        found = shape.argument_of(data, Reading(reject_unknown=False, omit_nulls=True))
        return PatientReference(tenant, found["patient"], found_by=patients.IN_EVENTS).patient
    except ServiceError:
        return None
