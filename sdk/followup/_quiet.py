"""What marks a request as ours, so that nothing between here and the socket reports or remembers it.

Our queries hold phones and documents. httpx logs whole URLs at INFO, the OpenTelemetry instrumentation of httpx
exports them, and cookie jars would carry a session from one organization to another.
"""

import contextvars
import logging
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

_ours: contextvars.ContextVar[bool] = contextvars.ContextVar("followup_request", default=False)


def is_ours() -> bool:
    """Whether this thread or task is carrying out a request of the SDK."""
    return _ours.get()


@contextmanager
def our_request() -> Iterator[None]:
    """Mark what happens in a with block as a request of the SDK."""
    token = _ours.set(True)
    try:
        with _untraced():
            yield
    finally:
        _ours.reset(token)


def _not_ours(_: logging.LogRecord) -> bool:
    return not _ours.get()


# Requests of others stay in the log.
logging.getLogger("httpx").addFilter(_not_ours)


def _untraced() -> AbstractContextManager[None]:
    # An instrumentation that is active has imported this module; without one there is nothing to suppress.
    utils = sys.modules.get("opentelemetry.instrumentation.utils")
    suppress = getattr(utils, "suppress_http_instrumentation", None)
    return nullcontext() if suppress is None else suppress()
