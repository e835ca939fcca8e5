"""Handles events: claims one, calls its handler in a transaction, and settles it."""

import inspect
import json
import logging
import threading
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import attrs
from sqlalchemy import Connection, func, select
from sqlalchemy.exc import SQLAlchemyError, StatementError

from followup._codec.decode import decode
from followup._store.clock import StoreTime
from followup._store.database import Database
from followup._store.leases import retry_wait
from followup._store.locks import limit_idle_time
from followup._store.problems import reason_of
from followup._telemetry.stores import StoreTelemetry
from followup._webhook_event import WebhookEvent
from followup.inbox.claims import (
    ABANDONED,
    Claim,
    claim_next,
    is_work_due,
    mark_done,
    mark_failed,
    mark_unhandled,
)
from followup.inbox.handlers import EVENT_TYPES, Handler, Handlers, Received
from followup.inbox.tables import EVENTS, IN_FLIGHT, WAITING

POLL_SECONDS = 0.5
"""Seconds until a worker that found nothing to do looks again."""

LONGEST_OUTAGE_WAIT = 30.0
"""Seconds, at most, until a worker tries the database again that could not be reached."""

LONGEST_ERROR = 10_000

logger = logging.getLogger("followup.inbox")


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


_ENDED = "the handler committed or rolled back received.connection; the inbox does that after it has returned"


class _TransactionEndedError(Exception):
    """The handler ended its transaction, so that its writes and the mark cannot commit together."""


class _LeaseEndedError(Exception):
    """The handler took longer than its lease."""


@attrs.frozen
class Worker:
    """Handles the events of an inbox in the calling thread."""

    database: Database
    name: str
    clock: StoreTime
    handlers: Handlers
    timeout: float
    max_attempts: int
    telemetry: StoreTelemetry

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
        """Handle events until ``stop`` is set; wait while there are none, or the database cannot be reached."""
        failures = 0
        while not stop.is_set():
            try:
                check_tables()
                self.drain(None, stop)
            except SQLAlchemyError as error:
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
            if not is_work_due(connection, self.name, self.clock, self.timeout):
                return False
        with self.database.transaction() as connection:
            turn = claim_next(connection, self.name, self.clock, self.timeout, self.max_attempts)
        counts["dead"] += turn.died
        if turn.claim is None:
            return turn.died > 0
        counts[self._handle(turn.claim)] += 1
        return True

    def _handle(self, claim: Claim) -> str:
        handler = self.handlers.find(claim.type)
        if handler is None:
            with self.database.transaction() as connection:
                mark_unhandled(connection, claim, self.clock)
            logger.info("event %s is kept as unhandled: %s has no handler", claim.event_id, claim.type)
            return "unhandled"
        began = self.clock.monotonic()
        try:
            with self._recorded(claim), self.database.transaction() as connection:
                self._call(handler, claim, connection)
        except Exception as error:  # noqa: BLE001 - whatever a handler raises, the event is tried again
            # PostgreSQL ends a transaction that is idle for too long, which looks like a lost connection.
            is_late = isinstance(error, SQLAlchemyError) and self.clock.monotonic() - began >= self.timeout
            return self._fail(claim, _LeaseEndedError(ABANDONED) if is_late else error)
        return "done"

    def _recorded(self, claim: Claim) -> AbstractContextManager[None]:
        known = claim.type if claim.type in EVENT_TYPES else None
        return self.telemetry.handling(self.name, known, claim.attempt, lambda: self._recorder_of(claim))

    def _recorder_of(self, claim: Claim) -> str | None:
        """Return the trace in which the outbox of this database recorded the cause of an event."""
        from followup.outbox.recorders import recorder_of  # only programs with telemetry need it

        try:
            return recorder_of(self.database, self.name, claim.type, json.loads(claim.body)["data"])
        except SQLAlchemyError as error:
            logger.warning("the cause of event %s is unknown: %s", claim.event_id, reason_of(error))
            return None

    def _call(self, handler: Handler, claim: Claim, connection: Connection) -> None:
        """Call the handler; nothing is written before it, and the mark that the event is done is the last statement."""
        event = decode(WebhookEvent, json.loads(claim.body))
        limit_idle_time(connection, self.timeout)
        call: Callable[[Received], object] = handler  # whatever its annotation promises
        try:
            result = call(Received(event, connection, claim.is_stale, claim.attempt))
        except Exception as error:
            if connection.in_transaction() or connection.invalidated:
                raise
            raise _TransactionEndedError(_ENDED) from error
        if not connection.in_transaction():
            raise _TransactionEndedError(_ENDED)
        if inspect.iscoroutine(result) or inspect.isgenerator(result):
            result.close()
            raise TypeError("the handler returned a coroutine or generator, whose code has not run")
        if not mark_done(connection, claim, self.clock):
            raise _LeaseEndedError(ABANDONED)

    def _fail(self, claim: Claim, error: Exception) -> str:
        # Once more would repeat what such a handler has committed already.
        is_last = claim.attempt >= self.max_attempts or isinstance(error, _TransactionEndedError)
        with self.database.transaction() as connection:
            wait = mark_failed(connection, claim, self.clock, _described(error), is_last=is_last)
        if wait is None:
            outcome = "another process has it"
        else:
            outcome = "it is dead" if is_last else f"next attempt in {wait / 1000:.1f} s"
        # Neither the text of the error nor its traceback: both may show a patient's data.
        logger.warning(
            "event %s, attempt %d failed: %s%s; %s",
            claim.event_id,
            claim.attempt,
            type(error).__name__,
            _places(error),
            outcome,
        )
        return "dead" if is_last and wait is not None else "failed"


def _described(error: Exception) -> str:
    """Return the error as it is stored, as text that PostgreSQL takes."""
    if isinstance(error, StatementError):
        error.hide_parameters = True
    own = isinstance(error, (_LeaseEndedError, _TransactionEndedError))
    text = str(error) if own else "".join(traceback.format_exception_only(error)).strip() + _places(error)
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()[:LONGEST_ERROR]


def _places(error: Exception) -> str:
    """Return the file and line of the calls that led to the error, from the handler on."""
    frames = [each for each in traceback.extract_tb(error.__traceback__) if each.filename != __file__]
    return " at " + " > ".join(f"{Path(each.filename).name}:{each.lineno}" for each in frames[:5]) if frames else ""
