"""The transport of the SDK: attempts over connections of its own (``lanes``), with public names of httpcore alone.

Requests do not pass ``httpx.Client.send``, so that nothing that watches httpx sees our URLs, which contain phones and
documents, or adds headers. Test tools that respond to requests themselves get them all the same (``_is_replaced``).
"""

import asyncio
import inspect
import sys
from collections.abc import Callable
from typing import Any

import httpcore

from followup._core.call.steps import NotSendable, NotSent, Outcome, Response, Send, TimedOut
from followup._core.http import network, network_async
from followup._core.http.lanes import AsyncLanes, Lane, Lanes
from followup._core.http.outcomes import headers_of, outcome_of, read, read_async
from followup._core.http.routes import ASYNC, SYNC, Route
from followup._core.time import REAL_TIME

_NO_LANE = NotSent("PoolTimeout", timed_out=True)


def _is_replaced(owner: Any, method: str) -> bool:
    """Return whether a test tool has replaced a method of httpx or httpcore, in order to respond to requests.

    A tool that only watches wraps the method in a proxy of wrapt, which has the globals of the method.
    """
    module: str = getattr(getattr(owner, method), "__globals__", {}).get("__name__", "")
    return module.partition(".")[0] not in ("httpx", "httpcore")


class Transport:
    """Makes the attempts of a process."""

    def __init__(self, route: Route) -> None:
        self._route = route
        self.lanes = Lanes(self._new_lane)

    def _new_lane(self) -> Lane[network.Backend]:
        backend = network.Backend(self._route.handshakes)
        connection = self._route.connection(SYNC, backend)
        # Unwrapped: an instrumentation may watch the method.
        return Lane(backend, connection, inspect.unwrap(type(connection).handle_request).__get__(connection))

    def send(self, step: Send) -> Outcome:
        """Make one attempt in this thread.

        Raises:
            ConfigurationError: the client has been closed.
        """
        httpx = sys.modules.get("httpx")
        if httpx is not None and _is_replaced(httpx.HTTPTransport, "handle_request"):
            from followup._core.http import through_httpx

            with httpx.HTTPTransport(**through_httpx.transport_options(self._route)) as transport:
                return through_httpx.send(transport.handle_request, step)
        is_for_pool = any(_is_replaced(each, "handle_request") for each in (SYNC.direct, httpcore.HTTPConnection))
        try:
            request = self._route.request(step, for_lane=not is_for_pool)
        except UnicodeError as error:
            return NotSendable(type(error).__name__)
        if is_for_pool:
            backend = network.Backend()
            backend.limit.start(step.limit())
            with self._route.pool(SYNC, backend) as pool:
                return _exchange(pool.handle_request, request, None)
        return self._route.with_note(self._send(request, step))

    def _send(self, request: httpcore.Request, step: Send) -> Outcome:
        began = REAL_TIME.monotonic()
        try:
            lane = self.lanes.take(step.limit_of_wait())
        except httpcore.PoolTimeout:
            return _NO_LANE
        try:
            lane.backend.limit.start(step.limit(REAL_TIME.monotonic() - began))
            outcome = _exchange(lane.handle, request, lane.backend.limit)
            lane.is_reusable = isinstance(outcome, Response)
            return outcome
        finally:
            self.lanes.give_back(lane)


def _exchange(
    handle: Callable[[httpcore.Request], httpcore.Response], request: httpcore.Request, limit: network.Limit | None
) -> Outcome:
    try:
        response = handle(request)
        if limit is not None:
            limit.check_received()
        try:
            return read(response.status, headers_of(response.headers), response.iter_stream())
        finally:
            response.close()
    except Exception as failure:
        outcome = outcome_of(failure, has_sent=limit is None or limit.has_sent)
        if outcome is None:
            raise
        return outcome


class AsyncTransport:
    """Makes the attempts of an event loop."""

    def __init__(self, route: Route) -> None:
        self._route = route
        self.lanes = AsyncLanes(self._new_lane)

    def _new_lane(self) -> Lane[network_async.Backend]:
        backend = network_async.Backend(self._route.handshakes)
        connection = self._route.connection(ASYNC, backend)
        return Lane(backend, connection, inspect.unwrap(type(connection).handle_async_request).__get__(connection))

    async def send(self, step: Send) -> Outcome:
        """Make one attempt in this task.

        Raises:
            ConfigurationError: the client has been closed.
        """
        httpx = sys.modules.get("httpx")
        if httpx is not None and _is_replaced(httpx.AsyncHTTPTransport, "handle_async_request"):
            from followup._core.http import through_httpx

            async with httpx.AsyncHTTPTransport(**through_httpx.transport_options(self._route)) as transport:
                return await through_httpx.send_async(transport.handle_async_request, step)
        method = "handle_async_request"
        is_for_pool = _is_replaced(ASYNC.direct, method) or _is_replaced(httpcore.AsyncHTTPConnection, method)
        try:
            request = self._route.request(step, for_lane=not is_for_pool)
        except UnicodeError as error:
            return NotSendable(type(error).__name__)
        if is_for_pool:
            async with self._route.pool(ASYNC, network_async.Backend()) as pool:
                return await _exchange_async(pool.handle_async_request, request, None, step.limit())
        return self._route.with_note(await self._send(request, step))

    async def _send(self, request: httpcore.Request, step: Send) -> Outcome:
        began = REAL_TIME.monotonic()
        try:
            lane = await self.lanes.take(step.limit_of_wait())
        except httpcore.PoolTimeout:
            return _NO_LANE
        limit = lane.backend.limit
        try:
            limit.start(None)
            outcome = await _exchange_async(lane.handle, request, limit, step.limit(REAL_TIME.monotonic() - began))
            lane.is_reusable = isinstance(outcome, Response)
            return outcome
        finally:
            self.lanes.give_back(lane)


async def _exchange_async(
    handle: Callable[[httpcore.Request], Any],
    request: httpcore.Request,
    limit: network.Limit | None,
    seconds: float | None,
) -> Outcome:
    timer = asyncio.timeout(seconds)
    try:
        async with timer:
            response = await handle(request)
            if limit is not None:
                limit.check_received()
            try:
                return await read_async(response.status, headers_of(response.headers), response.aiter_stream())
            finally:
                await response.aclose()
    except Exception as failure:
        has_sent = limit is None or limit.has_sent
        if isinstance(failure, TimeoutError) and timer.expired():
            return TimedOut("ReadTimeout") if has_sent else NotSent("ConnectTimeout", timed_out=True)
        outcome = outcome_of(failure, has_sent=has_sent)
        if outcome is None:
            raise
        return outcome
