"""The inbox: the public class."""

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any, overload

from sqlalchemy import URL, Engine
from sqlalchemy.exc import SQLAlchemyError

import followup
from followup._core.api_rules import OutboundEventType
from followup._core.call.options import checked_deadline
from followup._core.codec.kinds import NOT_GIVEN, kind_of
from followup._core.codec.wire import in_utc
from followup._core.declarations import lazy
from followup._core.threads import NoThreadError, result_within
from followup._core.tracebacks import clears_frames_of
from followup._store.cipher import Cipher
from followup._store.execution import reason_of
from followup.inbox.apps import ASGIApp, WSGIApp
from followup.inbox.arrivals import Arrival, CatchUpReport, catch_up, checked_arrival, insertion
from followup.inbox.handlers import OTHERWISE, H, Handlers, TransactionKind, checked_types
from followup.inbox.upkeep import DrainReport, ReceivedEvents
from followup.inbox.worker import Worker
from followup.resources.webhook_event import Headers
from followup.webhooks import checked_secrets, construct_event, secrets_of_environment

LONGEST_HANDLER_TIMEOUT = 86_400

LONGEST_WAIT_OF_RECEIVE = 2.5
"""Seconds, at most, that each statement of ``receive`` waits for a lock, because the service waits 10 seconds for its
response."""

LONGEST_RECEIVE = 8.0
"""Seconds, at most, that ``receive`` waits for a server altogether."""

logger: logging.Logger = logging.getLogger("followup.inbox")


@clears_frames_of
class Inbox(ReceivedEvents):
    """Webhook events in your own database, whose work is done exactly once.

    ``receive`` stores an event before the service gets its 204. ``drain`` or ``run`` calls the handler of its type, in
    a transaction that commits the handler's writes together with the mark that the event is done.

    One Inbox may be used by many threads, and after a fork.

    Example::

        inbox = Inbox("sqlite:////var/lib/clinic/clinic.db")  # the secret is in FOLLOWUP_WEBHOOK_SECRET
        inbox.create_tables()

        @inbox.on("appointment.created", "appointment.rescheduled")
        def update_calendar(received: Received) -> None:
            received.connection.execute(...)
    """

    def __init__(
        self,
        database: str | URL | Engine,
        *,
        secret: str | Iterable[str] | None = None,
        name: str = "default",
        max_attempts: int = 10,
        handler_timeout: float = 30.0,
        cipher: Cipher | None = None,
    ) -> None:
        """Create an inbox. Nothing is connected yet.

        Args:
            database: a SQLAlchemy URL or Engine, for SQLite, PostgreSQL, MySQL or MariaDB.
            secret: the endpoint's ``whsec_...`` secret, or several of them during a rotation. By default the
                environment variable ``FOLLOWUP_WEBHOOK_SECRET``, where a comma separates several; it is read when a
                webhook arrives, because a process that only handles events needs no secret.
            name: keeps several organizations in one database apart: each has its own events and order.
            max_attempts: number of attempts to handle an event, after which it is dead.
            handler_timeout: seconds that a handler may take. One that takes longer goes on, but is never committed,
                and the event is tried again, perhaps meanwhile. An event whose process was killed is tried again after
                so many seconds. Use the same number in all processes.
            cipher: encrypts what is stored, such as a ``Fernet`` of the package ``cryptography``: the bodies of events
                and the errors of handlers. None stores them in clear.

        Raises:
            ConfigurationError: an argument is invalid, or for another database; the message names it.
            TypeError, ValueError: the secret is invalid.
        """
        super().__init__(database, name, cipher)
        if isinstance(max_attempts, bool) or not isinstance(max_attempts, int) or max_attempts < 1:
            raise followup.ConfigurationError("max_attempts must be a whole number, 1 or more")
        if isinstance(handler_timeout, bool) or not 1 <= handler_timeout <= LONGEST_HANDLER_TIMEOUT:
            raise followup.ConfigurationError(f"handler_timeout must be 1 to {LONGEST_HANDLER_TIMEOUT} seconds")
        self._secrets = secrets_of_environment
        if secret is not None:
            secrets = [each.decode() for each in checked_secrets(secret)]
            self._secrets = lambda: secrets  # an attribute of this object would be shown by vars()
        self._max_attempts = max_attempts
        self._handler_timeout = handler_timeout
        self._handlers = Handlers()

    def receive(self, body: bytes | str, headers: Headers) -> int:
        """Verify a webhook request, and store its event (specification, section 6.2).

        Args:
            body: the raw body, exactly as it was received. Re-serialized JSON does not match the signature.
            headers: the headers of the request, as the framework provides them; their case does not matter.

        Returns:
            The HTTP status to respond with. It is 204 if the event is stored, now or since an earlier delivery, and 400
            if the request is not genuine. It is 503 if the event cannot be stored now; the service then sends it again.

        Raises:
            ConfigurationError: there is no secret.
        """
        try:
            arrival = checked_arrival(construct_event(body, headers, self._secrets()), _raw(body))
        except followup.WebhookSignatureError as error:
            logger.warning("webhook rejected: %s", error)
            return 400
        try:
            self._store_in_time(arrival)
        except (SQLAlchemyError, followup.ConfigurationError, TimeoutError, NoThreadError) as error:
            logger.error("webhook %s not stored: %s", arrival.event.id, reason_of(error))  # noqa: TRY400 - its traceback would show the body
            return 503
        return 204

    def _store_in_time(self, arrival: Arrival) -> None:
        """Store an event, and stop waiting for a server that has become silent: no driver limits that.

        Raises:
            TimeoutError, NoThreadError, SQLAlchemyError, ConfigurationError: it may not be stored.
        """

        def work() -> None:
            with self._checked_transaction(LONGEST_WAIT_OF_RECEIVE) as connection:
                # Without inline(), SQLAlchemy lets PostgreSQL return the number of the row, which nobody needs.
                connection.execute(insertion(self._cipher, self._clock, self._database.dialect, arrival).inline())

        # SQLite has no server that could fall silent, and its waits for locks are limited.
        if not self._database.dialect.is_server:
            work()
            return
        result_within(LONGEST_RECEIVE, work, "followup-inbox")

    @lazy
    def wsgi_app(self) -> WSGIApp:
        """``receive`` as a WSGI application. It responds to POST, whatever the path; mount it at the webhook's URL."""
        return WSGIApp(self.receive)

    @lazy
    def asgi_app(self) -> ASGIApp:
        """``receive`` as an ASGI application, which does not block the event loop. It responds to POST on any path."""
        return ASGIApp(self.receive)

    def on(self, *types: OutboundEventType, transaction: TransactionKind = "inbox") -> Callable[[H], H]:
        """Return a decorator that makes a function the handler of these types of events.

        Args:
            types: one or more of the 13 event types.
            transaction: ``inbox``: the handler writes over ``received.connection``, and the inbox commits. ``own``: the
                handler opens a transaction itself, over Django's connection for example, and calls
                ``received.done(connection)`` in it.

        Returns:
            The decorator; it returns the function unchanged.

        Raises:
            ValueError: a type does not exist, or has a handler already; or ``transaction`` is invalid.
            TypeError: the function is asynchronous, or a generator function; raised by the decorator.
        """
        checked = checked_types(types)

        def add(handler: H) -> H:
            self._handlers.add(handler, checked, transaction)
            return handler

        return add

    @overload
    def otherwise(self, handler: H, *, transaction: TransactionKind = "inbox") -> H: ...

    @overload
    def otherwise(self, *, transaction: TransactionKind = "inbox") -> Callable[[H], H]: ...

    def otherwise(self, handler: Any = NOT_GIVEN, *, transaction: TransactionKind = "inbox") -> Any:
        """Make a function the handler of all types that have none. Use it as a decorator.

        Without it, an event of a type without a handler is kept with the status ``unhandled``.

        Args:
            handler: the function.
            transaction: as for ``on``.

        Returns:
            The function, unchanged. Without ``handler`` a decorator, such as ``@inbox.otherwise(transaction="own")``.

        Raises:
            ValueError: there is one already, or ``transaction`` is invalid.
            TypeError: the function is asynchronous, or a generator function.
        """
        if handler is NOT_GIVEN:
            return lambda function: self.otherwise(function, transaction=transaction)
        self._handlers.add(handler, (OTHERWISE,), transaction)
        return handler

    def drain(self, deadline: float | None = None, *, raise_exceptions: bool = False) -> DrainReport:
        """Handle the events that are due, one after the other, until none is.

        Any number of processes and threads may drain at once. Events of one ``ref`` are handled one at a time, oldest
        ``occurred_at`` first among those that have arrived; one that is being retried holds newer ones back.

        Args:
            deadline: seconds after which no further event is begun; by default there is no limit.
            raise_exceptions: raise the exception of a handler, once it has been recorded, instead of going on. For
                tests.

        Returns:
            What was done.

        Raises:
            ConfigurationError: the deadline is not a positive number; or the tables are missing, or made by another
                release; or an event cannot be decrypted, which the message names. It stays as it is, and all others
                were handled.
            sqlalchemy.exc.SQLAlchemyError: the database cannot be reached. An event in flight is tried again.
            RuntimeError: with ``raise_exceptions``, a handler did what the inbox forbids; the message says what.
        """
        seconds = checked_deadline(deadline)
        self._check_tables()
        report = DrainReport()
        worker = self._worker(raises=raise_exceptions)
        worker.work(report, seconds, threading.Event())
        worker.unreadable.check()
        report.remaining = self._remaining()
        return report

    def run(self, stop: threading.Event | None = None) -> None:
        """Handle events until ``stop`` is set or the process ends.

        While the database cannot be reached, it waits and logs.

        Args:
            stop: ends this call when it is set, after the event in flight.

        Raises:
            ConfigurationError: the tables are missing, or made by another release.
        """
        for _ in self._handling(stop or threading.Event()):
            pass

    def _handling(self, stop: threading.Event) -> Iterator[None]:
        """Handle events as ``run`` does; yield after each round."""
        worker = self._worker()
        return self._rounds(lambda: worker.work(DrainReport(), None, stop), stop, self._clock)

    def _worker(self, *, raises: bool = False) -> Worker:
        return Worker(self, self._handlers, self._handler_timeout, self._max_attempts, raises=raises)

    def catch_up(
        self, client: "followup.FollowUp", webhook_endpoint: str | None = None, since: datetime | None = None
    ) -> CatchUpReport:
        """Fetch the events that never arrived, from the service's list of deliveries (specification, section 6.2).

        It adds every delivery that the inbox does not know, whatever its status at the service. The first call reads
        the whole list, later ones what is new since then, with an overlap of an hour. Call it when your program starts,
        and every hour.

        Args:
            client: a client of the organization; its key needs the scope ``webhooks:read``.
            webhook_endpoint: id of the endpoint whose webhooks this inbox receives; by default the only one there is.
            since: no event that was created earlier is added; an aware datetime.

        Returns:
            The numbers of deliveries that were read, and of events that were added.

        Raises:
            ValueError: ``since`` is naive; or no endpoint was named, and there are several, which the message lists.
            NotFoundError: the endpoint does not exist.
        """
        if not isinstance(client, followup.FollowUp):
            raise TypeError(f"client must be a FollowUp, not {type(client).__name__}")
        if since is not None:
            if not isinstance(since, datetime):
                raise ValueError(f"since must be an aware datetime, not {kind_of(since)}")
            since = in_utc(since, "since")
        self._check_tables()
        return catch_up(self, client, webhook_endpoint, since)


def _raw(body: bytes | str) -> bytes:
    return body.encode() if isinstance(body, str) else bytes(body)  # frameworks may pass a bytearray or memoryview
