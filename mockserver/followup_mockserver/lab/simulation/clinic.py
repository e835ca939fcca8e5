"""The clinic that is judged: the base classes of users, and checks of what their methods return.

All problems that the checks find name the method.
"""

import functools
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from followup import AsyncFollowUp, FollowUp
from followup._core.plain import Late

if TYPE_CHECKING:
    from followup import inbox as inboxes
    from followup import outbox as outboxes
    from followup_mockserver.lab.simulation import commits
else:  # the stores need SQLAlchemy, which other clinics may not have, and commits needs this module
    inboxes, outboxes = Late("followup.inbox"), Late("followup.outbox")
    commits = Late("followup_mockserver.lab.simulation.commits")

_Bookings = Mapping[str, datetime | None]
_REQUIRED = ("start", "book", "reschedule", "cancel", "bookings")
_METHODS = (*_REQUIRED, "receiver", "work", "handled")


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
    _commits: "commits.Commits | None" = None
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

    def now(self) -> datetime:
        """Return the time of the simulation in UTC, for code that compares times, such as a backoff of its own.

        The clock of the machine hardly moves during a simulation. Outbox, Inbox and clients use the simulated time by
        themselves. Only the timestamps in the signatures of webhooks are real.
        """
        return self._clock()


class OutboxClinic(Clinic):
    """A clinic with an ``Outbox``, and with an ``Inbox`` unless ``receiver_url`` is None.

    ``start`` sets ``self.outbox`` and ``self.inbox``. Then ``receiver``, ``work`` and ``handled`` are implemented:
    the application of the inbox receives the webhooks, ``work`` drains both, and ``handled`` counts the work of the
    inbox's handlers. Override ``receiver`` or ``work`` where your own code does that.

    ``handled`` counts each run of a handler whose work lasts: its event was marked as done, or the run committed
    something by itself, over a connection other than ``received.connection``, and was then cut off. Such a run is
    repeated, so its event counts twice. Override ``handled``, and return what is in your own tables, if your handlers
    may repeat their work because the event's id is its key, or if one run may do its work twice.

    Attributes:
        receiver_url: https URL of the webhook endpoint; None: no webhooks are received.
        outbox: the outbox of the integration.
    """

    receiver_url: ClassVar[str | None] = "https://clinic.example/webhooks"
    outbox: "outboxes.Outbox"
    _inbox: "inboxes.Inbox | None" = None

    @property
    def inbox(self) -> "inboxes.Inbox":
        """The inbox of the integration.

        Raises:
            AttributeError: ``start`` has set none.
        """
        if self._inbox is None:
            raise AttributeError(
                f"{type(self).__name__}.start() must set self.inbox; without a receiver, set receiver_url = None"
            )
        return self._inbox

    @inbox.setter
    def inbox(self, inbox: "inboxes.Inbox") -> None:
        self._inbox = inbox
        inbox._handlers.watched = self._watched

    def receiver(self) -> Any:
        """Return the inbox as a WSGI application."""
        return self.inbox.wsgi_app

    def work(self) -> Awaitable[None] | None:
        """Send what is in the outbox, and handle what is in the inbox."""
        self.outbox.drain(self._client)
        if self._inbox is not None:
            self._inbox.drain()
        return None

    def handled(self) -> Iterable[str] | None | Awaitable[Iterable[str] | None]:
        """Return the id of each event as often as its work was done; None without an inbox."""
        if self._inbox is None or self._commits is None:
            return None
        times = {event_id: sum(runs) for event_id, runs in self._commits.runs.items()}
        for event_id in self._inbox._done():
            # The last run is the one that marked its event as done, whatever else it committed.
            times[event_id] = 1 + sum(self._commits.runs.get(event_id, ())[:-1])
        return [event_id for event_id, number in times.items() for _ in range(number)]

    def _watched(self, handler: "Callable[[inboxes.Received], object]") -> "Callable[[inboxes.Received], object]":
        """Return a handler of which it is recorded whether its run committed something by itself."""
        of_history = self._commits
        if of_history is None:
            return handler

        @functools.wraps(handler)
        def watched(received: "inboxes.Received") -> object:
            before = of_history.made
            try:
                return handler(received)
            finally:
                of_history.runs[received.event.id].append(of_history.made > before)

        return watched


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
