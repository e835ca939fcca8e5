"""The relay, which claims events of an outbox, sends and settles them, until nothing is due.

A relay may be killed at any moment. Before the claim has committed, nothing has happened. After it, the events belong
to the relay until their lease ends, and then another one sends them again under the same ids, which has no effect on
those that the service had accepted. Each call ends before its lease does, and only the holder of a lease can settle its
events, so a relay that was frozen meanwhile changes nothing.
"""

import logging
import threading
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs
from sqlalchemy import Connection

from followup import FollowUp
from followup._core import errors
from followup._core.operations import declarations_of
from followup._store.cipher import UnreadableRows
from followup._store.execution import reason_of
from followup._store.leases import StoreTime, time_of
from followup._store.schema import DEAD, WAITING
from followup._store.store import Store
from followup.outbox import claims, verdicts
from followup.outbox.events import LARGEST_BATCH, SENT
from followup.outbox.upkeep import DrainReport
from followup.resources.event_batches import larger_batch
from followup.resources.events import Events

if TYPE_CHECKING:
    from followup._core.call.steps import Call
    from followup.resources.event_batches import EventBatch

logger: logging.Logger = logging.getLogger("followup.outbox")

_LEASE_FACTOR = 1.25
_LEASE_MARGIN = 5.0
"""A lease is longer than its call by a quarter of the call and this many seconds, to store the results in time."""

LONGEST_CALL = (claims.LONGEST_LEASE - _LEASE_MARGIN) / _LEASE_FACTOR
"""Seconds of a call. Fewer if the client has a shorter timeout."""

_MOST_FAILURES = 3
"""Calls that may fail in a row before a drain ends: the service cannot be reached now."""

_RAISED = (errors.AuthenticationError, errors.PermissionDeniedError, errors.ConfigurationError)
"""Errors that a retry does not fix."""


_CREATE = declarations_of(Events)["events.create"]


def _call_of(claimed: verdicts.Claim) -> "Call[EventBatch]":
    """Return the call that sends these events, whose stored texts are those that are sent."""
    # Not a key of the events: another claim of them may have others beside them, and the key of a call that succeeded
    # would replay its response.
    call = _CREATE.call((), {"idempotency_key": claimed.lease_token})
    return attrs.evolve(call, content=f"[{','.join(each.text for each in claimed.events)}]".encode())


@attrs.define
class Limits:
    """The limits of all relays of an outbox.

    Attributes:
        requests_per_minute: maximum number of calls in any 60 s.
        holds: whether a rejected event blocks the later events of its subject.
        largest_batch: events of a call that the service can finish in time, as far as is known.
    """

    requests_per_minute: int
    holds: bool
    largest_batch: int = LARGEST_BATCH


class Relay:
    """Sends the events of an outbox with one client.

    Args:
        store: the outbox, whose tables were checked.
        limits: those of the outbox; the largest batch is adjusted.
        client: a synchronous client. Its retries are not used: each attempt is reserved in the request rate.
    """

    def __init__(self, store: Store, limits: Limits, client: FollowUp) -> None:
        self._store = store
        self._limits = limits
        self._client = client
        self.clock: StoreTime = time_of(client, store._clock)
        times = (LONGEST_CALL, client._options.attempt_seconds, client._options.deadline)
        self._call_seconds = min(each for each in times if each is not None)
        self._lease_seconds = self._call_seconds * _LEASE_FACTOR + _LEASE_MARGIN
        self._failures = 0
        self.unreadable: UnreadableRows = UnreadableRows(store._cipher)

    def work(self, report: DrainReport, deadline: float | None, stop: threading.Event) -> None:
        """Send events until none is due, the time is up, the service cannot be reached, or ``stop`` is set.

        Args:
            report: counts what happens, also if an error is raised.
            deadline: seconds; None for no limit.
            stop: ends the work after the call that is in flight.

        Raises:
            AuthenticationError, PermissionDeniedError: the service rejects the API key. The events wait again.
        """
        self._failures = 0
        ends = None if deadline is None else self.clock.monotonic() + deadline
        self.unreadable.begin(self.clock.monotonic())
        while self._failures < _MOST_FAILURES and not stop.is_set() and not self.unreadable.are_too_many:
            left = None if ends is None else ends - self.clock.monotonic()
            if left is not None and left <= 0:
                return
            with self._store._database.transaction() as connection:
                now = self.clock.milliseconds(connection)
                found = claims.find_due(connection, self._store.name, now, self.unreadable)
                if found is None:
                    self._store._database.check_writable(connection)
                    return
            began = self.clock.monotonic()
            claimed = self._claim(found)
            if isinstance(claimed, verdicts.Claim):
                self._send(claimed, report, began, left)
            elif claimed is not None:  # otherwise leases have ended, or other relays have these events
                self.clock.wait(claimed if left is None else min(claimed, left), stop)

    def _claim(self, found: Sequence[int]) -> verdicts.Claim | float | None:
        def claim(connection: Connection, now: int) -> verdicts.Claim | float | None:
            calls, largest = self._limits.requests_per_minute, self._limits.largest_batch
            return claims.claim(connection, now, found, self.unreadable, calls, largest, self._lease_seconds)

        return self._store._locked(claim, self.clock)

    def _send(self, claimed: verdicts.Claim, report: DrainReport, began: float, left: float | None) -> None:
        slack = (self._lease_seconds - self._call_seconds) / 2
        if self.clock.monotonic() - began > slack:
            # This process was frozen. A call that begins now could outlive its lease.
            self._settle(claimed, verdicts.at_once(claimed, "a relay was frozen"))
            return
        seconds = self._call_seconds if left is None else min(self._call_seconds, left)
        raised: BaseException | None = None
        try:
            batch = self._client.with_options(max_retries=0, deadline=seconds)._perform(_call_of(claimed))
            settlement = verdicts.of_results(claimed, batch.results)
        except errors.FollowUpError as error:
            is_cut_off = isinstance(error, errors.APITimeoutError) and seconds < self._call_seconds
            deadline = "the deadline of the drain was over"
            late = verdicts.cut_off(claimed, deadline, is_late=True) if is_cut_off else None
            settlement = late or verdicts.of_error(claimed, error)
            raised = error if isinstance(error, _RAISED) else None
        except Exception as error:  # noqa: BLE001 - raised below
            # The error of one event, such as one that is nested too deeply, must not hold up the others for ever.
            settlement, raised = verdicts.apart(claimed, reason_of(error)), error
        except BaseException as error:  # noqa: BLE001 - raised below
            settlement, raised = verdicts.cut_off(claimed, "the call was interrupted"), error
        try:
            self._finish(claimed, settlement, report, is_logged=raised is None)
            if raised is not None:
                raise raised
        finally:
            del raised  # its traceback refers to this frame

    def _finish(
        self, claimed: verdicts.Claim, settlement: verdicts.Settlement, report: DrainReport, *, is_logged: bool
    ) -> None:
        """Store the outcome of a call, count it, and say so in the log."""
        if settlement.service is not None:
            self._failures = 0 if settlement.service == "works" else self._failures + 1
        if settlement.is_late:
            self._limits.largest_batch = settlement.batch_limit or 1
        elif settlement.service == "works":
            self._limits.largest_batch = larger_batch(self._limits.largest_batch)
        states = Counter(verdict.state for verdict in settlement.verdicts.values())
        if self._settle(claimed, settlement):
            report.sent += states[SENT] - settlement.duplicates
            report.duplicates += settlement.duplicates
            report.rejected += states[DEAD]
            report.failed += states[WAITING] if settlement.counts_as_attempt else 0
        if is_logged:
            # A failed event is retried for ever, and holds its subject: whoever reads the log has to learn of it.
            level = logging.INFO if states[SENT] == states.total() else logging.WARNING
            logger.log(level, "outbox %s: %s", self._store.name, settlement.text)

    def _settle(self, claimed: verdicts.Claim, settlement: verdicts.Settlement) -> bool:
        """Store the outcome of a claim, and return whether it still was this process's to store."""
        name, token = self._store.name, claimed.lease_token

        def settle(connection: Connection, now: int) -> bool:
            # Also if the lease has ended, because what the service did concerns all relays.
            claims.note_health(connection, name, now, settlement)
            return claims.settle(connection, self._store._cipher, now, token, settlement, holds=self._limits.holds)

        is_ours = self._store._locked(settle, self.clock)
        if not is_ours:
            logger.warning("outbox %s: a lease ended before its results were stored; they are ignored", name)
        return is_ours
