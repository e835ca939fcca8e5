"""The promises of an integration, their check, and the report of a history that breaks one.

What the clinic believes is compared with its ledger, and with what is at the service. The story of a history tells what
happened, in sentences that the developer of a clinic understands.
"""

import itertools
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

import attrs

from followup import Appointment
from followup_mockserver.lab.simulation.clinic import Booking
from followup_mockserver.lab.simulation.history import MAX_BOOKINGS, SLOTS, History, call_that_repeats, seed_of

# --- the ledger: what persons have asked for ---------------------------------------------------------------------

START = datetime(2040, 1, 2, 12, 0, tzinfo=UTC)
"""The time at which every history begins: in the future, because a clinic may reject bookings in the past."""

_FIRST_SLOT = START + timedelta(days=90)
_SLOT = timedelta(hours=24, minutes=30)
REPEATED = (
    datetime(2040, 3, 31, 14, 30, tzinfo=UTC),  # in the zone of the machine
    datetime(2040, 4, 8, 3, 30, tzinfo=UTC),  # in Chile
    datetime(2040, 10, 28, 1, 30, tzinfo=UTC),  # in the European Union and the United Kingdom
    datetime(2040, 11, 4, 6, 30, tzinfo=UTC),  # in New York
)
"""The last slots: their local time occurs twice, as the clocks go back, and they are at the second time."""

PERSONS = (
    ("José Núñez", "+5491155550101"),
    ("Zoë Núñez", "+5491155550101"),
    ("Müşerref Şahin", "+5491155550102"),
    ("Björn Ångström", "+5491155550103"),
    ("Nguyễn Thị Hoa", "+5491155550104"),
    ("François Lœuvrard", "+5491155550104"),
    ("Łucja Żółć", "+5491155550105"),
    ("María José Peña Ibáñez", "+5491155550106"),
    ("José Núñez", "+5491155550107"),
)

Operation = Literal["book", "reschedule", "cancel"]

ABSENT: Final = "absent"
"""The state of a booking that the clinic does not have."""

State = datetime | Literal["absent"] | None
"""A time; None for a cancelled booking; or ``ABSENT``."""


@attrs.define(eq=False)
class Entry:
    """One booking.

    Attributes:
        booking: as it was last asked for.
        possible: the states that are right.
        failed: the operation that failed last and has not been repeated; None if there is none.
        is_booked: whether ``book`` has returned.
        cancellation_began: whether somebody has tried to cancel it.
    """

    booking: Booking
    possible: list[State] = attrs.field(factory=lambda: [ABSENT])
    failed: Operation | None = None
    is_booked: bool = False
    cancellation_began: bool = False

    @property
    def can_change(self) -> bool:
        """Whether a person may move or cancel it."""
        return self.is_booked and not self.cancellation_began

    def allows(self, state: State) -> bool:
        """Return whether a state is right. A booking that need not be there may also be there as cancelled."""
        return state in self.possible or (state is None and ABSENT in self.possible)


class Ledger:
    """The bookings of a history, in the order in which they were made."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self._failed: list[Entry] = []

    def new(self, patient: int, slot: int) -> Entry | None:
        """Return an entry for a new booking; None if there are enough."""
        if len(self.entries) == MAX_BOOKINGS:
            return None
        name, phone = PERSONS[patient]
        external_id = f"B{len(self.entries) + 1}"
        booking = Booking(external_id=external_id, phone=phone, full_name=name, start_at=time_of(slot))
        return self.entries.setdefault(external_id, Entry(booking))

    def changeable(self, number: int) -> Entry | None:
        """Return one of the bookings that can be moved or cancelled; None if there is none."""
        found = [each for each in self.entries.values() if each.can_change]
        return found[number % len(found)] if found else None

    def failed(self) -> Entry | None:
        """Return the entry whose operation failed last and was not repeated; None if there is none."""
        return self._failed[-1] if self._failed else None

    def record(self, entry: Entry, operation: Operation, *, returned: bool) -> None:
        """Record the end of an operation on ``entry.booking``."""
        state = None if operation == "cancel" else entry.booking.start_at
        entry.cancellation_began |= operation == "cancel"
        if entry.failed is not None:
            self._failed.remove(entry)
        if returned:
            entry.possible, entry.failed, entry.is_booked = [state], None, True
            return
        self._failed.append(entry)
        entry.failed = operation
        if state not in entry.possible:
            entry.possible.append(state)


def time_of(slot: int) -> datetime:
    """Return the time of a slot."""
    repeated = slot - SLOTS + len(REPEATED)
    return _FIRST_SLOT + slot * _SLOT if repeated < 0 else REPEATED[repeated]


# --- the story -------------------------------------------------------------------------------------------------------


class Story:
    """Sentences, in the order of what happened. Sentences that repeat the one before them are counted instead."""

    def __init__(self) -> None:
        self._sentences: list[str] = []

    def add(self, sentence: str) -> None:
        """Add a sentence, which ends with a full stop."""
        self._sentences.append(sentence)

    def lines(self) -> list[str]:
        """Return the sentences, numbered from 1."""
        counted = [(each, len([*group])) for each, group in itertools.groupby(self._sentences)]
        return [
            f"{number}. {each}" if times == 1 else f"{number}. {each.removesuffix('.')} ({times} times)."
            for number, (each, times) in enumerate(counted, start=1)
        ]


def time_text(instant: datetime) -> str:
    """Return an instant as text, such as ``2040-04-01 12:00 UTC``; two different instants have different texts."""
    utc = instant.astimezone(UTC).replace(tzinfo=None)
    return f"{utc.isoformat(' ', 'auto' if utc.second or utc.microsecond else 'minutes')} UTC"


@attrs.frozen
class Finding:
    """What a history found.

    Attributes:
        promise: the promise that was broken.
        detail: what is wrong.
        story: what happened, in numbered lines.
        cause: the exception of the user's code that led to it; None if there is none.
    """

    promise: str
    detail: str
    story: list[str]
    cause: BaseException | None


def report_of(clinic: type, history: History, finding: Finding) -> str:
    """Return the message about a promise that was broken."""
    story = "\n".join(finding.story)
    repeat = f"Repeat this history (seed {seed_of(history)}) with:\n{call_that_repeats(clinic, history)}"
    promise = f"Promise: {finding.promise}\n{finding.detail}"
    summary = f"{finding.promise} {clinic.__name__} breaks this promise."  # pytest's last lines have its beginning
    return "\n\n".join([summary, story, promise, repeat])


STARTS = "The clinic starts, also after a crash, unless a fault prevents it."
KEEPS_BOOKINGS = "What book(), reschedule() and cancel() did when they returned is in bookings()."
REACHES_SERVICE = "Every booking that the clinic believes in is at the service exactly once, at its last time."
CANCELS = "A booking that the clinic cancelled is cancelled at the service, or never got there."
NOTHING_UNKNOWN = "Nothing is at the service that the clinic does not know."
FOR_ITS_PATIENT = "Every booking is at the service for the patient with its phone."
HANDLES_ONCE = "The work of every genuine webhook event is done exactly once."
HANDLES_NO_FORGERY = "The work of a forged webhook is never done."
RETURNS = "Every method of the clinic returns in the end."
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
    # First: a clinic that has lost a booking itself would also lack it at the service, which explains less.
    for external_id, entry in entries.items():
        state: State = believed.get(external_id, ABSENT)
        if not entry.allows(state):
            right = " or ".join(_text(each) for each in entry.possible)
            detail = f"{external_id}: bookings() says {_text(state)}; right is {right}."
            raise PromiseBroken(KEEPS_BOOKINGS, detail + _zone_note(state, entry.possible))
    for external_id in believed:
        if external_id not in entries:
            which = f"{external_id!r}, which is the external_id of no booking; use that of book()"
            raise PromiseBroken(REACHES_SERVICE, f"bookings() has {which}.")
    at_service: dict[str | None, list[Appointment]] = defaultdict(list)
    for appointment in appointments:
        at_service[appointment.external_id].append(appointment)
    for external_id, start_at in believed.items():
        found = at_service.pop(external_id, [])
        states = f"the service has {_texts(found)}"
        if at_service[None] and not found:
            states += f" under this external id, but without an external id {_texts(at_service[None])}"
        if start_at is None:
            if any(each.status != "cancelled" for each in found):
                raise PromiseBroken(CANCELS, f"{external_id}: bookings() says cancelled; {states}.")
        elif [_state(each) for each in found] != [start_at]:
            detail = f"{external_id}: bookings() says {_text(start_at)}; {states}."
            raise PromiseBroken(REACHES_SERVICE, detail + _zone_note(start_at, map(_state, found)))
    for unknown, found in at_service.items():
        which = "an appointment without an external id" if unknown is None else unknown
        if found:
            raise PromiseBroken(
                NOTHING_UNKNOWN, f"The service has {which}: {_texts(found)}; bookings() does not have it."
            )


def check_persons(
    entries: Mapping[str, Entry], appointments: Iterable[Appointment], phone_of: Callable[[str], str | None]
) -> None:
    """Check that no appointment is for another person than its booking.

    A patient at the service whose phone is that of nobody in the history is not checked: a clinic may write it in its
    own way.

    Args:
        entries: the bookings that persons made, by external id.
        appointments: the appointments at the service.
        phone_of: returns the phone of a patient at the service, by id.

    Raises:
        PromiseBroken: one is for another person.
    """
    everybody = {phone for _, phone in PERSONS}
    for each in appointments:
        phone, entry = phone_of(each.patient), entries.get(each.external_id or "")
        if entry is not None and each.status != "cancelled" and phone in everybody - {entry.booking.phone}:
            booking = entry.booking
            detail = f"{booking.external_id} is a booking of {booking.full_name}, {booking.phone}"
            raise PromiseBroken(FOR_ITS_PATIENT, f"{detail}; the service has it for the patient with {phone}.")


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


def _zone_note(believed: State, states: Iterable[State]) -> str:
    """Return a sentence if a time differs from what it should be as one does that was local time."""
    if not isinstance(believed, datetime):
        return ""
    # Local time that is taken for UTC is wrong by the whole offset, in either direction.
    differences = {abs(each - believed) for each in states if isinstance(each, datetime)}
    local = believed.astimezone()
    if differences & {abs(local.utcoffset() or timedelta(0))} - {timedelta(0)}:
        return f" They differ by the offset of the machine's time zone, {os.environ.get('TZ') or local.tzname()}."
    if believed in REPEATED and timedelta(hours=1) in differences:
        return " There are time zones whose clocks go back then, so that their local time occurs twice."
    return ""


def _state(appointment: Appointment) -> State:
    return None if appointment.status == "cancelled" else appointment.start_at


def _texts(appointments: Sequence[Appointment]) -> str:
    return " and ".join(_text(_state(each)) for each in appointments) or "nothing"


def _text(state: State) -> str:
    if isinstance(state, datetime):
        return time_text(state)
    return "cancelled" if state is None else "nothing"
