"""A limit on the calls of the control API that occupy a server thread while they wait."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from followup_mockserver.control import Control
from followup_mockserver.schema.errors import ServiceError

MAX_WAITING_CALLS = 32
"""Half of the server's threads. The other half always serves the API, which receivers call while an advance waits."""

_WAIT_FOR_RECEIVERS = (Control.advance, Control.step, Control.resend)


class WaitingCalls:
    """Limits how many calls wait at the same time. Thread-safe."""

    def __init__(self, limit: int = MAX_WAITING_CALLS) -> None:
        self._slots = threading.BoundedSemaphore(limit)

    @contextmanager
    def admit(self, call: Callable[..., Any], arguments: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """Occupy a slot for the duration of a call that waits.

        Args:
            call: the function of the route.
            arguments: its keyword arguments; a ``wait`` other than 0 makes it a long poll.

        Yields:
            The arguments to pass. ``wait`` is 0 if all slots are taken, so that a long poll responds at once.

        Raises:
            ServiceError: 429 if all slots are taken and the call has to wait for receivers.
        """
        if not arguments.get("wait") and call not in _WAIT_FOR_RECEIVERS:
            yield arguments
        elif self._slots.acquire(blocking=False):
            try:
                yield arguments
            finally:
                self._slots.release()
        elif call in _WAIT_FOR_RECEIVERS:
            raise ServiceError(
                429,
                "rate_limit_error",
                "too_many_waiting",
                "Too many calls are waiting for receivers or advancing a clock; retry when one of them has finished.",
                headers={"Retry-After": "1"},
            )
        else:
            yield {**arguments, "wait": 0.0}
