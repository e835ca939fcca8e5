"""Marks requests as ours, so that libraries neither log nor export them, and store no cookies for them.

Our queries contain phones and documents. httpx logs whole URLs at INFO, the OpenTelemetry instrumentation of httpx
exports them, and a cookie jar could carry a session from one organization to another.
"""

import contextvars
import logging
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any

_ours: contextvars.ContextVar[bool] = contextvars.ContextVar("followup_request", default=False)


def is_ours() -> bool:
    """Return whether this thread or task is sending a request of the SDK."""
    return _ours.get()


@contextmanager
def our_request() -> Iterator[None]:
    """Mark the requests in a with block as those of the SDK."""
    token = _ours.set(True)
    try:
        with _untraced():
            yield
    finally:
        # A coroutine that nobody finishes is closed in another context, in which there is nothing to reset.
        with suppress(ValueError):
            _ours.reset(token)


def _not_ours(_: logging.LogRecord) -> bool:
    return not _ours.get()


# The application's own requests are still logged.
logging.getLogger("httpx").addFilter(_not_ours)


def _untraced() -> AbstractContextManager[None]:
    # An active instrumentation has imported this module. If it is not imported, there is nothing to suppress.
    utils = sys.modules.get("opentelemetry.instrumentation.utils")
    return nullcontext() if utils is None else _suppressed(utils, sys.modules["opentelemetry.context"])


@contextmanager
def _suppressed(utils: Any, context: Any) -> Iterator[None]:
    # Older instrumentations read this key; newer ones have a function for it.
    token = context.attach(context.set_value("suppress_instrumentation", True))
    try:
        with getattr(utils, "suppress_http_instrumentation", nullcontext)():
            yield
    finally:
        context.detach(token)
