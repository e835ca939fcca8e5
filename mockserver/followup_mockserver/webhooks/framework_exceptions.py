"""Exceptions that Flask and Django turn into a response with status 500, taken from their signals.

A signal reaches every function that is connected to it, from every application, thread and task of the process. The
exceptions of one attempt are those in its context whose request has the signature of the attempt: a request that the
receiver sends to another application during the attempt has not.
"""

import contextvars
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from followup._for_mockserver import SIGNATURE_HEADER

_current: contextvars.ContextVar[object] = contextvars.ContextVar("followup_mock_attempt", default=None)


@contextmanager
def caught(signature: str) -> Iterator[list[BaseException]]:
    """Collect the exceptions that Flask and Django catch while they handle an attempt, in the order of catching.

    Only frameworks that have been imported are watched.

    Args:
        signature: signature header of the attempt.
    """
    exceptions: list[BaseException] = []

    def from_flask(_: object, exception: BaseException, **__: object) -> None:
        add(exception, sys.modules["flask"].request)

    def from_django(request: Any = None, **_: object) -> None:
        error = sys.exc_info()[1]
        if error is not None and request is not None:
            add(error, request)

    def add(error: BaseException, request: Any) -> None:
        if _current.get() is exceptions and request.headers.get(SIGNATURE_HEADER) == signature:
            exceptions.append(error)

    signals = [
        (module.got_request_exception, receive)
        for name, receive in (("flask", from_flask), ("django.core.signals", from_django))
        if (module := sys.modules.get(name)) is not None
    ]
    for signal, receive in signals:
        signal.connect(receive)  # both keep weak references, and the functions live until the end of this one
    token = _current.set(exceptions)
    try:
        yield exceptions
    finally:
        _current.reset(token)
        for signal, receive in signals:
            signal.disconnect(receive)
