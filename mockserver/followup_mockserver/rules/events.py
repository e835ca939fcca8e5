"""Inbound events (specification, sections 4 and 6.1): each is processed on its own, through the resources' rules."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from followup import Appointment, Event, EventBatch, EventOutcome, EventResult
from followup.contract import MAX_EVENTS_PER_BATCH, PatientId
from followup.operation import Declaration
from followup.resources.appointments import Appointments
from followup.resources.events import EventInput
from followup.resources.intake_requests import IntakeRequests
from followup.resources.patients import PatientInput
from followup.resources.treatments import Treatments
from followup.resources.visits import Visits
from followup.wire import encode
from followup_mockserver.errors import ServiceError, invalid, missing
from followup_mockserver.rules import appointments, intake_requests, patients, treatments, visits
from followup_mockserver.rules.paging import Listed, page
from followup_mockserver.shapes import Shape, Validator, object_shape, shape_of
from followup_mockserver.world import World

PatientReference = PatientId | PatientInput


def _fields_of(declaration: Declaration, *, without: Sequence[str] = ()) -> Shape:
    """The shape of an object with the parameters of an operation."""
    parameters = [each for each in declaration.parameters if each.place == "body" and each.name not in without]
    return object_shape(
        {each.name: each.annotation for each in parameters}, [each.name for each in parameters if each.required]
    )


def _data(**fields: Any) -> Shape:
    return object_shape(fields, list(fields))


class _Kind:
    """How the data of one event type is checked, and what it does.

    Args:
        shape: of the data; keys that it does not know are kept, and mean nothing.
        apply: does it, from the checked data; returns the object that it produced, if any.
    """

    def __init__(self, shape: Shape, apply: Callable[[World, Any], Any]) -> None:
        self._validator = Validator(shape.schema, refuse_unknown=False)
        self._convert = shape.convert
        self.apply = apply

    def checked(self, data: Mapping[str, Any]) -> Any:
        try:
            self._validator.check(data)
        except ServiceError as error:
            raise error.under("data") from None
        return self._convert(data)


def _merge_shapes(**parts: Shape) -> Shape:
    """An object of objects, each of its own shape, all required."""
    schema = {
        "type": "object",
        "properties": {name: part.schema for name, part in parts.items()},
        "required": [*parts],
    }
    return Shape(schema, lambda data: {name: part.convert(data[name]) for name, part in parts.items()})


def _create_appointment(world: World, data: Any) -> Any:
    return appointments.create(world, patient=data["patient"], **data["appointment"])


def _complete_visit(world: World, data: Any) -> Any:
    return visits.create(world, patient=data["patient"], **data["visit"])


def _prescribe(world: World, data: Any) -> Any:
    return treatments.create(world, patient=data["patient"], **data["treatment"])


def _request_intake(world: World, data: Any) -> Any:
    return intake_requests.create(world, **data)


def _upsert_patient(world: World, data: Any) -> Any:
    return patients.upsert(world, patients.normalized(world, data["patient"], "data.patient"))


def _reschedule(world: World, data: Any) -> Any:
    return appointments.update(world, _named(world, data), start_at=data["appointment"]["start_at"])


def _cancel(world: World, data: Any) -> Any:
    return appointments.cancel(world, _named(world, data), reason=data["appointment"].get("reason"))


def _named(world: World, data: Any) -> Appointment:
    appointment = world.appointments.find("external_id", data["appointment"]["external_id"])
    if appointment is None:
        raise missing("appointment", status=400, param="appointment.externalId")
    return appointment


_PATIENT = shape_of(PatientReference)
_KINDS: dict[str, _Kind] = {
    "intake.requested": _Kind(_fields_of(IntakeRequests.create), _request_intake),
    "patient.upserted": _Kind(_merge_shapes(patient=shape_of(PatientInput)), _upsert_patient),
    "appointment.created": _Kind(
        _merge_shapes(patient=_PATIENT, appointment=_fields_of(Appointments.create, without=("patient",))),
        _create_appointment,
    ),
    "appointment.rescheduled": _Kind(
        _merge_shapes(appointment=_data(external_id=str, start_at=datetime | str)), _reschedule
    ),
    "appointment.cancelled": _Kind(
        _merge_shapes(appointment=object_shape({"external_id": str, "reason": str}, ["external_id"])), _cancel
    ),
    "visit.completed": _Kind(
        _merge_shapes(patient=_PATIENT, visit=_fields_of(Visits.create, without=("patient",))), _complete_visit
    ),
    "treatment.prescribed": _Kind(
        _merge_shapes(patient=_PATIENT, treatment=_fields_of(Treatments.create, without=("patient",))), _prescribe
    ),
}
"""What each type does. ``order.issued`` is accepted and has no effect yet."""

ENVELOPE = shape_of(EventInput)
ENVELOPE.schema["properties"]["id"]["minLength"] = 1
ENVELOPE.schema["properties"]["schemaVersion"]["const"] = 1
_envelope_validators = {refuse: Validator(ENVELOPE.schema, refuse_unknown=refuse) for refuse in (True, False)}


def create(world: World, *, body: Any) -> EventBatch:
    """Process one event, an array of them, or an object that holds one under ``events``.

    Raises:
        ServiceError: none was accepted: 400 if all were invalid, else 500; its body carries the results.
    """
    sent = _events_in(body, refuse_unknown=world.options.refuse_unknown_fields)
    results = [_process(world, raw, path) for path, raw in sent]
    if any(result.accepted for result in results):
        return EventBatch(object="event_batch", results=results)
    detail = {"object": "event_batch", "results": encode(results)}
    if all(result.status == "invalid" for result in results):
        raise ServiceError(400, "invalid_request_error", "events_invalid", "No event is valid.", body=detail)
    raise ServiceError(500, "api_error", "events_failed", "No event could be processed.", body=detail)


def list_(world: World, **query: Any) -> Listed[Event]:
    """A page of what came in."""
    return page(world.events, query, where=("type", "status", "source"))


def _events_in(body: Any, *, refuse_unknown: bool) -> list[tuple[str, Any]]:
    """The events of a request, each with the path where it stands."""
    if isinstance(body, dict) and "events" in body:
        beside = [key for key in body if key != "events"]
        if beside and refuse_unknown:
            raise invalid("parameter_unknown", "There is no such field beside events.", beside[0])
        events = body["events"]
    elif isinstance(body, dict):
        return [("", body)]
    else:
        events = body
    if not isinstance(events, list):
        raise invalid("parameter_invalid", "This must be an event, or an array of events.", "events")
    if not 1 <= len(events) <= MAX_EVENTS_PER_BATCH:
        raise invalid("parameter_invalid", f"This must be an array of 1 to {MAX_EVENTS_PER_BATCH} events.", "events")
    return [(f"events[{position}]", event) for position, event in enumerate(events)]


def _process(world: World, raw: Any, path: str) -> EventResult:
    try:
        _envelope_validators[world.options.refuse_unknown_fields].check(raw)
        event = ENVELOPE.convert(raw)
        kind = _KINDS.get(event["type"])
        data = kind.checked(event["data"]) if kind else None
    except ServiceError as error:
        given = raw.get("id") if isinstance(raw, dict) else None
        return EventResult(
            id=given if isinstance(given, str) else "", accepted=False, status="invalid", error=_told(error, path)
        )
    stored = world.events.find("origin", ("api", event["id"]))
    if stored is not None and stored.status != "failed":
        return EventResult(id=event["id"], accepted=True, status="duplicate", event=stored.id, result=stored.result)
    return _apply(world, event, kind, data, stored, path)


def _apply(world: World, event: Any, kind: _Kind | None, data: Any, stored: Event | None, path: str) -> EventResult:
    status, outcome, problem = "unhandled", None, None
    if kind is not None:
        try:
            produced = kind.apply(world, data)
            status, outcome = "processed", EventOutcome(object=produced.object, id=produced.id)
        except ServiceError as error:
            # A value that can never be right is invalid, and is not stored; what may be right later has failed.
            problem = _told(error if _in_data(error) else error.under("data"), path)
            if error.code.startswith("parameter_"):
                return EventResult(id=event["id"], accepted=False, status="invalid", error=problem)
            status = "failed"
    stored = _store(world, event, stored, status=status, result=outcome, error=problem)
    return EventResult(
        id=event["id"],
        accepted=status != "failed",
        status=status,
        event=stored.id,
        result=outcome,
        error=problem,
    )


def _in_data(error: ServiceError) -> bool:
    return error.param is not None and error.param.split(".")[0] == "data"


def _store(world: World, event: Any, stored: Event | None, **outcome: Any) -> Event:
    now = world.now()
    facts = {
        "type": event["type"],
        "data": event["data"],
        "occurred_at": event.get("occurred_at", now),
        "processed_at": None if outcome["status"] == "failed" else now,
        **outcome,
    }
    if stored is not None:
        world.events.update(stored, **facts)
        return stored
    stored = Event(
        id=world.ids.new("evt_"),
        object="event",
        source="api",
        source_ref=event["id"],
        received_at=now,
        **facts,
    )
    world.events.add(stored)
    return stored


def _told(error: ServiceError, path: str) -> str:
    where = ".".join(part for part in (path, error.param) if part)
    return f"{where}: {error.message}" if where else error.message
