"""The transaction of a handler, in which its writes and the mark that its event is done commit together.

Whatever would part them is an error: a handler that ends the transaction, or one that leaves objects in an ORM session
that nobody flushes.
"""

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from sqlalchemy import Connection, NestedTransaction, event
from sqlalchemy.exc import UnboundExecutionError
from sqlalchemy.orm import Session, SessionTransaction

from followup._core.privacy.frames import clears_frames

_ENDED = "the handler committed or rolled back received.connection; the inbox does that after it has returned"
_COMMITTED = "the handler called commit() in received.session(); the inbox commits after the handler has returned"
_LEFT = "an exception left received.session(), so that its work is rolled back, but the handler went on"
_ROLLED_BACK = (
    "the handler closed a Session whose savepoint was open, which rolls back what it wrote: end begin_nested() with "
    "commit(), and a Session of your own within a savepoint too; or use `with received.session() as session:`"
)
_WRITES = ("INSERT", "UPDATE", "DELETE", "MERGE", "REPLACE")
_SHADOWED = ("expunge_all", "close", "reset")
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
        self._has_begun = False
        self._changes_before = _changes(connection)
        self._was_committed = False
        self._was_rolled_back = False
        self._writes = 0
        self._savepoints: dict[int, list[tuple[NestedTransaction, int]]] = {}
        self._failure: BaseException | None = None
        self._sessions: dict[int, Session] = {}
        self._lost: set[str] = set()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Watch the handler in the with block: the statements on its connection, and the sessions that use it."""
        token = _current.set(self)
        listeners: list[tuple[str, Callable[..., None]]] = [
            ("before_cursor_execute", self._look),
            ("after_cursor_execute", self._look),
            ("after_cursor_execute", self._count_write),
            ("savepoint", self._begin_before_savepoint),
            ("commit", self._note_commit),
            ("rollback", self._note_rollback),
        ]
        for name, listener in listeners:
            event.listen(self.connection, name, listener)
        self._look()
        try:
            yield
        finally:
            _current.reset(token)
            for name, listener in listeners:
                event.remove(self.connection, name, listener)
            for each in self._sessions.values():
                for name in _SHADOWED:
                    vars(each).pop(name, None)
            self._failure = None  # its traceback refers to a frame that refers to this object

    def check(self, error: Exception | None = None) -> None:
        """Check, after the handler has returned, that nothing parts its writes from the mark.

        Args:
            error: what the handler raised. Then it only must have committed nothing, so that it can be called again.

        Raises:
            HandlerError: something does.
        """
        self._look()
        if self._was_committed:
            raise TransactionEndedError(_ENDED) from error
        if error is not None:
            return
        if isinstance(self._failure, HandlerError):
            raise self._failure
        if self._failure is not None:
            raise HandlerError(_LEFT) from self._failure
        if self._was_rolled_back:
            raise HandlerError(_ENDED)
        for each in self._sessions.values():
            self._find_lost(each)
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
            event.listen(session, "before_commit", self._reject_commit)
            event.listen(session, "after_soft_rollback", self._note_session_rollback)
            try:
                yield session
                session.flush()
            except BaseException as error:
                self._failure = self._failure or error
                raise

    def notice(self, session: Session) -> None:
        """Remember a session that uses the connection, and look at it before it forgets its objects or is closed."""
        if id(session) in self._sessions:
            return
        self._sessions[id(session)] = session

        # There is no event that comes before. Closing a session also calls expunge_all.
        for name in _SHADOWED:
            look = self._find_lost if name == "expunge_all" else self._find_rolled_back
            vars(session)[name] = functools.partial(_look_and_call, look, session, getattr(session, name))

    def notice_savepoint(self, session: Session, savepoint: NestedTransaction) -> None:
        """Remember a savepoint that a session has made, which it rolls back if it is closed before its commit."""
        self._savepoints.setdefault(id(session), []).append((savepoint, self._writes))

    def _find_rolled_back(self, session: Session) -> None:
        if sys.exc_info()[1] is None and any(  # an exception means it to be rolled back
            savepoint.is_active and self._writes > before for savepoint, before in self._savepoints.get(id(session), ())
        ):
            self._failure = self._failure or HandlerError(_ROLLED_BACK)

    def _find_lost(self, session: Session) -> None:
        changed = [each for each in session.dirty if session.is_modified(each)]
        self._lost.update(type(each).__qualname__ for each in (*session.new, *session.deleted, *changed))

    def _reject_commit(self, session: Session) -> None:
        if not session.in_nested_transaction():
            self._failure = TransactionEndedError(_COMMITTED)
            raise self._failure

    def _count_write(self, _: Connection, __: object, statement: str, *___: object) -> None:
        self._writes += statement.lstrip().upper().startswith(_WRITES)

    def _note_session_rollback(self, _: Session, transaction: SessionTransaction) -> None:
        self._was_rolled_back = self._was_rolled_back or transaction.parent is None

    def _look(self, *_: object) -> None:
        """Notice a COMMIT in plain SQL or by the driver, of which SQLAlchemy knows nothing."""
        if self._was_rolled_back or self.connection.closed or self.connection.invalidated:
            return
        is_open = _is_in_transaction(self.connection)
        has_begun = self._has_begun or _changes(self.connection) > self._changes_before
        self._was_committed = self._was_committed or (has_begun and is_open is False)
        self._has_begun = self._has_begun or bool(is_open)

    def _note_commit(self, *_: object) -> None:
        self._was_committed = True

    def _note_rollback(self, *_: object) -> None:
        self._was_rolled_back = True

    def _begin_before_savepoint(self, *_: object) -> None:
        """Begin a transaction of SQLite, in which a savepoint outside of one would commit when it is released."""
        if self.connection.dialect.name == "sqlite" and not _is_in_transaction(self.connection):
            self.connection.exec_driver_sql("BEGIN IMMEDIATE")


def _look_and_call(look: Callable[[Session], None], session: Session, function: Callable[[], None]) -> None:
    look(session)
    function()


_current: ContextVar[HandlerTransaction | None] = ContextVar("followup_handler_transaction", default=None)


def transaction_on(connection: Connection) -> HandlerTransaction:
    """Return the transaction of the handler that runs now, or one for a connection that a test has made."""
    current = _current.get()
    return current if current is not None and current.connection is connection else HandlerTransaction(connection)


def _is_in_transaction(connection: Connection) -> bool | None:
    """Return whether the database has begun a transaction; None if the driver does not tell."""
    driver: Any = connection.connection.driver_connection
    if connection.dialect.name == "sqlite":
        return bool(driver.in_transaction)
    status = getattr(getattr(driver, "info", None), "transaction_status", None)
    return None if status is None else status != _IDLE


def _changes(connection: Connection) -> int:
    """Return how many rows a connection of SQLite has changed, also by a script that commits by itself."""
    return int(getattr(connection.connection.driver_connection, "total_changes", 0))


# These two stay for the whole process. Each handler could add and remove its own, but SQLAlchemy keeps those of a class
# in a list that another thread may iterate over at this moment. While no handler runs, they do nothing.
@event.listens_for(Session, "after_attach")
def _notice_object(session: Session, instance: object) -> None:
    transaction = _current.get()
    if transaction is not None:
        try:
            bind = session.get_bind(type(instance))
        except UnboundExecutionError:
            return
        if bind is transaction.connection:
            transaction.notice(session)


@event.listens_for(Session, "after_begin")
def _notice_transaction(session: Session, begun: SessionTransaction, connection: Connection) -> None:
    transaction = _current.get()
    if transaction is not None and connection is transaction.connection:
        transaction.notice(session)
        savepoint = connection.get_nested_transaction()
        makes_one = session.join_transaction_mode in ("create_savepoint", "conditional_savepoint")
        if savepoint is not None and (begun.nested or makes_one):
            transaction.notice_savepoint(session, savepoint)
