"""The promises of an integration, and their check: what the clinic believes against what is at the service."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from followup import Appointment
from followup_mockserver.simulation.ledger import ABSENT, Entry, State
from followup_mockserver.simulation.story import time_text

STARTS = "The clinic starts, also after a crash, unless a fault prevents it."
KEEPS_BOOKINGS = "What book(), reschedule() and cancel() did when they returned is in bookings()."
REACHES_SERVICE = "Every booking that the clinic believes in is at the service exactly once, at its last time."
CANCELS = "A booking that the clinic cancelled is cancelled at the service, or never got there."
NOTHING_UNKNOWN = "Nothing is at the service that the clinic does not know."
HANDLES_ONCE = "The work of every genuine webhook event is done exactly once."
HANDLES_NO_FORGERY = "The work of a forged webhook is never done."
COMES_TO_REST = "When all faults have ended, work() comes to rest."


class PromiseBroken(Exception):
    """A promise that was broken; its cause is the exception of the user's code that led to it, if any.

    Attributes:
        promise: the promise.
        detail: what is wrong, in one or several sentences.
    """

    def __init__(self, promise: str, detail: str) -> None:
        super().__init__(promise)
        self.promise = promise
        self.detail = detail


def check_bookings(
    entries: Mapping[str, Entry], believed: Mapping[str, datetime | None], appointments: Sequence[Appointment]
) -> None:
    """Check the bookings of the clinic against the ledger, and the appointments at the service against both.

    Args:
        entries: the bookings that persons made, by external id.
        believed: what ``bookings()`` returned.
        appointments: the appointments at the service.

    Raises:
        PromiseBroken: the first promise that is broken.
    """
    for external_id, entry in entries.items():
        state: State = believed.get(external_id, ABSENT)
        if not entry.allows(state):
            right = " or ".join(_text(each) for each in entry.possible)
            raise PromiseBroken(KEEPS_BOOKINGS, f"{external_id}: bookings() says {_text(state)}; right is {right}.")
    for external_id in believed:
        if external_id not in entries:
            which = f"{external_id!r}, which is the external_id of no booking; use that of book()"
            raise PromiseBroken(REACHES_SERVICE, f"bookings() has {which}.")
    at_service: dict[str | None, list[Appointment]] = {}
    for appointment in appointments:
        at_service.setdefault(appointment.external_id, []).append(appointment)
    for external_id in believed:
        _check_booking(external_id, believed[external_id], at_service.get(external_id, []), at_service.get(None, []))
        at_service.pop(external_id, None)
    for unknown, found in at_service.items():
        which = "an appointment without an external id" if unknown is None else unknown
        raise PromiseBroken(NOTHING_UNKNOWN, f"The service has {which}: {_texts(found)}; bookings() does not have it.")


def _check_booking(
    external_id: str, start_at: datetime | None, found: Sequence[Appointment], nameless: Sequence[Appointment]
) -> None:
    states = f"the service has {_texts(found)}"
    if nameless and not found:
        states += f" under this external id, but without an external id {_texts(nameless)}"
    if start_at is None:
        if any(each.status != "cancelled" for each in found):
            raise PromiseBroken(CANCELS, f"{external_id}: bookings() says cancelled; {states}.")
    elif [_state(each) for each in found] != [start_at]:
        raise PromiseBroken(REACHES_SERVICE, f"{external_id}: bookings() says {_text(start_at)}; {states}.")


def check_events(handled: Sequence[str], genuine: Mapping[str, str], forged: Collection[str]) -> None:
    """Check that the work of the genuine events, and of no others, was done exactly once.

    Args:
        handled: what ``handled()`` returned.
        genuine: descriptions of the genuine events, by id.
        forged: ids of invented events.

    Raises:
        PromiseBroken: the work of an event was not done, done more than once, or done for no genuine event.
    """
    times = Counter(handled)
    for event_id in times:
        if event_id in forged:
            raise PromiseBroken(HANDLES_NO_FORGERY, f"handled() has {event_id}, the event of a forged webhook.")
        if event_id not in genuine:
            which = f"{event_id!r}, which is the id of no webhook event; use event.id (whd_…)"
            raise PromiseBroken(HANDLES_ONCE, f"handled() has {which}.")
    for event_id, what in genuine.items():
        if times[event_id] != 1:
            done = "was not done" if times[event_id] == 0 else f"was done {times[event_id]} times"
            raise PromiseBroken(HANDLES_ONCE, f"The work of {what} ({event_id}) {done}.")


def _state(appointment: Appointment) -> State:
    return None if appointment.status == "cancelled" else appointment.start_at


def _texts(appointments: Sequence[Appointment]) -> str:
    return " and ".join(_text(_state(each)) for each in appointments) or "nothing"


def _text(state: State) -> str:
    if isinstance(state, datetime):
        return time_text(state)
    return "cancelled" if state is None else "nothing"
