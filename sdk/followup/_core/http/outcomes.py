"""Converts what HTTP libraries return and raise to the outcomes of an attempt.

httpx and httpcore name their exceptions alike, so that one table serves for both.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Final

from followup._core.call.responses import Body
from followup._core.call.steps import Broken, Lost, NoResponse, NotSendable, NotSent, Response, TimedOut

_KINDS: Final = {
    "InvalidURL": NotSendable,
    "UnsupportedProtocol": NotSendable,
    "ConnectTimeout": NotSent,
    "PoolTimeout": NotSent,
    "ConnectError": NotSent,
    "ProxyError": NotSent,
    "TimeoutException": TimedOut,  # ReadTimeout and WriteTimeout: the request may be with the service
    "RemoteProtocolError": Broken,
    "ReadError": Broken,
    "WriteError": Broken,
    # The bases of all others. Not HTTPError, of which an event hook may raise a class of its own.
    "NetworkError": Lost,
    "ProtocolError": Lost,
    "ConnectionNotAvailable": Lost,
    "RequestError": Lost,
    "StreamError": Lost,
}
"""The kinds of failure, by the name of the class that is nearest to the exception's own."""


def outcome_of(failure: Exception, *, has_sent: bool = True, timer: asyncio.Timeout | None = None) -> NoResponse:
    """Convert an exception of an attempt.

    Args:
        failure: the exception.
        has_sent: whether a part of the request may have been written.
        timer: what ends the attempt in time.

    Raises:
        Exception: the failure itself, if it is not of httpx, httpcore or the timer.
    """
    if timer is not None and timer.expired() and isinstance(failure, TimeoutError):
        return TimedOut("ReadTimeout") if has_sent else NotSent("ConnectTimeout", timed_out=True)
    # By module as well: an event hook of the user may raise an error of the same name, and gets it back as it is.
    names = [each.__name__ for each in type(failure).__mro__ if each.__module__.startswith(("httpx", "httpcore"))]
    kind = next((_KINDS[name] for name in names if name in _KINDS), None)
    if kind is None:
        raise failure
    # Whatever broke before the first byte was written, the service has not received the request.
    if not has_sent and kind is not NotSendable:
        kind = NotSendable if "LocalProtocolError" in names else NotSent
    return kind(type(failure).__name__, _safe_detail(str(failure), names), timed_out="TimeoutException" in names)


def _safe_detail(message: str, names: list[str]) -> str:
    """Return what can be shown of a message. Most may quote bytes of the response."""
    if "ProxyError" in names and message[:3].isdigit():
        return message[:3]  # the status; what follows is the proxy's
    return message if "ConnectError" in names or "ProxyError" in names else ""


def headers_of(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return the headers of a response by their names in lower case."""
    headers: dict[str, str] = {}
    for name_bytes, value_bytes in raw:
        name, value = name_bytes.decode("latin-1").lower(), value_bytes.decode(errors="replace")
        # RFC 9110, section 5.3. It garbles Set-Cookie alone, and cookies are ignored.
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def read(status: int, headers: dict[str, str], chunks: Iterator[bytes]) -> Response:
    """Read a response to its end, or to its limit."""
    body = Body(status, headers)
    for chunk in chunks:
        body.feed(chunk)
        if body.is_finished:
            break
    return body.response()


async def read_async(status: int, headers: dict[str, str], chunks: AsyncIterator[bytes]) -> Response:
    """Do the same as ``read``."""
    body = Body(status, headers)
    async for chunk in chunks:
        body.feed(chunk)
        if body.is_finished:
            break
    return body.response()
