"""What marks a request as ours, so that nothing between here and the socket reports or remembers it.

Our queries hold phones and documents. httpx logs whole URLs at INFO, the OpenTelemetry instrumentation of httpx
exports them, and cookie jars would carry a session from one organization to another.
"""

import contextvars
import logging
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

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
    return nullcontext() if utils is None else _suppressed(utils, sys.modules["opentelemetry.context"])


@contextmanager
def _suppressed(utils: Any, context: Any) -> Iterator[None]:
    # The key that instrumentations read before there was a function for it.
    token = context.attach(context.set_value("suppress_instrumentation", True))
    try:
        with getattr(utils, "suppress_http_instrumentation", nullcontext)():
            yield
    finally:
        context.detach(token)
