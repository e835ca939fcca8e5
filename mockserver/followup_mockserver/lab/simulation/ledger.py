"""The ledger of a history: the bookings that persons made, and what may therefore be in those of the clinic."""

from datetime import UTC, datetime, timedelta
from typing import Final, Literal

import attrs

from followup_mockserver.lab.simulation.clinic import Booking
from followup_mockserver.lab.simulation.history import MAX_BOOKINGS, SLOTS

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
