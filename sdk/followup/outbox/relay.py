"""A relay: claims events, sends them, and settles them, until nothing is due.

A relay may be killed at any moment. Before the claim has committed, nothing has happened. After it, the events belong
to the relay until their lease ends, and then another one sends them again under the same ids, which has no effect on
those that the service had accepted. Each call ends before its lease does, and only the holder of a lease can settle its
events, so a relay that was frozen meanwhile changes nothing.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from followup._results.errors import (
    APIStatusError,
    APITimeoutError,
    AuthenticationError,
    ConfigurationError,
    PermissionDeniedError,
)
from followup._store.clock import StoreTime, current_time, time_of
from followup._store.database import Database
from followup._store.leases import retry_wait
from followup._store.locks import take_lock
from followup._store.problems import reason_of
from followup._telemetry.stores import StoreTelemetry
from followup.outbox import calls, governor, upkeep
from followup.outbox.claims import (
    LONGEST_LEASE,
    LONGEST_WAIT,
    Claim,
    Settlement,
    Wait,
    claim,
    find_due,
    lock_name,
    settle,
)
from followup.outbox.reports import DrainReport
from followup.resources.event_batches import without_position

if TYPE_CHECKING:
    from followup._client import FollowUp

logger = logging.getLogger("followup.outbox")

_LEASE_FACTOR = 1.25
_LEASE_MARGIN = 5.0
"""A lease is longer than its call by a quarter of the call and this many seconds, to store the results in time."""

LONGEST_CALL = (LONGEST_LEASE - _LEASE_MARGIN) / _LEASE_FACTOR
"""Seconds of a call. Fewer if the client has a shorter timeout."""

_LONGEST_WAIT_AFTER_FAILED_CALL = 30.0
"""Seconds until an event is sent again whose call failed as a whole; all relays pause in addition."""

_LONGEST_PAUSE = 30.0
"""Seconds until the next try after the API key was rejected, or the database failed."""

POLL_SECONDS = 1.0
"""Time between two looks for events that are due."""

_MOST_FAILURES = 3
"""Calls that may fail in a row before a drain ends: the service cannot be reached now."""


class Relay:
    """Sends the events of an outbox with one client.

    Args:
        database: the database of the outbox.
        name: name of the outbox.
        client: a synchronous client. Its retries are not used: each attempt is reserved in the request rate.
        default_time: the clock, unless the client lives in virtual time.
        requests_per_minute: maximum number of calls in any 60 s by all relays.
        holds: whether a rejected event blocks the later events of its subject.
        telemetry: links each call to the traces in which its events were recorded.
    """

    def __init__(
        self,
        database: Database,
        name: str,
        client: "FollowUp",
        default_time: StoreTime,
        *,
        requests_per_minute: int,
        holds: bool,
        telemetry: StoreTelemetry,
    ) -> None:
        self._database = database
        self._name = name
        self._client = client
        self._requests_per_minute = requests_per_minute
        self._holds = holds
        self._telemetry = telemetry
        self._clock = time_of(client, default_time)
        limits = (LONGEST_CALL, client._options.attempt_seconds, client._options.deadline)
        self._call_seconds = min(each for each in limits if each is not None)
        self._lease_seconds = self._call_seconds * _LEASE_FACTOR + _LEASE_MARGIN
        self._failures = 0
        self._has_renewed = False

    def work(self, report: DrainReport, deadline: float | None, stop: threading.Event | None) -> None:
        """Send events until none is due, the time is up, the service cannot be reached, or ``stop`` is set.

        Args:
            report: counts what happens, also if an error is raised.
            deadline: seconds; None for no limit.
            stop: ends the work after the call that is in flight.

        Raises:
            AuthenticationError, PermissionDeniedError: the service rejects the API key. The events wait again.
        """
        self._renew_subjects()
        self._failures = 0
        ends = None if deadline is None else self._clock.monotonic() + deadline
        while self._failures < _MOST_FAILURES and not (stop is not None and stop.is_set()):
            left = None if ends is None else ends - self._clock.monotonic()
            if left is not None and left <= 0:
                return
            found = self._find_due()
            if found is None:
                return
            began = self._clock.monotonic()
            claimed = self._claim(found)
            if claimed is None:
                continue  # leases have ended, or other relays have these events
            if isinstance(claimed, Wait):
                self._clock.wait(claimed.seconds if left is None else min(claimed.seconds, left), stop)
                continue
            self._send(claimed, report, began, left)

    def rounds(self, stop: threading.Event, check: Callable[[], None], *, raise_denied: bool) -> Iterator[DrainReport]:
        """Work until ``stop`` is set, and yield the report of each round, with a wait between two rounds.

        Args:
            stop: ends the work after the call that is in flight.
            check: checks the tables in each round, because the database may not be reachable at the start.
            raise_denied: whether a rejected API key ends the work; otherwise it is logged.
        """
        troubles = 0
        while not stop.is_set():
            report, wait = DrainReport(), POLL_SECONDS
            try:
                check()
                self.work(report, None, stop)
                troubles = 0
            except (AuthenticationError, PermissionDeniedError) as error:
                if raise_denied:
                    raise
                troubles += 1
                logger.error("outbox %s: the service rejects the API key: %s", self._name, error)  # noqa: TRY400
            except ConfigurationError:
                raise
            except Exception as error:  # noqa: BLE001 - whatever it is, the events have to be sent
                troubles += 1
                what = "the database" if isinstance(error, SQLAlchemyError) else "the relay"
                logger.error("outbox %s: %s failed: %s", self._name, what, reason_of(error))  # noqa: TRY400 - the traceback may show data
            yield report
            if troubles:
                wait = retry_wait(troubles, _LONGEST_PAUSE) / 1000
            self._clock.wait(wait, stop)

    def _renew_subjects(self) -> None:
        if self._has_renewed:
            return
        with self._database.transaction() as connection:
            is_due = upkeep.has_older_subjects(connection)
        if is_due:
            with self._database.transaction() as connection:
                upkeep.renew_subjects(connection)
        self._has_renewed = True

    def _find_due(self) -> Sequence[int] | None:
        with self._database.transaction() as connection:
            return find_due(connection, self._name, self._clock)

    def _claim(self, found: Sequence[int]) -> Claim | Wait | None:
        with self._database.transaction() as connection:
            return claim(
                connection,
                self._name,
                self._clock,
                found,
                requests_per_minute=self._requests_per_minute,
                lease_seconds=self._lease_seconds,
            )

    def _send(self, claimed: Claim, report: DrainReport, began: float, left: float | None) -> None:
        slack = (self._lease_seconds - self._call_seconds) / 2
        if self._clock.monotonic() - began > slack:
            # This process was frozen. A call that begins now could outlive its lease.
            self._settle(claimed, _unsent(claimed), governor.not_made)
            return
        seconds = self._call_seconds if left is None else min(self._call_seconds, left)
        try:
            with self._telemetry.linked_to(each.trace_context for each in claimed.events):
                outcome = calls.send(self._client.with_options(max_retries=0, deadline=seconds), claimed)
        except Exception as error:
            # The error of one event, such as one that is nested too deeply, must not hold up the others for ever.
            self._settle(claimed, _apart(claimed, reason_of(error)), governor.ended)
            raise
        except BaseException:
            settlement = _all_wait(claimed, _LONGEST_WAIT_AFTER_FAILED_CALL, "the call was interrupted")
            self._settle(claimed, settlement, governor.ended)
            raise
        match outcome:
            case calls.Results():
                self._store_results(claimed, outcome, report)
            case calls.RejectedAsAWhole() if len(claimed.events) > 1:
                self._split(claimed, outcome.error)
            case calls.RejectedAsAWhole(names_an_event=True):
                self._reject(claimed, outcome.error, report)
            case calls.Failed(error=APITimeoutError()) if seconds < self._call_seconds:
                # The deadline of this drain ended the call, which says nothing about the service.
                settlement = _all_wait(claimed, _LONGEST_WAIT_AFTER_FAILED_CALL, "the deadline of the drain was over")
                if self._settle(claimed, settlement, governor.ended):
                    report.failed += len(claimed.events)
            case calls.RejectedAsAWhole():
                # Whether the event or the whole call is wrong is unknown. The others do not wait for it.
                self._give_back(claimed, calls.Failed(outcome.error, None), report, LONGEST_WAIT)
            case calls.Failed():
                self._give_back(claimed, outcome, report, _LONGEST_WAIT_AFTER_FAILED_CALL)

    def _store_results(self, claimed: Claim, outcome: calls.Results, report: DrainReport) -> None:
        self._failures = 0
        # Of contradictory results for an event, that counts which loses nothing: accepted, else to be tried again.
        in_order = sorted(outcome.results, key=lambda result: (result.accepted, result.status != "invalid"))
        by_id = {result.id: result for result in in_order}
        accepted, duplicates, rejected, waits, errors = [], 0, {}, {}, {}
        for event in claimed.events:
            result = by_id.get(event.id)
            if result is not None and result.accepted:
                accepted.append(event.id)
                duplicates += result.status == "duplicate"
            elif result is not None and result.status == "invalid":
                rejected[event.id] = calls.reason_of(result)
            else:
                waits[event.id] = retry_wait(event.attempts, LONGEST_WAIT)
                errors[event.id] = "the response has no result for it" if result is None else calls.reason_of(result)
        settlement = Settlement(accepted=accepted, rejected=rejected, waits=waits, errors=errors)
        if self._settle(claimed, settlement, governor.ended, succeeded=True):
            report.sent += len(accepted) - duplicates
            report.duplicates += duplicates
            report.rejected += len(rejected)
            report.failed += len(waits)
        # A failed event is retried for ever, and holds its subject: whoever reads the log has to learn of it.
        logger.log(
            logging.WARNING if waits or rejected else logging.INFO,
            "outbox %s: sent %s: %d accepted (%d duplicates), %d failed, %d rejected",
            self._name, _events(len(claimed.events)), len(accepted), duplicates, len(waits), len(rejected),
        )  # fmt: skip

    def _split(self, claimed: Claim, error: APIStatusError) -> None:
        """Send the events again in smaller batches, down to the one that spoils them."""
        self._settle(claimed, _apart(claimed, str(error)), governor.ended)
        logger.warning("outbox %s: a batch of %s was rejected as a whole", self._name, _events(len(claimed.events)))

    def _reject(self, claimed: Claim, error: APIStatusError, report: DrainReport) -> None:
        """Give up the only event of a batch, which the service has named."""
        self._failures = 0
        settlement = Settlement(rejected={event.id: without_position(error.message) for event in claimed.events})
        if self._settle(claimed, settlement, governor.ended, succeeded=True):
            report.rejected += len(claimed.events)
        logger.warning("outbox %s: the service rejected an event", self._name)

    def _give_back(self, claimed: Claim, outcome: calls.Failed, report: DrainReport, longest_wait: float) -> None:
        """Let the events wait again, after a call that decided nothing about them."""
        self._failures += 1
        settlement = _all_wait(claimed, longest_wait, str(outcome.error))
        if self._settle(claimed, settlement, governor.ended, failure=outcome):
            report.failed += len(claimed.events)
        if isinstance(outcome.error, (AuthenticationError, PermissionDeniedError, ConfigurationError)):
            raise outcome.error
        logger.warning("outbox %s: a call failed, its events wait again: %s", self._name, outcome.error)

    def _settle(
        self,
        claimed: Claim,
        settlement: Settlement,
        free: Callable[[Connection, str, int], None],
        *,
        succeeded: bool = False,
        failure: calls.Failed | None = None,
    ) -> bool:
        """Store the outcome of a claim, and return whether it still was this process's to store."""
        with self._database.transaction() as connection:
            take_lock(connection, lock_name(self._name))
            now = current_time(connection, self._clock)
            free(connection, claimed.lease_token, now)
            if succeeded:
                governor.succeeded(connection, self._name)
            if failure is not None:
                governor.failed(connection, self._name, now, failure.retry_after)
            is_ours = settle(connection, self._name, now, claimed.lease_token, settlement, holds=self._holds)
        if not is_ours:
            logger.warning("outbox %s: a lease ended before its results were stored; they are ignored", self._name)
        return is_ours


def _all_wait(claimed: Claim, longest: float, reason: str) -> Settlement:
    waits = {event.id: retry_wait(event.attempts, longest) for event in claimed.events}
    return Settlement(waits=waits, errors=dict.fromkeys(waits, reason))


def _apart(claimed: Claim, reason: str) -> Settlement:
    """Let the events be sent in smaller batches at once; an event that was alone waits."""
    size = len(claimed.events)
    if size == 1:
        return _all_wait(claimed, LONGEST_WAIT, reason)
    waits = {event.id: 0 for event in claimed.events}
    errors = dict.fromkeys(waits, reason)
    return Settlement(waits=waits, errors=errors, batch_limit=size // 2, counts_as_attempt=False)


def _unsent(claimed: Claim) -> Settlement:
    return Settlement(waits={event.id: 0 for event in claimed.events}, counts_as_attempt=False)


def _events(count: int) -> str:
    return "1 event" if count == 1 else f"{count} events"
