"""Handlers: the user's functions that do the work of events, by type of event; and what each of them gets.

In the transaction of a handler, its writes and the mark that its event is done commit together. Whatever would part
them is an error: a handler that ends the transaction, or one that leaves objects in an ORM session that nobody flushes.
"""

import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

import attrs
from sqlalchemy import Connection, event
from sqlalchemy import inspect as inspect_object
from sqlalchemy.exc import DBAPIError, UnboundExecutionError
from sqlalchemy.orm import Session

from followup._core.api_rules import OutboundEventType
from followup._core.plain import Late
from followup._core.tracebacks import clears_frames
from followup._store.dialects import MYSQL, dialect_of
from followup._store.execution import NO_SUCH_SAVEPOINT, number_of
from followup.resources.webhook_event import WebhookEvent

_ENDED = "the handler committed or rolled back received.connection; the inbox does that after it has returned"
_COMMITTED = "the handler called commit() in received.session(); the inbox commits after the handler has returned"
_LEFT = "an exception left received.session(), so that its work is rolled back, but the handler went on"
_OPEN = "the handler left a savepoint of received.session() open, which rolls back what it wrote: end it with commit()"
_IDLE = 0
"""The status of a connection to PostgreSQL without a transaction."""


class HandlerError(RuntimeError):
    """A handler did what loses or repeats work. Its text is ours, and has no data."""


class TransactionEndedError(HandlerError):
    """The handler ended its transaction, so that its writes and the mark cannot commit together."""


class LeaseEndedError(HandlerError):
    """The handler took longer than its lease."""


class HandlerTransaction:
    """The transaction on ``received.connection``, while a handler runs."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._transaction = connection.get_transaction()
        self._changes_before = _changes(connection)
        self._is_committed = False
        self._failure: HandlerError | None = None
        self.sessions: list[Session] = []  # that may be on this connection, until the handler has returned
        self._lost: set[str] = set()
        if dialect_of(connection.dialect.name) is MYSQL:
            # It is gone once something has committed, as each DDL of MySQL does without a word.
            connection.exec_driver_sql("SAVEPOINT followup_handler")
        event.listen(connection, "commit", self._note_commit)
        event.listen(connection, "savepoint", _begin_before_savepoint)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Notice the ORM sessions that are used in the with block."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)
            self.sessions.clear()
            self._failure = None

    def check(self, error: Exception | None = None) -> None:
        """Check, after the handler, that it has ended nothing, and has left nothing that nobody writes.

        Raises:
            HandlerError: it has. After an error of the handler, it only must have committed nothing.
        """
        if self._is_committed or self._has_ended_unnoticed(error):
            raise TransactionEndedError(_ENDED) from error
        if error is not None:
            return
        if self._failure is not None:
            raise self._failure
        if self.connection.get_transaction() is not self._transaction:
            raise HandlerError(_ENDED)
        for session in self.sessions:
            changed = [each for each in session.dirty if session.is_modified(each)]
            for each in (*session.new, *session.deleted, *changed):
                self.notice_unflushed(session, each)
        if self._lost:
            raise HandlerError(
                f"the handler left unflushed objects ({', '.join(sorted(self._lost))}) in a Session of its own: use "
                "`with received.session() as session:`, which flushes them, or call flush()"
            )

    @contextmanager
    @clears_frames
    def session(self) -> Iterator[Session]:
        """Open an ORM session in this transaction, and flush it at the end of the with block."""
        # By default, a session within a savepoint makes one of its own, and rolls it back when it is closed.
        with Session(self.connection, join_transaction_mode="rollback_only") as session:
            event.listen(session, "before_commit", _reject_commit)
            try:
                yield session
                session.flush()
                if session.in_nested_transaction():
                    raise HandlerError(_OPEN)  # noqa: TRY301 - rolls back below
            except BaseException as error:
                session.rollback()
                # A new one, because that of the handler refers to its frames.
                self._failure = type(error)(*error.args) if isinstance(error, HandlerError) else HandlerError(_LEFT)
                raise

    def notice_unflushed(self, session: Session, instance: object) -> None:
        """Remember an object that nobody has flushed, if it is for this connection."""
        with suppress(UnboundExecutionError):
            if session.get_bind(type(instance)) is self.connection:
                self._lost.add(type(instance).__qualname__)

    def _note_commit(self, _: Connection) -> None:
        self._is_committed = True

    def _has_ended_unnoticed(self, error: Exception | None) -> bool:
        """Return whether a COMMIT in plain SQL or by the driver has ended it, of which SQLAlchemy knows nothing."""
        connection = self.connection
        if connection.get_transaction() is not self._transaction or connection.closed or connection.invalidated:
            return False
        driver: Any = connection.connection.driver_connection
        dialect = dialect_of(connection.dialect.name)
        if dialect is MYSQL:  # whose DDL commits, too; a deadlock has rolled back
            numbers = {number_of(each) for each in _chain_of(error)}
            return not numbers & {*dialect.repeatable} and not _has_savepoint(connection)
        if not dialect.is_server:  # where it begins with the first write
            return not driver.in_transaction and _changes(connection) > self._changes_before
        return getattr(getattr(driver, "info", None), "transaction_status", None) == _IDLE


_current: ContextVar[HandlerTransaction | None] = ContextVar("followup_handler_transaction", default=None)


def transaction_on(connection: Connection) -> HandlerTransaction:
    """Return the transaction of the handler that runs now, or one for a connection that a test has made."""
    current = _current.get()
    return current if current is not None and current.connection is connection else HandlerTransaction(connection)


def _chain_of(error: BaseException | None) -> Iterator[BaseException]:
    """Iterate over an error and those that led to it: a handler may raise another one of its own."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _has_savepoint(connection: Connection) -> bool:
    try:
        connection.exec_driver_sql("RELEASE SAVEPOINT followup_handler")
    except DBAPIError as error:  # others lose the connection, and nothing was committed
        return number_of(error) != NO_SUCH_SAVEPOINT
    return True


def _changes(connection: Connection) -> int:
    """Return how many rows a connection of SQLite has changed, also by a script that commits by itself."""
    return int(getattr(connection.connection.driver_connection, "total_changes", 0))


def _begin_before_savepoint(connection: Connection, _: object) -> None:
    """Begin a transaction of SQLite, in which a savepoint outside of one would commit when it is released."""
    driver: Any = connection.connection.driver_connection
    if not dialect_of(connection.dialect.name).is_server and not driver.in_transaction:
        connection.exec_driver_sql("BEGIN IMMEDIATE")


def _reject_commit(session: Session) -> None:
    if not session.in_nested_transaction():
        raise TransactionEndedError(_COMMITTED)


# These stay for the whole process, because SQLAlchemy keeps the listeners of a class in a list that another thread may
# iterate over at any moment. While no handler runs, they do nothing.
@event.listens_for(Session, "after_transaction_create")
def _notice_session(session: Session, _: object) -> None:
    if (handler := _current.get()) is not None:
        handler.sessions.append(session)


@event.listens_for(Session, "pending_to_transient")
@event.listens_for(Session, "persistent_to_detached")
def _notice_forgotten(session: Session, instance: object) -> None:
    """Notice what a session forgets because it is closed: then it has forgotten all else, too."""
    handler = _current.get()
    is_closed = not session.new and not len(session.identity_map)
    if handler is None or not is_closed or sys.exc_info()[1] is not None:  # an exception means it to be lost
        return
    if not inspect_object(instance, raiseerr=True).has_identity or session.is_modified(instance):
        handler.notice_unflushed(session, instance)


if TYPE_CHECKING:
    from followup.outbox import connections
else:
    connections = Late("followup.outbox.connections")

EVENT_TYPES: tuple[str, ...] = tuple(each for arm in get_args(OutboundEventType) for each in get_args(arm) or (arm,))


@attrs.frozen
class Received:
    """An event to handle.

    Attributes:
        event: the event.
        is_stale: whether a newer event about the same ``ref`` has been handled already.
        attempt: number of this attempt, from 1.
    """

    event: WebhookEvent
    _connection: Connection | None = attrs.field(repr=False)
    is_stale: bool
    attempt: int
    _mark: "Callable[[connections.RecordingConnection], None] | None" = attrs.field(default=None, repr=False)

    @property
    def connection(self) -> Connection:
        """A SQLAlchemy connection in a transaction.

        What the handler writes here commits together with the mark that the event is done, or not at all. The handler
        neither commits nor rolls back itself.

        Raises:
            RuntimeError: the handler has ``transaction="own"``.
        """
        if self._connection is None:
            raise RuntimeError(
                'a handler with transaction="own" has no received.connection: it writes over its own connection, and '
                "calls received.done(connection) in the same transaction"
            )
        return self._connection

    def session(self) -> AbstractContextManager[Session]:
        """Open a SQLAlchemy ORM session in the transaction of ``connection``.

        It is flushed at the end of the with block, and commits together with the mark that the event is done. An
        exception that leaves the block rolls all back, also if the handler catches it; ``commit()`` is an error.

        Returns:
            A context manager, which yields the session.

        Raises:
            RuntimeError: the handler has ``transaction="own"``.
        """
        return transaction_on(self.connection).session()

    @clears_frames
    def done(self, connection: "connections.RecordingConnection") -> None:
        """Mark the event as done in a transaction of the handler's own, which has to commit before the handler returns.

        It is for handlers with ``transaction="own"``. The mark commits or rolls back with the handler's own writes. A
        handler that returns without it is called again.

        Args:
            connection: an open transaction in the database of the inbox: a SQLAlchemy ``Connection`` or ``Session``, a
                ``sqlite3.Connection``, a ``psycopg.Connection``, or one of PyMySQL, mysqlclient or Django.

        Raises:
            ValueError: the connection is in autocommit mode, or to another database; or the event is marked already; or
                the handler took longer than ``handler_timeout``, so that another one may have the event. Let it roll
                your transaction back.
            TypeError: the connection is of another kind.
            RuntimeError: the handler has not ``transaction="own"``; the inbox marks its event.
        """
        if self._mark is None:
            raise RuntimeError(
                'received.done() is for handlers with transaction="own"; the inbox marks this event itself'
            )
        self._mark(connection)


Handler = Callable[[Received], None]
H = TypeVar("H", bound=Handler)

TransactionKind = Literal["inbox", "own"]

OTHERWISE = "otherwise"
"""All types of events that have no handler."""

SYNCHRONOUS = "handlers are synchronous functions"


@attrs.frozen
class Registration:
    """A function of the user, and whether it opens its transaction itself."""

    function: Callable[[Received], object]
    has_own_transaction: bool


class Handlers:
    """The handlers of an inbox."""

    def __init__(self) -> None:
        # A simulation replaces it, and sees the runs of each handler.
        self.watched: Callable[[Callable[[Received], object]], Callable[[Received], object]] = lambda function: function
        self._by_type: dict[str, Registration] = {}

    def add(self, handler: Handler, types: tuple[str, ...], transaction: TransactionKind) -> None:
        """Add the handler of these types of events; ``OTHERWISE`` is all that have none."""
        registration = _registration(handler, transaction)
        for each in types:
            if each in self._by_type:
                raise ValueError(f"{each} has a handler already, {_name(self._by_type[each].function)}")
        self._by_type.update(dict.fromkeys(types, registration))

    def find(self, type: str) -> Registration | None:
        """Return the handler of a type, or None."""
        return self._by_type.get(type) or self._by_type.get(OTHERWISE)


def checked_types(types: tuple[object, ...]) -> tuple[str, ...]:
    """Return the types of events that a handler is for, if there are any and each of them exists."""
    if not types or callable(types[0]):
        raise ValueError('on() needs event types, such as @inbox.on("appointment.created"); or use otherwise')
    for each in types:
        if each not in EVENT_TYPES:
            raise ValueError(f"{each!r} is not an event type: it must be one of {', '.join(EVENT_TYPES)}")
    return tuple(str(each) for each in types)


def _registration(handler: Handler, transaction: object) -> Registration:
    if transaction not in get_args(TransactionKind):
        raise ValueError('transaction must be "inbox" or "own"')
    if not callable(handler):
        raise TypeError("a handler must be a function")
    function: object = handler
    while isinstance(function, functools.partial):
        function = function.func
    for each in (function, getattr(function, "__call__", None)):  # noqa: B004 - the method of a callable object
        if inspect.iscoroutinefunction(each) or inspect.isasyncgenfunction(each):
            raise TypeError(f"handler {_name(handler)} is a coroutine function; {SYNCHRONOUS}")
        if inspect.isgeneratorfunction(each):
            raise TypeError(f"handler {_name(handler)} is a generator function, whose code would not run")
    return Registration(handler, transaction == "own")


def _name(handler: object) -> str:
    return str(getattr(handler, "__qualname__", type(handler).__qualname__))
