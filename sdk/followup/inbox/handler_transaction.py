"""The transaction of a handler, in which its writes and the mark that its event is done commit together.

Whatever would part them is an error: a handler that ends the transaction, or one that leaves objects in an ORM session
that nobody flushes.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

from sqlalchemy import Connection, event, inspect
from sqlalchemy.exc import UnboundExecutionError
from sqlalchemy.orm import Session

from followup._core.privacy.frames import clears_frames

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
        self._sessions: list[Session] = []
        self._lost: set[str] = set()
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
            self._sessions.clear()
            self._failure = None

    def check(self, error: Exception | None = None) -> None:
        """Check, after the handler has returned, that its transaction is the one that the inbox commits.

        Args:
            error: what the handler raised. Then it only must have committed nothing, so that it can be called again.

        Raises:
            HandlerError: the handler has ended it, or has left something that nobody writes.
        """
        if self._is_committed or self._has_ended_unnoticed():
            raise TransactionEndedError(_ENDED) from error
        if error is not None:
            return
        if self._failure is not None:
            raise self._failure
        if self.connection.get_transaction() is not self._transaction:
            raise HandlerError(_ENDED)
        for session in self._sessions:
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
                _check_ended(session)
            except BaseException as error:
                session.rollback()
                # A new one, because that of the handler refers to its frames.
                self._failure = type(error)(*error.args) if isinstance(error, HandlerError) else HandlerError(_LEFT)
                raise

    def notice_session(self, session: Session) -> None:
        """Keep a session, which may be on this connection, until the handler has returned."""
        self._sessions.append(session)

    def notice_unflushed(self, session: Session, instance: object) -> None:
        """Remember an object that nobody has flushed, if it is for this connection."""
        with suppress(UnboundExecutionError):
            if session.get_bind(type(instance)) is self.connection:
                self._lost.add(type(instance).__qualname__)

    def _note_commit(self, _: Connection) -> None:
        self._is_committed = True

    def _has_ended_unnoticed(self) -> bool:
        """Return whether a COMMIT in plain SQL or by the driver has ended it, of which SQLAlchemy knows nothing."""
        connection = self.connection
        if connection.get_transaction() is not self._transaction or connection.closed or connection.invalidated:
            return False
        driver: Any = connection.connection.driver_connection
        if connection.dialect.name == "sqlite":  # where it begins with the first write
            return not driver.in_transaction and _changes(connection) > self._changes_before
        return getattr(getattr(driver, "info", None), "transaction_status", None) == _IDLE


_current: ContextVar[HandlerTransaction | None] = ContextVar("followup_handler_transaction", default=None)


def transaction_on(connection: Connection) -> HandlerTransaction:
    """Return the transaction of the handler that runs now, or one for a connection that a test has made."""
    current = _current.get()
    return current if current is not None and current.connection is connection else HandlerTransaction(connection)


def _changes(connection: Connection) -> int:
    """Return how many rows a connection of SQLite has changed, also by a script that commits by itself."""
    return int(getattr(connection.connection.driver_connection, "total_changes", 0))


def _begin_before_savepoint(connection: Connection, _: object) -> None:
    """Begin a transaction of SQLite, in which a savepoint outside of one would commit when it is released."""
    driver: Any = connection.connection.driver_connection
    if connection.dialect.name == "sqlite" and not driver.in_transaction:
        connection.exec_driver_sql("BEGIN IMMEDIATE")


def _check_ended(session: Session) -> None:
    if session.in_nested_transaction():
        raise HandlerError(_OPEN)


def _reject_commit(session: Session) -> None:
    if not session.in_nested_transaction():
        raise TransactionEndedError(_COMMITTED)


# These stay for the whole process, because SQLAlchemy keeps the listeners of a class in a list that another thread may
# iterate over at any moment. While no handler runs, they do nothing.
@event.listens_for(Session, "after_transaction_create")
def _notice_session(session: Session, _: object) -> None:
    if (handler := _current.get()) is not None:
        handler.notice_session(session)


@event.listens_for(Session, "pending_to_transient")
@event.listens_for(Session, "persistent_to_detached")
def _notice_forgotten(session: Session, instance: object) -> None:
    """Notice what a session forgets because it is closed: then it has forgotten all else, too."""
    handler = _current.get()
    is_closed = not session.new and not len(session.identity_map)
    if handler is None or not is_closed or sys.exc_info()[1] is not None:  # an exception means it to be lost
        return
    if not inspect(instance, raiseerr=True).has_identity or session.is_modified(instance):
        handler.notice_unflushed(session, instance)
