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
import hashlib
import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, ParamSpec, cast

from followup import ContactInput, CoverageInput, DoctorInput, EventInput, EventSourceInput, PatientInput, SenderInput
from followup._core.api_rules import DoctorId, EventType, NonEmpty
from followup._core.codec.encode import Encoder, encoder_for
from followup._core.codec.kinds import camel, kind_of, kinds_in
from followup._core.operations import Described
from followup._core.time import new_uuid
from followup._core.tracebacks import clears_frames
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

        # Not `declared`, which `wraps` has put there: help() would show its annotations with all their rules.
        vars(build).update(__wrapped__=Described(declared), one_of=one_of or {})
        parameters = inspect.signature(declared).parameters.values()
        required = {each.name for each in parameters if each.default is inspect.Parameter.empty}
        return build

    return make


def _assembled(type: EventType, fields_of: str | None, encoded: Mapping[str, Any]) -> EventInput:
    data = {camel(name): value for name, value in encoded.items() if name not in _ENVELOPE}
    if fields_of is not None:
        # As section 6.1 has it for a visit: the patient stands beside the object.
        patient = {"patient": data.pop("patient")} if "patient" in data else {}
        data = {**patient, fields_of: data}
    made = {"id": encoded["id"] if "id" in encoded else str(new_uuid()), "type": type, "data": data}
    return cast("EventInput", made | {name: value for name, value in encoded.items() if name in _ENVELOPE})


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


IdPart = str | int | float | Decimal | date | time | Mapping[str, Any] | list[Any] | tuple[Any, ...]
"""What ``id_of`` takes; ``datetime`` and ``bool`` are a ``date`` and an ``int``."""

_DEEPEST = 50

_VALID = "text, a number, a date, an aware datetime, a time, or a dict or list of these"


@clears_frames
def id_of(*parts: IdPart) -> str:
    """Return an id for an event, made from what the event states.

    The same parts have the same id, in every process and on every machine; other parts have another id. Begin with a
    word that names the kind of thing, and pass all that may change, such as ``id_of("patient", "H-1", patient)``.

    The order of the keys of a dict does not matter, and a key whose value is None counts as omitted. Equal numbers have
    one id, and so have equal instants in two time zones. Text is compared as it is: ``"1"`` is not ``1``, and a time
    that is written as text is not a ``datetime``.

    Args:
        parts: one or more of text, numbers, dates, aware datetimes, times, and dicts and lists of these. Their order
            matters.

    Returns:
        40 hexadecimal digits, a hash: the id shows nothing of the parts. Like any hash, it confirms a guess of all of
        them.

    Raises:
        TypeError, ValueError: a part is something else, or a naive datetime; the message names it.
    """
    if not parts:
        raise ValueError("id_of needs at least one part")
    stated = [_stated(part, f"parts[{index}]", 0) for index, part in enumerate(parts)]
    text = json.dumps(stated, sort_keys=True, separators=(",", ":"))
    # 160 bits: no two states share an id by chance.
    return hashlib.sha256(text.encode()).hexdigest()[:40]


def _stated(value: object, path: str, depth: int) -> Any:
    """Return a value as JSON that is different for different values, whatever their types."""
    if depth > _DEEPEST:
        raise ValueError(f"{path} is nested too deeply")
    if isinstance(value, str):
        return str.__str__(value)  # of an enum, its value
    if isinstance(value, bool):  # before int, as datetime before date: both are subclasses
        return ["bool", bool(value)]
    if isinstance(value, (int, float, Decimal)):
        return ["number", _number(value, path)]
    if isinstance(value, datetime):
        if value.utcoffset() is None:
            raise ValueError(f"{path} is a naive datetime: pass one with a time zone")
        try:
            return ["instant", value.astimezone(UTC).isoformat()]
        except OverflowError:
            problem = f"{path} is a time that UTC cannot express"
        raise ValueError(problem)
    if isinstance(value, (date, time)):
        return ["date" if isinstance(value, date) else "time", value.isoformat()]
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise TypeError(f"the keys of {path} must be text")
        there = ((key, each) for key, each in value.items() if each is not None)
        return {str.__str__(key): _stated(each, f"{path}.{key}", depth + 1) for key, each in there}
    if isinstance(value, (list, tuple)):
        return ["list", [_stated(each, f"{path}[{index}]", depth + 1) for index, each in enumerate(value)]]
    raise TypeError(f"{path} must be {_VALID}, not {kind_of(value)}")


def _number(value: float | Decimal, path: str) -> str:
    """Return a number as text, the same for equal numbers of all types."""
    # By its repr 0.1 is the decimal that was meant, and not the binary fraction next to it.
    exact = Decimal(repr(float(value))) if isinstance(value, float) else Decimal(value)
    if not exact.is_finite():
        raise ValueError(f"{path} must be a finite number")
    sign, digits, exponent = exact.as_tuple()
    significant = "".join(map(str, digits)).lstrip("0")
    shortest = significant.rstrip("0")
    assert isinstance(exponent, int)
    return f"{'-' * sign}{shortest}e{exponent + len(significant) - len(shortest)}" if shortest else "0"
