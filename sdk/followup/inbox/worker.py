"""Handles events: claims one, calls its handler in a transaction, and settles it."""

import contextlib
import gc
import inspect
import json
import logging
import sysconfig
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import sqlalchemy
from sqlalchemy.exc import SQLAlchemyError, StatementError

import followup
from followup._core.codec.decode import decode
from followup._core.tracebacks import clear_frames
from followup._store.cipher import UnreadableRows
from followup._store.execution import kind_of_error
from followup._store.leases import limit_idle_time
from followup._store.store import Store
from followup.inbox import claims
from followup.inbox.handlers import (
    SYNCHRONOUS,
    HandlerError,
    Handlers,
    HandlerTransaction,
    LeaseEndedError,
    Received,
    TransactionEndedError,
)
from followup.inbox.upkeep import DrainReport
from followup.resources.webhook_event import WebhookEvent

if TYPE_CHECKING:
    from followup._store.execution import Execution

logger: logging.Logger = logging.getLogger("followup.inbox")


_LARGEST_CHAIN = 10
"""Exceptions of a chain that a log shows."""

_HEADER = "Traceback (most recent call last):"

_LARGEST_STACK = 30
"""Calls of an exception that a log shows; a recursion without end has a thousand."""

_OURS = str(Path(__file__).parent)
_OF_OURS = (followup.__path__[0], contextlib.__file__)
_OF_SQLALCHEMY = sqlalchemy.__path__[0]
_LIBRARIES = tuple(sysconfig.get_path(each) for each in ("stdlib", "purelib", "platlib"))


_NOT_DONE = (
    "the handler has returned, but received.done(connection) has not committed: call it in your own transaction, and "
    "commit before the handler returns"
)


class Worker:
    """Handles the events of an inbox in the calling thread.

    Args:
        store: the inbox, whose tables were checked.
        handlers: the handlers of the inbox.
        handler_timeout: seconds that a handler may take.
        max_attempts: number of attempts after which an event is dead.
        raises: whether the exception of a handler leaves ``work``, once it has been recorded.
    """

    def __init__(
        self, store: Store, handlers: Handlers, handler_timeout: float, max_attempts: int, *, raises: bool = False
    ) -> None:
        self._store = store
        self._database = store._database
        self._clock = store._clock
        self._handlers = handlers
        self._timeout = handler_timeout
        self._max_attempts = max_attempts
        self._raises = raises
        self.unreadable: UnreadableRows = UnreadableRows(store._cipher)

    def work(self, report: DrainReport, deadline: float | None, stop: threading.Event) -> None:
        """Handle what is due, until nothing is, the deadline is over, or ``stop`` is set; the report counts it."""
        began = self._clock.monotonic()
        self.unreadable.begin(began)
        while deadline is None or self._clock.monotonic() - began < deadline:
            if stop.is_set() or not self._handle_next(report):
                break

    def _handle_next(self, report: DrainReport) -> bool:
        """Handle one event; return whether there was anything to do."""
        name = self._store.name
        # Without the lock, so that an idle worker writes nothing, and waits for nobody.
        with self._database.transaction() as connection:
            now = self._clock.sql(self._database.dialect)
            if not claims.is_work_due(connection, name, now, self._timeout, self.unreadable):
                self._database.check_writable(connection)
                return False
        claim, died = self._store._locked(
            lambda connection, now: claims.claim_next(
                connection, name, now, self._timeout, self._max_attempts, self.unreadable
            )
        )
        report.dead += died
        if claim is None:
            return died > 0
        outcome = self._handle(claim)
        setattr(report, outcome, getattr(report, outcome) + 1)
        return True

    def _handle(self, claim: claims.Claim) -> str:
        handler = self._handlers.find(claim.type)
        if handler is None:
            with self._database.transaction() as connection:
                claims.mark_unhandled(connection, claim, self._clock)
            logger.info("event %s is kept as unhandled: %s has no handler", claim.event_id, claim.type)
            return "unhandled"
        began = self._clock.monotonic()
        call = self._call_alone if handler.has_own_transaction else self._call
        try:
            call(self._handlers.watched(handler.function), claim)
        except Exception as error:  # noqa: BLE001 - whatever a handler raises, the event is tried again
            # A server ends a transaction that is idle for too long, which looks like a lost connection.
            is_late = isinstance(error, SQLAlchemyError) and self._clock.monotonic() - began >= self._timeout
            failure = LeaseEndedError(claims.ABANDONED) if is_late else error
        else:
            logger.info("event %s (%s), attempt %d: done", claim.event_id, claim.type, claim.attempt)
            return "done"
        try:
            outcome = self._settle_failed(claim, failure, may_be_done=handler.has_own_transaction)
            if self._raises:
                raise failure
            return outcome
        finally:
            del failure  # its traceback refers to this frame, and to those of the handler, which may hold connections

    def _call(self, function: Callable[[Received], object], claim: claims.Claim) -> None:
        """Call a handler; nothing is written before it, and the mark that the event is done is the last statement."""
        event = decode(WebhookEvent, json.loads(claim.body))
        with self._database.transaction(of_user=True) as connection:
            limit_idle_time(connection, self._timeout)
            transaction = HandlerTransaction(connection)
            with transaction.watched():
                try:
                    result = function(Received(event, connection, claim.is_stale, claim.attempt))
                except Exception as error:
                    transaction.check(error)
                    raise
                transaction.check()
            # Before the mark: an event whose work has not run must not be done.
            check_result(result)
            if not claims.mark_done(connection, claim, self._clock, self._database.schema):
                raise LeaseEndedError(claims.ABANDONED)

    def _call_alone(self, function: Callable[[Received], object], claim: claims.Claim) -> None:
        """Call a handler that opens a transaction of its own. Meanwhile there is none of the inbox, only its lease."""
        from followup.outbox.connections import Recording, record_on  # imports every kind of connection

        async def mark(execute: "Execution") -> None:
            ours = execute.within(self._database.schema)
            await claims.mark_done_on(ours, claim, self._clock, self._timeout)

        marking = Recording(mark, self._store._comparison)
        event = decode(WebhookEvent, json.loads(claim.body))
        received = Received(
            event, None, claim.is_stale, claim.attempt, lambda connection: record_on(connection, marking)
        )
        check_result(function(received))
        if not self._is_marked(claim):
            raise HandlerError(_NOT_DONE)

    def _is_marked(self, claim: claims.Claim) -> bool:
        with self._database.transaction() as connection:
            return claims.is_marked(connection, claim)

    def _settle_failed(self, claim: claims.Claim, error: Exception, *, may_be_done: bool) -> str:
        if not self._raises:
            # A connection that only these frames hold is closed now, and with it a transaction that locks the row.
            clear_frames(error)
            if not self._database.dialect.is_server:
                gc.collect(1)  # a connection of sqlite3 refers to itself
        # What the log says if the database fails now: the reason of the handler must not get lost.
        outcome = "this cannot be recorded now"
        try:
            state, outcome = self._mark_failed(claim, error, may_be_done=may_be_done)
        finally:
            _log_failure(claim, error, outcome)
        return state

    def _mark_failed(self, claim: claims.Claim, error: Exception, *, may_be_done: bool) -> tuple[str, str]:
        """Let an event wait or die, unless it is done; return how the attempt counts, and what comes next in words."""
        if may_be_done and self._is_marked(claim):
            return "done", "the event is done, because received.done had committed before"
        # Once more would repeat what such a handler has committed already.
        is_last = claim.attempt >= self._max_attempts or isinstance(error, TransactionEndedError)
        with self._database.transaction() as connection:
            reason = self._store._cipher.reason(_stored_text(error)) or ""
            wait = claims.mark_failed(connection, claim, self._clock, reason, is_last=is_last)
        if wait is None:
            return "failed", "another process has it"
        return ("dead", "it is dead") if is_last else ("failed", f"next attempt in {wait / 1000:.1f} s")


def check_result(result: object) -> None:
    """Check that a handler has done its work, and not returned something that would do it.

    Raises:
        TypeError: it returned an awaitable such as a coroutine, a lazy iterator such as a generator, or a Future.
    """
    is_future = hasattr(type(result), "add_done_callback")  # that of concurrent.futures is no awaitable
    # Other iterators have done theirs: a result of SQLAlchemy, a cursor, a file.
    is_lazy = isinstance(result, Iterator) and type(result).__module__ in ("builtins", "itertools")
    if is_future or is_lazy or inspect.isawaitable(result) or inspect.isasyncgen(result):
        if inspect.iscoroutine(result) or inspect.isgenerator(result):
            result.close()  # else Python warns that nobody has awaited it
        raise TypeError(
            f"the handler returned an object of type {type(result).__name__}, whose work is perhaps not done; "
            f"{SYNCHRONOUS}"
        )


def _log_failure(claim: claims.Claim, error: Exception, outcome: str) -> None:
    # Of an error of ours, the text has no data.
    text = str(error) if isinstance(error, HandlerError) else f"{kind_of_error(error)}{_places(error)}"
    trace = _logged_traceback(error)
    logger.warning("event %s, attempt %d failed: %s; %s\n%s", claim.event_id, claim.attempt, text, outcome, trace)


def _stored_text(error: Exception) -> str:
    """Return an error as it is stored."""
    if isinstance(error, HandlerError):
        return str(error)
    if isinstance(error, StatementError):
        error.hide_parameters = True
    return "".join(traceback.format_exception_only(error)).strip() + _places(error)


def _logged_traceback(error: BaseException) -> str:
    """Return the traceback of an error and of what led to it, without any text, source code or local variables."""
    parts: list[str] = []
    current: BaseException | None = error
    # Causes may form a circle.
    while current is not None and len(parts) < _LARGEST_CHAIN:
        parts.append("\n".join([_HEADER, *_calls(traceback.walk_tb(current.__traceback__)), _type(current)]))
        context = None if current.__suppress_context__ else current.__context__
        current = context if current.__cause__ is None else current.__cause__
    return "\n\nThe exception above led to this one:\n\n".join(reversed(parts))


def _calls(frames: Iterable[tuple[FrameType, int]]) -> list[str]:
    lines = [
        f'  File "{frame.f_code.co_filename}", line {line}, in {frame.f_code.co_name}'
        for frame, line in frames
        if not frame.f_code.co_filename.startswith(_OURS)
    ]
    return lines[-_LARGEST_STACK:]


def _type(error: BaseException) -> str:
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _places(error: BaseException) -> str:
    """Return the file and line of the calls of the user's code that led to the error, from the handler on."""
    frames = ((frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__))
    calls = [(name, line) for name, line in frames if not name.startswith(_OF_OURS)]
    if calls and calls[0][0].startswith(_OF_SQLALCHEMY):
        return ""  # a statement of ours failed
    # The user's code may be installed too, where nobody can tell it from a library.
    chosen = [each for each in calls if not each[0].startswith(_LIBRARIES)] or calls[:1]
    return f" at {' > '.join(f'{Path(name).name}:{line}' for name, line in chosen[:5])}" if chosen else ""
