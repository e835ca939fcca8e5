"""Build inbound events, one function for each type, checked like the operations (specification, section 6.1).

Each function returns an ``EventInput`` for ``client.events.create`` or ``client.events.send_all``::

    from followup import inbound

    event = inbound.appointment_rescheduled(external_id="T-1042", start_at=new_start)

Arguments are the fields of the event in snake_case; an optional argument that is None is omitted, as is one that is not
passed. All functions also take:

- ``id``: your id of the event, its idempotency key; a random UUID when omitted. ``id_of`` makes one from its state.
- ``occurred_at``: time of the event, an aware ``datetime`` or an ISO 8601 string; the time of arrival when omitted.
- ``source``: the system that the event comes from, for information only.
"""

# pyright: reportReturnType=false

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, ParamSpec

from followup import ContactInput, CoverageInput, DoctorInput, EventInput, EventSourceInput, PatientInput, SenderInput
from followup._core.api_rules import DoctorId, EventType, NonEmpty
from followup._core.codec.encode import Encoder, encoder_for
from followup._core.codec.ids import id_of as id_of
from followup._core.codec.kinds import camel, kinds_in
from followup._core.declarations.operations import Described
from followup._core.privacy.frames import clears_frames
from followup._core.time import new_uuid
from followup.resources.intake_requests import IDENTIFYING
from followup.resources.treatments import TreatmentKind

P = ParamSpec("P")
Builder = Callable[P, EventInput]

_ENVELOPE = ("id", "occurred_at", "source")
"""The parameters that are keys of the event; the others are part of its data."""


def event(
    type: EventType, *, fields_of: str | None = None, one_of: Mapping[str, tuple[str, ...]] | None = None
) -> Callable[[Builder[P]], Builder[P]]:
    """Return a decorator that turns a function without a body into a builder of events.

    Args:
        type: the event type.
        fields_of: name of an object in the data, such as ``appointment``. The arguments become its fields, except for
            ``patient``, which is a key of the data itself. None if all arguments are keys of the data.
        one_of: the arguments of which at least one is needed, with at least one of these keys.
    """

    def make(declared: Builder[P]) -> Builder[P]:
        @functools.cache
        def encoders() -> dict[str, Encoder]:
            return {name: encoder_for(each) for name, each in kinds_in(declared).items()}

        @clears_frames
        @functools.wraps(declared)
        def build(*args: P.args, **kwargs: P.kwargs) -> EventInput:
            declared(*args, **kwargs)  # it has no body, so this only checks the arguments
            encoded = {
                name: encoders()[name](value, name)
                for name, value in kwargs.items()
                if value is not None or name in required
            }
            return _assembled(type, fields_of, encoded)

        vars(build).update(__wrapped__=Described(declared), one_of=one_of or {})
        parameters = inspect.signature(declared).parameters.values()
        required = {each.name for each in parameters if each.default is inspect.Parameter.empty}
        return build

    return make


def _assembled(type: EventType, fields_of: str | None, encoded: Mapping[str, Any]) -> EventInput:
    data = {camel(name): value for name, value in encoded.items() if name not in _ENVELOPE}
    if fields_of is not None:
        patient = {"patient": data.pop("patient")} if "patient" in data else {}
        data = {**patient, fields_of: data}
    built: EventInput = {"id": encoded["id"] if "id" in encoded else str(new_uuid()), "type": type, "data": data}
    if "occurred_at" in encoded:
        built["occurred_at"] = encoded["occurred_at"]
    if "source" in encoded:
        built["source"] = encoded["source"]
    return built


__all__ = [
    "appointment_cancelled",
    "appointment_created",
    "appointment_rescheduled",
    "intake_requested",
    "order_issued",
    "patient_upserted",
    "treatment_prescribed",
    "visit_completed",
]


@event("intake.requested", one_of=IDENTIFYING)
def intake_requested(
    *,
    id: NonEmpty | None = None,
    patient: PatientInput | None = None,
    contacts: Iterable[ContactInput] | None = None,
    coverage: CoverageInput | None = None,
    address: str | None = None,
    requested_service: str | None = None,
    summary: str | None = None,
    hospitalized: bool | None = None,
    sender: SenderInput | None = None,
    occurred_at: datetime | str | None = None,
    source: EventSourceInput | None = None,
) -> EventInput:
    """Return an ``intake.requested`` event, which opens an intake request.

    At least a name, document or phone of the patient or of a contact is required. The service completes the other data
    by messaging app.

    Args:
        id: your id of the event; a random UUID when omitted.
        patient: data of the patient.
        contacts: people whom the service may ask about the patient.
        coverage: insurance coverage.
        address: the patient's address.
        requested_service: the service requested.
        summary: administrative summary, without clinical content.
        hospitalized: whether the patient is in hospital.
        sender: the person or organization that submits the request.
        occurred_at: time at which the event happened; an aware ``datetime`` or an ISO 8601 string.
        source: the system that the event comes from, for information only.

    Returns:
        The event.

    Raises:
        TypeError, ValueError: an argument is missing or invalid; the message names it.
    """


@event("patient.upserted")
def patient_upserted(
    *,
    id: NonEmpty | None = None,
    patient: PatientInput,
    occurred_at: datetime | str | None = None,
    source: EventSourceInput | None = None,
) -> EventInput:
    """Return a ``patient.upserted`` event, which creates or updates a patient, found by phone, DNI or external id.

    Args:
        id: your id of the event; a random UUID when omitted.
        patient: data of the patient.
        occurred_at: time at which the event happened; an aware ``datetime`` or an ISO 8601 string.
        source: the system that the event comes from, for information only.

    Returns:
        The event.

    Raises:
        TypeError, ValueError: an argument is missing or invalid; the message names it.
    """


@event("appointment.created", fields_of="appointment")
def appointment_created(
    *,
    id: NonEmpty | None = None,
    patient: PatientInput,
    start_at: datetime | str,
    external_id: NonEmpty | None = None,
    type: str | None = None,
    doctor: DoctorId | DoctorInput | None = None,
    occurred_at: datetime | str | None = None,
    source: EventSourceInput | None = None,
) -> EventInput:
    """Return an ``appointment.created`` event, which creates an appointment and schedules its reminders.

    Args:
        id: your id of the event; a random UUID when omitted.
        patient: data by which to find or create the patient; an event takes no patient id.
        start_at: start of the appointment; an aware ``datetime`` or an ISO 8601 string.
        external_id: the appointment's id in your system. Without it, no later event can reschedule or cancel it.
        type: type of appointment or procedure.
        doctor: id of the doctor, or data by which to find them.
        occurred_at: time at which the event happened; an aware ``datetime`` or an ISO 8601 string.
        source: the system that the event comes from, for information only.

    Returns:
        The event.

    Raises:
        TypeError, ValueError: an argument is missing or invalid; the message names it.
    """


@event("appointment.rescheduled", fields_of="appointment")
def appointment_rescheduled(
    *,
    id: NonEmpty | None = None,
    external_id: NonEmpty,
    start_at: datetime | str,
    occurred_at: datetime | str | None = None,
    source: EventSourceInput | None = None,
) -> EventInput:
    """Return an ``appointment.rescheduled`` event, which changes the time of an appointment and of its reminders.

    Args:
        id: your id of the event; a random UUID when omitted.
        external_id: the appointment's id in your system.
        start_at: new start of the appointment; an aware ``datetime`` or an ISO 8601 string.
        occurred_at: time at which the event happened; an aware ``datetime`` or an ISO 8601 string.
        source: the system that the event comes from, for information only.

    Returns:
        The event.

    Raises:
        TypeError, ValueError: an argument is missing or invalid; the message names it.
    """


@event("appointment.cancelled", fields_of="appointment")
def appointment_cancelled(
    *,
    id: NonEmpty | None = None,
    external_id: NonEmpty,
    reason: str | None = None,
    occurred_at: datetime | str | None = None,
    source: EventSourceInput | None = None,
) -> EventInput:
    """Return an ``appointment.cancelled`` event, which cancels an appointment and removes its pending reminders.

    Args:
        id: your id of the event; a random UUID when omitted.
        external_id: the appointment's id in your system.
        reason: reason for the cancellation.
        occurred_at: time at which the event happened; an aware ``datetime`` or an ISO 8601 string.
        source: the system that the event comes from, for information only.

    Returns:
        The event.

    Raises:
        TypeError, ValueError: an argument is missing or invalid; the message names it.
    """


@event("visit.completed", fields_of="visit")
def visit_completed(
    *,
    id: NonEmpty | None = None,
    patient: PatientInput,
    visited_at: datetime | str,
    external_id: NonEmpty | None = None,
    type: str | None = None,
    doctor: DoctorId | DoctorInput | None = None,
    diagnosis: str | None = None,
    notes: str | None = None,
    appointment: str | None = None,
    occurred_at: datetime | str | None = None,
    source: EventSourceInput | None = None,
) -> EventInput:
    """Return a ``visit.completed`` event, which records an attended visit and starts the post-visit follow-up.

    Args:
        id: your id of the event; a random UUID when omitted.
        patient: data by which to find or create the patient; an event takes no patient id.
        visited_at: time of the visit; an aware ``datetime`` or an ISO 8601 string.
        external_id: the visit's id in your system.
        type: type of visit.
        doctor: id of the doctor, or data by which to find them.
        diagnosis: the doctor's diagnosis.
        notes: the doctor's notes.
        appointment: id or ``external_id`` of the appointment that this visit completes.
        occurred_at: time at which the event happened; an aware ``datetime`` or an ISO 8601 string.
        source: the system that the event comes from, for information only.

    Returns:
        The event.

    Raises:
        TypeError, ValueError: an argument is missing or invalid; the message names it.
    """


@event("treatment.prescribed", fields_of="treatment")
def treatment_prescribed(
    *,
    id: NonEmpty | None = None,
    patient: PatientInput,
    name: NonEmpty,
    kind: TreatmentKind | None = None,
    dosage: str | None = None,
    frequency: str | None = None,
    instructions: str | None = None,
    start_date: datetime | str | None = None,
    end_date: datetime | str | None = None,
    occurred_at: datetime | str | None = None,
    source: EventSourceInput | None = None,
) -> EventInput:
    """Return a ``treatment.prescribed`` event, which records a treatment of a patient.

    Args:
        id: your id of the event; a random UUID when omitted.
        patient: data by which to find or create the patient; an event takes no patient id.
        name: name of the treatment, for example of the drug.
        kind: kind of treatment; the service takes ``medication`` when omitted.
        dosage: dosage, for example ``1 tablet``.
        frequency: frequency, for example ``every 12 h``.
        instructions: the doctor's instructions.
        start_date: time at which it begins; an aware ``datetime`` or an ISO 8601 string.
        end_date: time at which it ends; an aware ``datetime`` or an ISO 8601 string.
        occurred_at: time at which the event happened; an aware ``datetime`` or an ISO 8601 string.
        source: the system that the event comes from, for information only.

    Returns:
        The event.

    Raises:
        TypeError, ValueError: an argument is missing or invalid; the message names it.
    """


@event("order.issued")
def order_issued(
    *,
    id: NonEmpty | None = None,
    patient: PatientInput,
    order: Mapping[str, Any],
    occurred_at: datetime | str | None = None,
    source: EventSourceInput | None = None,
) -> EventInput:
    """Return an ``order.issued`` event: an order for a laboratory, imaging, a referral or another service.

    The service stores it; it has no effect yet.

    Args:
        id: your id of the event; a random UUID when omitted.
        patient: data of the patient; an event takes no patient id.
        order: the order, with the keys that the service expects (camelCase); sent unchanged.
        occurred_at: time at which the event happened; an aware ``datetime`` or an ISO 8601 string.
        source: the system that the event comes from, for information only.

    Returns:
        The event.

    Raises:
        TypeError, ValueError: an argument is missing or invalid; the message names it.
    """
