"""``OutboxClinic``: the base class of a clinic whose integration uses ``Outbox`` and ``Inbox``."""

import functools
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from followup._core.plain import Late
from followup_mockserver.lab.simulation.clinic import Clinic
from followup_mockserver.lab.simulation.commits import databases_of_thread

if TYPE_CHECKING:
    from followup import inbox as inboxes
    from followup import outbox as outboxes
else:  # these need SQLAlchemy, which other clinics may not have
    inboxes, outboxes = Late("followup.inbox"), Late("followup.outbox")


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
        databases = databases_of_thread()
        self._commits = None if databases is None else databases.commits
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
        commits = self._commits
        if commits is None:
            return handler

        @functools.wraps(handler)
        def watched(received: "inboxes.Received") -> object:
            before = commits.made
            try:
                return handler(received)
            finally:
                commits.runs[received.event.id].append(commits.made > before)

        return watched
