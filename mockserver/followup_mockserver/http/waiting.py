"""Calls of the control API that keep a thread while they wait: so many, and the others get their response at once."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from followup_mockserver.control import Control
from followup_mockserver.schema.errors import ServiceError

MOST_WAITING = 32
"""Half of the server's threads: the other half always serves the API, which receivers call while an advance waits."""

_WAIT_FOR_RECEIVERS = (Control.advance, Control.step, Control.resend)


class WaitingRoom:
    """Counts the calls that wait. Safe to use from several threads."""

    def __init__(self, seats: int = MOST_WAITING) -> None:
        self._seats = threading.BoundedSemaphore(seats)

    @contextmanager
    def admit(self, call: Callable[..., Any], arguments: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """Give the arguments to make a call with: without ``wait`` where no seat is free to wait on.

        Raises:
            ServiceError: 429: no seat is free, and this call cannot do without.
        """
        if not arguments.get("wait") and call not in _WAIT_FOR_RECEIVERS:
            yield arguments
        elif self._seats.acquire(blocking=False):
            try:
                yield arguments
            finally:
                self._seats.release()
        elif call in _WAIT_FOR_RECEIVERS:
            raise ServiceError(
                429,
                "rate_limit_error",
                "too_many_waiting",
                "Too many calls are waiting for receivers, or move a clock; try again when one of them has ended.",
                headers={"Retry-After": "1"},
            )
        else:
            yield {**arguments, "wait": 0.0}
