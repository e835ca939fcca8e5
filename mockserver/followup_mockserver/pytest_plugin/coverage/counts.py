"""Counts how often each outcome of each operation and webhook type was met."""

import threading
from collections.abc import Iterable, Mapping
from typing import Any

from followup_mockserver.contract.operations import OPERATIONS, Operation
from followup_mockserver.state.observers import EndedAttempt, EndedCall
from followup_mockserver.webhooks.subscriptions import OUTBOUND_TYPES

SUCCESS, REPLAY, SERVER_ERROR, NO_ANSWER = "success", "replay", "5xx", "no_answer"
OUTCOMES = (SUCCESS, REPLAY, "400", "401", "403", "404", "409", "429", SERVER_ERROR, NO_ANSWER)
"""The outcomes of an API call (specification, section 7); ``no_answer``: the client got no whole response in time."""

DELIVERED, RETRIED, FAILED = "delivered", "retried", "failed"
WEBHOOK_OUTCOMES = (DELIVERED, RETRIED, FAILED)

Counts = dict[str, dict[str, int]]
"""Numbers by operation or event type, and outcome."""


def outcomes_of(operation: Operation) -> tuple[str, ...]:
    """Return the outcomes that an operation can have.

    Every operation rejects an unknown ``Service-Version``, and so can have a 400. A reference to an object in a body or
    a query is no reason for a 404: it is a 400, or matches nothing.
    """
    impossible = set()
    if not operation.declaration.idempotent:
        impossible |= {REPLAY, "409"}
    if not operation.has_path_id:
        impossible.add("404")
    if operation.row.scope is None and not operation.row.line:
        impossible.add("403")
    return tuple(each for each in OUTCOMES if each not in impossible)


class Coverage:
    """Counts of the outcomes in this process; an observer of its mocks. Thread-safe.

    Attributes:
        operations: how often each outcome of each operation was met: of each attempt of a call.
        webhooks: how many deliveries of each event type succeeded, were attempted again, and exhausted their attempts.
    """

    def __init__(self) -> None:
        self.operations: Counts = {name: dict.fromkeys(outcomes_of(each), 0) for name, each in OPERATIONS.items()}
        self.webhooks: Counts = {str(each): dict.fromkeys(WEBHOOK_OUTCOMES, 0) for each in OUTBOUND_TYPES}
        self._lock = threading.Lock()

    def call_ended(self, call: EndedCall, /) -> None:
        """Count a call. Statuses that are no outcome of the operation do not count."""
        if call.operation is not None:
            self._count(self.operations[call.operation], [_outcome(call.status, replayed=call.replayed)])

    def attempt_ended(self, ended: EndedAttempt, /) -> None:
        """Count what an attempt meant for its delivery.

        The repetition that a webhook fault adds is no retry: it has the number of the attempt that it repeats.
        """
        attempt = ended.attempt
        retried = attempt.number == 2 and attempt.trigger != "disturbance"
        met = zip(WEBHOOK_OUTCOMES, (ended.delivered, retried, ended.exhausted), strict=True)
        self._count(self.webhooks[attempt.event_type], [outcome for outcome, is_met in met if is_met])

    def add(self, other: Mapping[str, Any]) -> None:
        """Add the counts of another process, as ``as_json`` returns them."""
        for mine, theirs in ((self.operations, other["operations"]), (self.webhooks, other["webhooks"])):
            for name, counts in theirs.items():
                for outcome, count in counts.items():
                    mine[name][outcome] += count

    def as_json(self) -> dict[str, Any]:
        """Return the counts and the percentage of outcomes that were met."""
        return {"operations": self.operations, "webhooks": self.webhooks, "percent": self.percent}

    @property
    def met(self) -> int:
        """The number of outcomes that were met at least once."""
        return sum(count > 0 for count in self._all())

    @property
    def possible(self) -> int:
        """The number of outcomes that can be met."""
        return len(self._all())

    @property
    def percent(self) -> float:
        """The share of ``met`` in ``possible``, from 0 to 100."""
        return 100 * self.met / self.possible

    def _all(self) -> list[int]:
        return [count for kind in (self.operations, self.webhooks) for row in kind.values() for count in row.values()]

    def _count(self, row: dict[str, int], outcomes: Iterable[str]) -> None:
        with self._lock:
            for outcome in outcomes:
                if outcome in row:
                    row[outcome] += 1


def _outcome(status: int | None, *, replayed: bool) -> str:
    if status is None:
        return NO_ANSWER
    if status == 200:
        return REPLAY if replayed else SUCCESS
    return SERVER_ERROR if status >= 500 else str(status)
