"""A relay: claims events, sends them, and settles them, until nothing is due.

A relay may be killed at any moment. Before the claim has committed, nothing has happened. After it, the events belong
to the relay until their lease ends, and then another one sends them again under the same ids, which has no effect on
those that the service had accepted. Each call ends before its lease does, and only the holder of a lease can settle its
events, so a relay that was frozen meanwhile changes nothing.
"""

import logging
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING

import attrs
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from followup._results.errors import (
    APIStatusError,
    APITimeoutError,
    AuthenticationError,
    ConfigurationError,
    FollowUpError,
    IdempotencyError,
    PermissionDeniedError,
    RateLimitError,
)
from followup._store.clock import StoreTime, time_of
from followup._store.database import Database, reason_of
from followup._store.leases import retry_wait, take_lock
from followup._store.schema import DEAD, WAITING
from followup.outbox import claims, governor, upkeep
from followup.outbox.claims import LONGEST_LEASE, LONGEST_WAIT, Claim, ClaimedEvent, Settlement, Verdict
from followup.outbox.events import WIRE_NAMES, as_input
from followup.outbox.tables import SENT
from followup.outbox.upkeep import DrainReport
from followup.resources.event_batches import EventBatchError, EventResult, without_position

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

_WITHOUT_RETRY_AFTER = 1.0
"""Seconds to wait after a 429 that does not say how long."""


@attrs.frozen
class RejectedAsAWhole:
    """The batch was rejected without a result for each event: it is too large, or one event spoils it.

    Attributes:
        error: the error of the call.
        names_an_event: whether the response is the service's and says that an event is invalid or too large. Only then
            does it decide about the event of a batch of one: the page of a proxy has the same status.
    """

    error: APIStatusError
    names_an_event: bool


@attrs.frozen
class Failed:
    """The call failed, which decides nothing about its events.

    Attributes:
        retry_after: seconds that the service asked to wait.
    """

    error: FollowUpError
    retry_after: float | None


class Relay:
    """Sends the events of an outbox with one client.

    Args:
        database: the database of the outbox.
        name: name of the outbox.
        client: a synchronous client. Its retries are not used: each attempt is reserved in the request rate.
        default_time: the clock, unless the client lives in virtual time.
        requests_per_minute: maximum number of calls in any 60 s by all relays.
        holds: whether a rejected event blocks the later events of its subject.
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
    ) -> None:
        self._database = database
        self._name = name
        self._client = client
        self._requests_per_minute = requests_per_minute
        self._holds = holds
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
            if isinstance(claimed, claims.Wait):
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
            return claims.find_due(connection, self._name, self._clock)

    def _claim(self, found: Sequence[int]) -> Claim | claims.Wait | None:
        with self._database.transaction() as connection:
            return claims.claim(
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
            self._settle(claimed, _at_once(claimed), governor.not_made)
            return
        seconds = self._call_seconds if left is None else min(self._call_seconds, left)
        try:
            outcome = _outcome_of(self._client.with_options(max_retries=0, deadline=seconds), claimed)
        except Exception as error:
            # The error of one event, such as one that is nested too deeply, must not hold up the others for ever.
            self._settle(claimed, _apart(claimed, reason_of(error)))
            raise
        except BaseException:
            settlement = _all_wait(claimed, _LONGEST_WAIT_AFTER_FAILED_CALL, "the call was interrupted")
            self._settle(claimed, settlement)
            raise
        match outcome:
            case RejectedAsAWhole() if len(claimed.events) > 1:
                self._split(claimed, outcome.error)
            case RejectedAsAWhole(names_an_event=True):
                self._reject(claimed, outcome.error, report)
            case Failed(error=APITimeoutError()) if seconds < self._call_seconds:
                # The deadline of this drain ended the call, which says nothing about the service.
                settlement = _all_wait(claimed, _LONGEST_WAIT_AFTER_FAILED_CALL, "the deadline of the drain was over")
                if self._settle(claimed, settlement):
                    report.failed += len(claimed.events)
            case RejectedAsAWhole():
                # Whether the event or the whole call is wrong is unknown. The others do not wait for it.
                self._give_back(claimed, Failed(outcome.error, None), report, LONGEST_WAIT)
            case Failed():
                self._give_back(claimed, outcome, report, _LONGEST_WAIT_AFTER_FAILED_CALL)
            case _:
                self._store_results(claimed, outcome, report)

    def _store_results(self, claimed: Claim, results: Sequence[EventResult], report: DrainReport) -> None:
        self._failures = 0
        # Of contradictory results for an event, that counts which loses nothing: accepted, else to be tried again.
        in_order = sorted(results, key=lambda result: (result.accepted, result.status != "invalid"))
        by_id = {result.id: result for result in in_order}
        verdicts = {event.id: _verdict(event, by_id.get(event.id)) for event in claimed.events}
        states = Counter(verdict.state for verdict in verdicts.values())
        duplicates = sum(each.accepted and each.status == "duplicate" for key, each in by_id.items() if key in verdicts)
        if self._settle(claimed, Settlement(verdicts), succeeded=True):
            report.sent += states[SENT] - duplicates
            report.duplicates += duplicates
            report.rejected += states[DEAD]
            report.failed += states[WAITING]
        # A failed event is retried for ever, and holds its subject: whoever reads the log has to learn of it.
        logger.log(
            logging.INFO if states[SENT] == len(verdicts) else logging.WARNING,
            "outbox %s: sent %s: %d accepted (%d duplicates), %d failed, %d rejected",
            self._name, _events(len(verdicts)), states[SENT], duplicates, states[WAITING], states[DEAD],
        )  # fmt: skip

    def _split(self, claimed: Claim, error: APIStatusError) -> None:
        """Send the events again in smaller batches, down to the one that spoils them."""
        self._settle(claimed, _apart(claimed, str(error)))
        logger.warning("outbox %s: a batch of %s was rejected as a whole", self._name, _events(len(claimed.events)))

    def _reject(self, claimed: Claim, error: APIStatusError, report: DrainReport) -> None:
        """Give up the only event of a batch, which the service has named."""
        self._failures = 0
        verdict = Verdict(DEAD, without_position(error.message))
        settlement = Settlement({event.id: verdict for event in claimed.events})
        if self._settle(claimed, settlement, succeeded=True):
            report.rejected += len(claimed.events)
        logger.warning("outbox %s: the service rejected an event", self._name)

    def _give_back(self, claimed: Claim, outcome: Failed, report: DrainReport, longest_wait: float) -> None:
        """Let the events wait again, after a call that decided nothing about them."""
        self._failures += 1
        settlement = _all_wait(claimed, longest_wait, str(outcome.error))
        if self._settle(claimed, settlement, failure=outcome):
            report.failed += len(claimed.events)
        if isinstance(outcome.error, (AuthenticationError, PermissionDeniedError, ConfigurationError)):
            raise outcome.error
        logger.warning("outbox %s: a call failed, its events wait again: %s", self._name, outcome.error)

    def _settle(
        self,
        claimed: Claim,
        settlement: Settlement,
        free: Callable[[Connection, str, int], None] = governor.ended,
        *,
        succeeded: bool = False,
        failure: Failed | None = None,
    ) -> bool:
        """Store the outcome of a claim, and return whether it still was this process's to store."""
        with self._database.transaction() as connection:
            take_lock(connection, claims.lock_name(self._name))
            now = self._clock.milliseconds(connection)
            free(connection, claimed.lease_token, now)
            if succeeded:
                governor.succeeded(connection, self._name)
            if failure is not None:
                governor.failed(connection, self._name, now, failure.retry_after)
            is_ours = claims.settle(connection, self._name, now, claimed.lease_token, settlement, holds=self._holds)
        if not is_ours:
            logger.warning("outbox %s: a lease ended before its results were stored; they are ignored", self._name)
        return is_ours


def _verdict(event: ClaimedEvent, result: EventResult | None) -> Verdict:
    if result is not None and result.accepted:
        return Verdict(SENT)
    if result is not None and result.status == "invalid":
        return Verdict(DEAD, _reason_of(result))
    reason = "the response has no result for it" if result is None else _reason_of(result)
    return Verdict(WAITING, reason, retry_wait(event.attempts, LONGEST_WAIT))


def _all_wait(claimed: Claim, longest: float, reason: str) -> Settlement:
    return Settlement(
        {event.id: Verdict(WAITING, reason, retry_wait(event.attempts, longest)) for event in claimed.events}
    )


def _apart(claimed: Claim, reason: str) -> Settlement:
    """Let the events be sent in smaller batches at once; an event that was alone waits."""
    size = len(claimed.events)
    if size == 1:
        return _all_wait(claimed, LONGEST_WAIT, reason)
    return _at_once(claimed, reason, batch_limit=size // 2)


def _at_once(claimed: Claim, reason: str | None = None, batch_limit: int | None = None) -> Settlement:
    """Let the events be sent again at once. This time does not count."""
    verdict = Verdict(WAITING, reason)
    return Settlement({event.id: verdict for event in claimed.events}, batch_limit, counts_as_attempt=False)


def _events(count: int) -> str:
    return "1 event" if count == 1 else f"{count} events"


def _outcome_of(client: "FollowUp", claim: Claim) -> Sequence[EventResult] | RejectedAsAWhole | Failed:
    """Send the events of a claim in one call, which is one attempt; return its outcome, or the result of each event.

    Args:
        client: a client without retries, because each attempt is reserved in the request rate.
        claim: the events. Its token is the idempotency key: another claim of the same events may have others beside
            them, and the key of a call that succeeded would replay its response.
    """
    try:
        events = [as_input(each.text) for each in claim.events]
        return client.events.create(events, idempotency_key=claim.lease_token).results
    except EventBatchError as error:
        if error.results:
            return error.results
        return _judged(error)
    except FollowUpError as error:
        return _judged(error)


def _reason_of(result: EventResult) -> str:
    """Return the reason why an event was not accepted, without the position that it had in its batch."""
    return without_position(result.error or f"the service reported the status {result.status}")


def _judged(error: FollowUpError) -> RejectedAsAWhole | Failed:
    if not isinstance(error, APIStatusError):
        return Failed(error, None)
    if error.status_code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return RejectedAsAWhole(error, names_an_event=error.type is not None)
    is_bad_request = error.status_code == HTTPStatus.BAD_REQUEST and not isinstance(error, IdempotencyError)
    names_an_event = _names_a_field_of_an_event(error.param or "")
    if is_bad_request and (names_an_event or error.param is None):
        return RejectedAsAWhole(error, names_an_event)
    is_limited = isinstance(error, RateLimitError) and error.retry_after is None
    return Failed(error, _WITHOUT_RETRY_AFTER if is_limited else error.retry_after)


def _names_a_field_of_an_event(param: str) -> bool:
    """Return whether the ``param`` of an error is the place of an event, such as ``events[3]``, or of its field."""
    names = re.findall(r"\w+", param)
    if names and names[0] in ("event", "events"):
        names.pop(0)
    return bool(names) and (names[0].isdecimal() or names[0] in WIRE_NAMES)
