"""The clinic that is judged: the base class of users, checks of what its methods return, and the ledger.

All problems that the checks find name the method.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

import attrs

from followup import AsyncFollowUp, FollowUp
from followup_mockserver.lab.simulation.history import MAX_BOOKINGS, SLOTS

_Bookings = Mapping[str, datetime | None]
_REQUIRED = ("start", "book", "reschedule", "cancel", "bookings")
_METHODS = (*_REQUIRED, "receiver", "work", "handled", "patients")


class Crash(BaseException):
    """The simulated end of the clinic's process, raised at a request to the service.

    It is no ``Exception``, so ``except Exception`` does not catch it, as nothing catches a power failure. After it, all
    further requests of the same process raise it too. Code that catches it gains nothing: the process is over.
    """


@attrs.frozen(kw_only=True)
class Booking:
    """A booking, as a person at the clinic enters it.

    Attributes:
        external_id: the clinic's own id of the booking, which is the appointment's external id at the service.
        phone: phone number of the patient. Two bookings may share one.
        full_name: name of the patient; it may contain any letters. Two persons with different phones may share one.
        start_at: the time of the appointment, an aware datetime in UTC.
    """

    external_id: str
    phone: str
    full_name: str
    start_at: datetime


class Clinic:
    """An integration under simulation. Subclass it, implement its methods with your own code, and call ``simulate``.

    Each start and each restart creates a new instance without arguments, and calls ``start``. Nothing survives a crash
    but the folder. The methods are called one at a time in the thread that called ``simulate``, or in one of its own if
    an event loop runs in that thread.

    Any of them may be a coroutine function. They run in one event loop, which lasts until the next crash, together with
    the tasks that your code starts. ``asyncio.sleep`` and timeouts take simulated time, and a history chooses which
    ready task goes on. Ordinary methods are called outside of that loop, so they may use ``asyncio.run``.

    If ``book``, ``reschedule`` or ``cancel`` raises an exception, the operation failed, and a person saw it. If
    ``work`` does, a background job failed, and runs again later. If the receiver does, a delivery attempt failed.

    Attributes:
        receiver_url: https URL of the clinic's webhook endpoint, which is subscribed to all event types; None: no
            receiver.
        secret: signing secret of the endpoint; empty without one.
        async_client: a client of the service for asynchronous code, in the same process as the client of ``start``.
    """

    receiver_url: ClassVar[str | None] = None
    secret: str
    async_client: AsyncFollowUp
    _client: FollowUp
    _clock: Callable[[], datetime]
    _call: Callable[[str], Any]

    def start(self, client: FollowUp, folder: Path) -> Awaitable[None] | None:
        """Start the clinic: at the beginning, and again after every crash.

        Args:
            client: a client of the service. Its waits take no real time.
            folder: the folder for all that must survive a crash, such as a database. It is empty at the beginning.
        """
        raise NotImplementedError

    def receiver(self) -> Any:
        """Return the receiver of webhooks; called after each start if there is a ``receiver_url``.

        Returns:
            A WSGI or ASGI application, or a function that takes an ``httpx.Request`` and returns an ``httpx.Response``.
        """
        raise NotImplementedError

    def book(self, booking: Booking) -> Awaitable[None] | None:
        """Book an appointment. A person who saw this fail may repeat it, with an equal booking."""
        raise NotImplementedError

    def reschedule(self, booking: Booking) -> Awaitable[None] | None:
        """Move an appointment. The booking is the same one, with a new ``start_at``."""
        raise NotImplementedError

    def cancel(self, booking: Booking) -> Awaitable[None] | None:
        """Cancel an appointment."""
        raise NotImplementedError

    def work(self) -> Awaitable[None] | None:
        """Do one round of the work that runs in the background. By default there is none."""
        return None

    def bookings(self) -> _Bookings | Awaitable[_Bookings]:
        """Return what the clinic believes: ``start_at`` of each booking by external id, or None once it is cancelled.

        The times are aware datetimes.
        """
        raise NotImplementedError

    def handled(self) -> Iterable[str] | None | Awaitable[Iterable[str] | None]:
        """Return the id of each webhook event whose work is done, as often as it was done; None: not checked."""
        return None

    def patients(self) -> Mapping[str, str] | None | Awaitable[Mapping[str, str] | None]:
        """Return the full name of each patient, by external id at the service or by phone; None: not checked.

        Phones are compared in any spelling. A patient whose bookings are all cancelled need not be at the service. Of
        persons who share a phone, the service makes one patient, so the name of any of them is right.
        """
        return None

    def now(self) -> datetime:
        """Return the time of the simulation in UTC, for code that compares times, such as a backoff of its own.

        The clock of the machine hardly moves during a simulation. Outbox, Inbox and clients use the simulated time by
        themselves. Only the timestamps in the signatures of webhooks are real.
        """
        return self._clock()


def check_clinic(clinic: object) -> None:
    """Check the class that is simulated.

    Raises:
        TypeError: it is no subclass of ``Clinic``, or a method is missing.
        ValueError: ``receiver_url`` is invalid.
    """
    if not (isinstance(clinic, type) and issubclass(clinic, Clinic)):
        raise TypeError(f"simulate() takes a subclass of Clinic, not {clinic!r}")
    required = (*_REQUIRED, "receiver") if clinic.receiver_url is not None else _REQUIRED
    missing = [f"{each}()" for each in required if getattr(clinic, each) is getattr(Clinic, each)]
    if missing:
        raise TypeError(f"{clinic.__name__} has no {' and no '.join(missing)}; a Clinic needs {', '.join(required)}")
    url = clinic.receiver_url
    if url is not None and not (isinstance(url, str) and url.startswith("https://")):
        raise ValueError(f"{clinic.__name__}.receiver_url must be an https URL, or None for no receiver, not {url!r}")


def is_asynchronous(clinic: type[Clinic]) -> bool:
    """Return whether any method of a clinic is a coroutine function."""
    return any(inspect.iscoroutinefunction(getattr(clinic, each)) for each in _METHODS)


def bookings_of(clinic: Clinic) -> dict[str, datetime | None]:
    """Return what ``bookings()`` of a clinic returned, checked, with its times in UTC.

    Raises:
        TypeError: it has another type.
        ValueError: it has a naive datetime, or one that UTC cannot express.
    """
    found: Any = clinic._call("bookings")
    name = f"{type(clinic).__name__}.bookings()"
    if not isinstance(found, Mapping):
        raise TypeError(f"{name} must return a mapping {{external_id: start_at, or None}}, not {type(found).__name__}")
    return {external_id: _in_utc(name, external_id, start_at) for external_id, start_at in found.items()}


def _in_utc(name: str, external_id: object, start_at: Any) -> datetime | None:
    if not isinstance(external_id, str):
        raise TypeError(f"{name} must have external ids as keys, such as 'B1', not {external_id!r}")
    if not isinstance(start_at, datetime | None):
        kind = type(start_at).__name__
        raise TypeError(
            f"{name} must have aware datetimes, or None once cancelled; that of {external_id!r} is a {kind}"
        )
    if start_at is not None and start_at.utcoffset() is None:
        raise ValueError(
            f"{name} must have aware datetimes; that of {external_id!r} has no time zone. "
            "Store the offset too, as start_at.isoformat() does"
        )
    try:
        # Python compares times of two zones as unequal where the clocks go back, even if they are the same instant.
        return start_at and start_at.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{name} has a time for {external_id!r} that is outside of the calendar in UTC") from None


def patients_of(clinic: Clinic) -> Mapping[str, str] | None:
    """Return what ``patients()`` of a clinic returned, checked.

    Raises:
        TypeError: it has another type.
    """
    found: Any = clinic._call("patients")
    if found is not None and not (
        isinstance(found, Mapping) and all(isinstance(each, str) for pair in found.items() for each in pair)
    ):
        name = f"{type(clinic).__name__}.patients()"
        raise TypeError(f"{name} must return a mapping {{external id or phone: full name}} of strings, or None")
    return found


def handled_of(clinic: Clinic) -> list[str] | None:
    """Return what ``handled()`` of a clinic returned, checked.

    Raises:
        TypeError: it has another type.
    """
    found: Any = clinic._call("handled")
    if found is None:
        return None
    name = f"{type(clinic).__name__}.handled()"
    if isinstance(found, (str, bytes, Mapping)) or not hasattr(found, "__iter__"):
        raise TypeError(f"{name} must return a list of event ids, or None, not {type(found).__name__}")
    ids = list(found)
    for each in ids:
        if not isinstance(each, str):
            raise TypeError(f"{name} must have the ids of webhook events, such as 'whd_…', not {type(each).__name__}")
    return ids


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
