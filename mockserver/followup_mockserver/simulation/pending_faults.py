"""The pending faults of a history: faults and crashes at the clinic's next requests, and lost responses to webhooks.

Each takes effect at the next request that it fits, and one request has at most one.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import attrs

from followup_mockserver.simulation.history import CrashAtRequest, FailRequests


@attrs.frozen
class RequestFault:
    """A fault of a request.

    Attributes:
        story: what happens, as the end of a sentence about the request.
        arguments: the arguments of ``MockService.add_fault``.
        operation: the only operation that can fail in this way; None: all of them.
    """

    story: str
    arguments: Mapping[str, Any]
    operation: str | None = None


_LONG = 3600.0
"""Seconds; longer than the timeout of any client."""

REQUEST_FAULTS = (
    RequestFault("the response was lost", {"kind": "disconnect", "when": "after"}),
    RequestFault("the service could not be reached", {"kind": "disconnect"}),
    RequestFault("the service failed with a 500 and did nothing", {"kind": "status", "status": 500}),
    RequestFault("the service did it, and then failed with a 500", {"kind": "status", "status": 500, "when": "after"}),
    RequestFault("the service responded with a 503 and did nothing", {"kind": "status", "status": 503}),
    RequestFault("the service responded with a 429", {"kind": "status", "status": 429, "retry_after": 1}),
    RequestFault(
        "the service responded with a 429, to be repeated after 2 minutes",
        {"kind": "status", "status": 429, "retry_after": 120},
    ),
    RequestFault("the response came after the timeout", {"kind": "delay", "seconds": _LONG, "when": "after"}),
    RequestFault("the response was cut off", {"kind": "truncate", "when": "after"}),
    RequestFault("the service failed for the first event of the batch", {"kind": "event"}, operation="events.create"),
)
_INSTEAD = REQUEST_FAULTS[2]
"""For a request that cannot fail in the way that was drawn."""


@attrs.define
class _Faults:
    fault: RequestFault
    left: int


class PendingFaults:
    """The faults that are pending, in the order in which they take effect.

    Attributes:
        lost_webhook_responses: how many responses of the receiver will be lost.
    """

    def __init__(self) -> None:
        self._faults: deque[_Faults] = deque()
        self._crashes: deque[CrashAtRequest] = deque()
        self._suspended = 0
        self._webhook_responses = 0

    def fail_requests(self, step: FailRequests) -> None:
        """Let requests fail."""
        self._faults.append(_Faults(REQUEST_FAULTS[step.fault], step.more + 1))

    def crash_at_request(self, step: CrashAtRequest) -> None:
        """Let the clinic crash at a request."""
        self._crashes.append(step)

    def lose_webhook_response(self) -> None:
        """Let the receiver's response to a webhook get lost."""
        self._webhook_responses += 1

    def end(self) -> None:
        """Drop all pending faults."""
        self._faults.clear()
        self._crashes.clear()
        self._webhook_responses = 0

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Let no fault take effect within this block."""
        self._suspended += 1
        try:
            yield
        finally:
            self._suspended -= 1

    def next_crash(self) -> CrashAtRequest | None:
        """Return the crash of the request that is made now, if any, and count the request."""
        if self._suspended or not self._crashes:
            return None
        crash = self._crashes.popleft()
        if crash.skip == 0:
            return crash
        self._crashes.appendleft(attrs.evolve(crash, skip=crash.skip - 1))
        return None

    def next_fault(self, operation: str) -> RequestFault | None:
        """Return the fault of the request that is made now, if any."""
        if self._suspended or not self._faults:
            return None
        first = self._faults[0]
        first.left -= 1
        if first.left == 0:
            self._faults.popleft()
        return first.fault if first.fault.operation in (None, operation) else _INSTEAD

    def loses_webhook_response(self) -> bool:
        """Return whether the response that the receiver gives now gets lost."""
        if self._suspended or not self._webhook_responses:
            return False
        self._webhook_responses -= 1
        return True
