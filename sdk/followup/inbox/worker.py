"""Handles events: claims one, calls its handler in a transaction, and settles it."""

import gc
import json
import logging
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import attrs
from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError, StatementError

from followup._codec.decode import decode
from followup._frames import clear_frames
from followup._results.errors import ConfigurationError
from followup._store.clock import StoreTime
from followup._store.database import Database, Dialect, reason_of
from followup._store.leases import limit_idle_time, retry_wait
from followup._store.schema import IN_FLIGHT, WAITING
from followup.inbox import claims
from followup.inbox.claims import ABANDONED, Claim
from followup.inbox.handlers import Handler, Handlers, Received, check_result
from followup.inbox.tables import EVENTS
from followup.inbox.transactions import HandlerError, HandlerTransaction, LeaseEndedError, TransactionEndedError
from followup.webhooks import WebhookEvent

if TYPE_CHECKING:
    from followup.outbox.recording import Steps

POLL_SECONDS = 0.5
"""Seconds until a worker that found nothing to do looks again."""

LONGEST_OUTAGE_WAIT = 30.0
"""Seconds, at most, until a worker tries the database again that could not be reached."""

logger = logging.getLogger("followup.inbox")


_LARGEST_CHAIN = 10
"""Exceptions of a chain, or of a group, that a log shows."""

_LARGEST_STACK = 30
"""Calls of an exception that a log shows; a recursion without end has a thousand."""

_OURS = str(Path(__file__).parent)


@attrs.frozen
class DrainReport:
    """What a call of ``drain`` did.

    Attributes:
        done: number of events whose handler's transaction committed.
        failed: number of attempts that failed; their events are tried again.
        dead: number of events that failed for the last time.
        unhandled: number of events for which there was no handler.
        remaining: number of events that wait, for a retry too, or are in flight.
    """

    done: int
    failed: int
    dead: int
    unhandled: int
    remaining: int


_NOT_DONE = (
    "the handler has returned, but received.done(connection) has not committed: call it in your own transaction, and "
    "commit before the handler returns"
)


@attrs.frozen
class Worker:
    """Handles the events of an inbox in the calling thread.

    Attributes:
        raises: whether the exception of a handler leaves ``drain``, once it has been recorded.
    """

    database: Database
    name: str
    clock: StoreTime
    handlers: Handlers
    timeout: float
    max_attempts: int
    raises: bool = False

    def drain(self, deadline: float | None, stop: threading.Event | None) -> DrainReport:
        """Handle what is due, until nothing is, the deadline is over, or ``stop`` is set."""
        began = self.clock.monotonic()
        counts: Counter[str] = Counter()
        while deadline is None or self.clock.monotonic() - began < deadline:
            if (stop is not None and stop.is_set()) or not self._handle_next(counts):
                break
        with self.database.transaction() as connection:
            remaining = connection.execute(
                select(func.count()).where(EVENTS.c.name == self.name, EVENTS.c.state.in_([WAITING, IN_FLIGHT]))
            ).scalar_one()
        return DrainReport(
            done=counts["done"],
            failed=counts["failed"],
            dead=counts["dead"],
            unhandled=counts["unhandled"],
            remaining=remaining,
        )

    def run(self, stop: threading.Event, check_tables: Callable[[], None]) -> None:
        """Handle events until ``stop`` is set; wait while there are none, or the database fails."""
        failures = 0
        while not stop.is_set():
            try:
                check_tables()
                self.drain(None, stop)
            except ConfigurationError:
                raise
            except Exception as error:  # noqa: BLE001 - whatever it is, the events have to be handled
                failures += 1
                wait = retry_wait(failures, LONGEST_OUTAGE_WAIT) / 1000
                logger.error("no events handled for %.1f s: %s", wait, reason_of(error))  # noqa: TRY400 - the traceback may show data
            else:
                failures, wait = 0, POLL_SECONDS
            if not stop.is_set():
                self.clock.wait(wait, stop)

    def _handle_next(self, counts: Counter[str]) -> bool:
        """Handle one event; return whether there was anything to do."""
        with self.database.transaction() as connection:
            if not claims.is_work_due(connection, self.name, self.clock, self.timeout):
                return False
        with self.database.transaction() as connection:
            claim, died = claims.claim_next(connection, self.name, self.clock, self.timeout, self.max_attempts)
        counts["dead"] += died
        if claim is None:
            return died > 0
        counts[self._handle(claim)] += 1
        return True

    def _handle(self, claim: Claim) -> str:
        handler = self.handlers.find(claim.type)
        if handler is None:
            with self.database.transaction() as connection:
                claims.mark_unhandled(connection, claim, self.clock)
            logger.info("event %s is kept as unhandled: %s has no handler", claim.event_id, claim.type)
            return "unhandled"
        began = self.clock.monotonic()
        call = self._call_alone if handler.has_own_transaction else self._call
        try:
            with self._slowness_logged(claim):
                call(handler.function, claim)
        except Exception as error:  # noqa: BLE001 - whatever a handler raises, the event is tried again
            # PostgreSQL ends a transaction that is idle for too long, which looks like a lost connection.
            is_late = isinstance(error, SQLAlchemyError) and self.clock.monotonic() - began >= self.timeout
            failure = LeaseEndedError(ABANDONED) if is_late else error
        else:
            return "done"
        try:
            outcome = self._settle_failed(claim, failure, may_be_done=handler.has_own_transaction)
            if self.raises:
                raise failure
            return outcome
        finally:
            del failure  # its traceback refers to this frame, and to those of the handler, which may hold connections

    def _call(self, function: Handler, claim: Claim) -> None:
        """Call a handler; nothing is written before it, and the mark that the event is done is the last statement."""
        event = decode(WebhookEvent, json.loads(claim.body))
        with self.database.transaction() as connection:
            limit_idle_time(connection, self.timeout)
            transaction = HandlerTransaction(connection)
            with transaction.watched():
                try:
                    result = _result(function, Received(event, connection, claim.is_stale, claim.attempt))
                except Exception as error:
                    transaction.check_after(error)
                    raise
                transaction.check()
            check_result(result)
            if not claims.mark_done(connection, claim, self.clock):
                raise LeaseEndedError(ABANDONED)

    def _call_alone(self, function: Handler, claim: Claim) -> None:
        """Call a handler that opens a transaction of its own. Meanwhile there is none of the inbox, only its lease."""
        from followup.outbox.recording import record_on  # imports every kind of connection

        def steps(dialect: Dialect) -> "Steps":
            return claims.marking(claim, dialect, self.database.dialect, self.clock, self.timeout)

        event = decode(WebhookEvent, json.loads(claim.body))
        received = Received(event, None, claim.is_stale, claim.attempt, lambda connection: record_on(connection, steps))
        check_result(_result(function, received))
        if not self._is_marked(claim):
            raise HandlerError(_NOT_DONE)

    def _is_marked(self, claim: Claim) -> bool:
        with self.database.transaction() as connection:
            return claims.is_marked(connection, claim)

    @contextmanager
    def _slowness_logged(self, claim: Claim) -> Iterator[None]:
        """Log that a handler outlives its lease: this thread cannot be ended, and handles nothing else meanwhile."""
        thread = threading.get_ident()

        def report() -> None:
            frame = sys._current_frames().get(thread)
            logger.error(
                "event %s, attempt %d: the handler still runs after handler_timeout (%g s); this worker does nothing "
                "else until it returns, and another worker may begin the next attempt\n%s",
                claim.event_id,
                claim.attempt,
                self.timeout,
                _logged_stack(frame) if frame else "",
            )

        timer = threading.Timer(self.timeout, report)
        timer.daemon = True
        with suppress(RuntimeError):  # the process can start no more threads
            timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _settle_failed(self, claim: Claim, error: Exception, *, may_be_done: bool) -> str:
        if not self.raises:
            # A connection that only these frames hold is closed now, and with it a transaction that locks the row.
            clear_frames(error, of_user=True)
            if self.database.dialect == "sqlite":
                gc.collect(1)  # a connection of sqlite3 refers to itself
        try:
            state, outcome = self._mark_failed(claim, error, may_be_done=may_be_done)
        except Exception as problem:
            _log_failure(claim, error, f"this cannot be recorded now: {reason_of(problem)}")
            raise
        _log_failure(claim, error, outcome)
        return state

    def _mark_failed(self, claim: Claim, error: Exception, *, may_be_done: bool) -> tuple[str, str]:
        """Let an event wait or die, unless it is done; return how the attempt counts, and what comes next in words."""
        if may_be_done and self._is_marked(claim):
            return "done", "the event is done, because received.done had committed before"
        # Once more would repeat what such a handler has committed already.
        is_last = claim.attempt >= self.max_attempts or isinstance(error, TransactionEndedError)
        with self.database.transaction() as connection:
            wait = claims.mark_failed(connection, claim, self.clock, _stored_text(error), is_last=is_last)
        if wait is None:
            return "failed", "another process has it"
        return ("dead", "it is dead") if is_last else ("failed", f"next attempt in {wait / 1000:.1f} s")


def _log_failure(claim: Claim, error: Exception, outcome: str) -> None:
    logger.warning(
        "event %s, attempt %d failed: %s; %s\n%s",
        claim.event_id,
        claim.attempt,
        _logged_text(error),
        outcome,
        _logged_traceback(error),
    )


def _result(function: Handler, received: Received) -> object:
    call: Callable[[Received], object] = function  # whatever its annotation promises
    return call(received)


def _stored_text(error: Exception) -> str:
    """Return an error as it is stored."""
    if isinstance(error, HandlerError):
        return str(error)
    if isinstance(error, StatementError):
        error.hide_parameters = True
    return "".join(traceback.format_exception_only(error)).strip() + _places(error)


def _logged_text(error: Exception) -> str:
    """Return an error as a log may show it, in one line."""
    return str(error) if isinstance(error, HandlerError) else f"{type(error).__name__}{_places(error)}"


def _logged_traceback(error: BaseException) -> str:
    """Return the traceback of an error and of its causes, without any text of them, source code or local variables."""
    parts: list[str] = []
    current: BaseException | None = error
    seen: set[int] = set()
    while current is not None and id(current) not in seen and len(parts) < 2 * _LARGEST_CHAIN:
        seen.add(id(current))
        group = [f"  + {_type(each)}{_places(each)}" for each in _members(current)]
        calls = [*_calls(traceback.walk_tb(current.__traceback__))]
        parts.append("\n".join(["Traceback (most recent call last):", *calls, _type(current), *group]))
        if current.__cause__ is not None:
            parts.append("The above exception was the direct cause of the following exception:")
            current = current.__cause__
        else:
            parts.append("During handling of the above exception, another exception occurred:")
            current = None if current.__suppress_context__ else current.__context__
    return "\n\n".join(parts[-2::-1])


def _logged_stack(frame: FrameType) -> str:
    """Return where a thread is now, as a traceback from the handler on."""
    return "\n".join(_calls(reversed([*traceback.walk_stack(frame)])))


def _members(error: BaseException) -> Sequence[BaseException]:
    return error.exceptions[:_LARGEST_CHAIN] if isinstance(error, BaseExceptionGroup) else ()


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
    """Return the file and line of the calls that led to the error, from the handler on."""
    frames = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    found = [f"{Path(name).name}:{line}" for name, line in frames if not name.startswith(_OURS)]
    return f" at {' > '.join(found[:5])}" if found else ""
