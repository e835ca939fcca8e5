"""Attempts that go through httpx: those of a user's own client, and those to which a test tool responds.

With a client of the user's own, cookies, hooks, instrumentation, proxies and limits are the user's, as httpx has them.
"""

import asyncio
import functools
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import httpx

from followup._core.call.responses import response_of
from followup._core.call.steps import Outcome, Send
from followup._core.http.outcomes import outcome_of, read, read_async
from followup._core.http.proxies import Route
from followup._core.time import REAL_TIME

_SHORTEST_TIMEOUT = 0.001
"""Seconds. A timeout of 0 would make a socket non-blocking, which fails in another way."""

Own = httpx.Client | httpx.AsyncClient | httpx.BaseTransport | httpx.AsyncBaseTransport | Route
"""What an attempt goes through: a client or a transport of httpx, or a transport of its own on this route."""


class UnencodableHeader(httpx.UnsupportedProtocol):
    """A header is not ASCII: a cookie that a server has set in a user's client."""


def _transport_options(route: Route) -> dict[str, Any]:
    """Return the options of a transport of httpx that sends requests on the same route."""
    # Without TLS an empty context: httpx would load the certificates for each of these transports.
    options: dict[str, Any] = {"verify": route.certificates or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)}
    if route.proxy is not None:
        options["proxy"] = httpx.Proxy(str(route.proxy), auth=route.proxy.auth)
    return options


def send(own: Own, step: Send) -> Outcome:
    """Make one attempt in this thread. httpx limits each part of it; the time of the body is checked between chunks."""
    if isinstance(own, Route):
        with httpx.HTTPTransport(**_transport_options(own)) as transport:
            return send(transport, step)
    whole = step.limit()
    ends = None if whole is None else REAL_TIME.monotonic() + whole
    try:
        response = _prepared(own, step, whole, "handle_request")()
        if response.is_stream_consumed:  # by a transport such as httpx.MockTransport
            return response_of(response.status_code, response.headers, response.content)
        try:
            return read(response.status_code, response.headers, _in_time(response.iter_raw(), ends))
        finally:
            response.close()
    except Exception as failure:  # noqa: BLE001 - `_outcome_of` raises those that are not of httpx
        return _outcome_of(failure)  # has_sent stays true: what a user's transport did before it failed is unknown


async def send_async(own: Own, step: Send) -> Outcome:
    """Make one attempt in this task."""
    if isinstance(own, Route):
        async with httpx.AsyncHTTPTransport(**_transport_options(own)) as transport:
            return await send_async(transport, step)
    whole = step.limit()
    timer = asyncio.timeout(whole)
    try:
        async with timer:
            response = await _prepared(own, step, whole, "handle_async_request")()
            if response.is_stream_consumed:  # by a transport such as httpx.MockTransport
                return response_of(response.status_code, response.headers, response.content)
            try:
                return await read_async(response.status_code, response.headers, response.aiter_raw())
            finally:
                await response.aclose()
    except Exception as failure:  # noqa: BLE001 - `_outcome_of` raises those that are not of httpx
        return _outcome_of(failure, timer)


def _prepared(own: Own, step: Send, whole: float | None, method: str) -> Callable[[], Any]:
    """Return a function that sends the request of the attempt."""
    if not isinstance(own, httpx.Client | httpx.AsyncClient):
        extensions = {"timeout": _at_most(step.timeouts or {}, whole)}
        request = httpx.Request(
            step.method, step.url, headers=step.headers, content=step.content, extensions=extensions
        )
        return functools.partial(getattr(own, method), request)
    parts = own.timeout.as_dict() if step.timeouts is None else step.timeouts
    try:
        request = own.build_request(
            step.method,
            step.url,
            params=httpx.URL(step.url).params if own.params else None,  # those of a user's client would replace ours
            headers=step.headers,
            content=step.content,
            extensions={"timeout": _at_most(parts, whole)},
        )
    except UnicodeEncodeError:  # here, since one of a user's hook is the user's, and may come after the request
        raise UnencodableHeader("") from None
    # A redirect would take the key and a patient's data to another server, and `auth` would replace the key.
    return functools.partial(own.send, request, stream=True, auth=None, follow_redirects=False)


def _at_most(parts: Mapping[str, float | None], whole: float | None) -> dict[str, float | None]:
    """Return the time limit of each part of the attempt, at most that of the attempt as a whole."""
    if whole is None:
        return dict(parts)
    whole = max(whole, _SHORTEST_TIMEOUT)
    return {name: whole if seconds is None else min(seconds, whole) for name, seconds in parts.items()}


def _in_time(chunks: Iterator[bytes], ends: float | None) -> Iterator[bytes]:
    for chunk in chunks:
        yield chunk
        if ends is not None and REAL_TIME.monotonic() >= ends:
            raise httpx.ReadTimeout("the attempt took too long")


def _outcome_of(failure: Exception, timer: asyncio.Timeout | None = None) -> Outcome:
    if not isinstance(failure, httpx.HTTPStatusError):
        return outcome_of(failure, timer=timer)
    # A user's event hook called raise_for_status(). The call decides about the status, as always.
    response, content = failure.response, b""
    with suppress(httpx.StreamError):  # the hook need not have read the body
        content = response.content
    return response_of(response.status_code, response.headers, content)
