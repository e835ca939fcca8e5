"""The clinic that is judged: the base class of users, and what it is called with."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

import attrs

from followup import AsyncFollowUp, FollowUp


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
        full_name: name of the patient; it may contain any letters.
        start_at: the time of the appointment, an aware datetime in UTC.
    """

    external_id: str
    phone: str
    full_name: str
    start_at: datetime


class Clinic:
    """An integration under simulation. Subclass it, implement its methods with your own code, and call ``simulate``.

    Each start and each restart creates a new instance without arguments, and calls ``start``. Nothing survives a crash
    but the folder. The methods are ordinary ones, called one at a time in the thread that called ``simulate``; use
    ``asyncio.run`` for asynchronous code.

    An exception of ``book``, ``reschedule`` or ``cancel`` is an operation that failed before the eyes of a person, one
    of ``work`` is a background job that failed and runs again later, and one of the receiver is a failed attempt.

    Attributes:
        receiver_url: https URL of the clinic's webhook endpoint, which is subscribed to all event types; None: no
            receiver.
        secret: signing secret of the endpoint; empty without one.
        async_client: a client of the service for asynchronous code, in the same process as the client of ``start``.
    """

    receiver_url: ClassVar[str | None] = None
    secret: str
    async_client: AsyncFollowUp
    _clock: Callable[[], datetime]

    def start(self, client: FollowUp, folder: Path) -> None:
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

    def book(self, booking: Booking) -> None:
        """Book an appointment. A person who saw this fail may repeat it, with an equal booking."""
        raise NotImplementedError

    def reschedule(self, booking: Booking) -> None:
        """Move an appointment. The booking is the same one, with a new ``start_at``."""
        raise NotImplementedError

    def cancel(self, booking: Booking) -> None:
        """Cancel an appointment."""
        raise NotImplementedError

    def work(self) -> None:
        """Do one round of the work that runs in the background. By default there is none."""

    def bookings(self) -> Mapping[str, datetime | None]:
        """Return what the clinic believes: ``start_at`` of each booking by external id, or None once it is cancelled.

        The times are aware datetimes.
        """
        raise NotImplementedError

    def handled(self) -> Iterable[str] | None:
        """Return the id of each webhook event whose work is done, as often as it was done; None: not checked."""
        return None

    def now(self) -> datetime:
        """Return the time of the simulation in UTC, for code that compares times, such as a backoff of its own.

        The clock of the machine hardly moves during a simulation. Outbox, Inbox and clients use the simulated time by
        themselves. Only the timestamps in the signatures of webhooks are real.
        """
        return self._clock()
