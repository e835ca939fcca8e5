"""The transaction of a handler, in which its writes and the mark that its event is done commit together.

Whatever would part them is an error: a handler that ends the transaction, or one that leaves objects in an ORM session
that nobody flushes.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from sqlalchemy import Connection, event
from sqlalchemy.exc import UnboundExecutionError
from sqlalchemy.orm import Session

from followup._frames import clears_frames
from followup.inbox.failures import HandlerError, TransactionEndedError

_ENDED = "the handler committed or rolled back received.connection; the inbox does that after it has returned"
_COMMITTED = "the handler called commit() in received.session(); the inbox commits after the handler has returned"
_LEFT = "an exception left received.session(), so that its work is rolled back, but the handler went on"
_IDLE = 0
"""The status of a connection to PostgreSQL without a transaction."""


class HandlerTransaction:
    """The transaction on ``received.connection``, while a handler runs."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._has_begun = False
        self._was_committed = False
        self._was_rolled_back = False
        self._failure: BaseException | None = None
        self._sessions: dict[int, Session] = {}
        self._lost: set[str] = set()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Watch the handler in the with block: the statements on its connection, and the sessions that use it."""
        token = _current.set(self)
        listeners = [
            ("before_cursor_execute", self._look),
            ("after_cursor_execute", self._look),
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
                vars(each).pop("expunge_all", None)

    def check_after(self, error: Exception) -> None:
        """Check that a handler that raised has committed nothing, so that it can be called again.

        Raises:
            TransactionEndedError: it has.
        """
        self._look()
        if self._was_committed:
            raise TransactionEndedError(_ENDED) from error

    def check(self) -> None:
        """Check, after the handler has returned, that nothing parts its writes from the mark.

        Raises:
            HandlerError: something does.
        """
        self._look()
        if self._was_committed:
            raise TransactionEndedError(_ENDED)
        if isinstance(self._failure, TransactionEndedError):
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
        with Session(self.connection) as session:
            event.listen(session, "before_commit", self._reject_commit)
            try:
                yield session
                session.flush()
            except BaseException as error:
                self._failure = self._failure or error
                raise

    def notice(self, session: Session) -> None:
        """Remember a session that uses the connection, and look at it before it forgets its objects."""
        if id(session) in self._sessions:
            return
        self._sessions[id(session)] = session
        expunge_all = session.expunge_all

        def look_and_expunge_all() -> None:
            self._find_lost(session)
            expunge_all()

        # Closing a session calls this method. There is no event that comes before the objects are gone.
        vars(session)["expunge_all"] = look_and_expunge_all

    def _find_lost(self, session: Session) -> None:
        changed = [each for each in session.dirty if session.is_modified(each)]
        self._lost.update(type(each).__qualname__ for each in (*session.new, *session.deleted, *changed))

    def _reject_commit(self, session: Session) -> None:
        if not session.in_nested_transaction():
            self._failure = TransactionEndedError(_COMMITTED)
            raise self._failure

    def _look(self, *_: object) -> None:
        """Notice a COMMIT in plain SQL or by the driver, of which SQLAlchemy knows nothing."""
        if self._was_rolled_back or self.connection.closed or self.connection.invalidated:
            return
        is_open = _is_in_transaction(self.connection)
        self._was_committed = self._was_committed or (self._has_begun and is_open is False)
        self._has_begun = self._has_begun or bool(is_open)

    def _note_commit(self, *_: object) -> None:
        self._was_committed = True

    def _note_rollback(self, *_: object) -> None:
        self._was_rolled_back = True

    def _begin_before_savepoint(self, *_: object) -> None:
        """Begin a transaction of SQLite, in which a savepoint outside of one would commit when it is released."""
        if self.connection.dialect.name == "sqlite" and not _is_in_transaction(self.connection):
            self.connection.exec_driver_sql("BEGIN IMMEDIATE")


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
def _notice_transaction(session: Session, _: object, connection: Connection) -> None:
    transaction = _current.get()
    if transaction is not None and connection is transaction.connection:
        transaction.notice(session)
