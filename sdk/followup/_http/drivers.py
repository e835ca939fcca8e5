"""The only input and output of a call: sending and sleeping, synchronous and asynchronous side by side.

``drive`` and ``drive_async`` carry out the steps of ``run_call``; the contract is in ``_call``. They sleep in the time
of the client, which is virtual in a test with the mock. Each attempt as a whole ends within ``Send.seconds``, in one
of three ways:

- ``send`` relies on the network backend of our own pools, which ends the attempt without a thread.
- ``send_within`` runs the attempt in a thread, where there is no such backend, as in a user's own ``http_client``.
- ``send_async`` is cancelled by the event loop.

A signal handler may raise an exception between any two steps of the main thread: ``KeyboardInterrupt``, or the time
limit of a task queue. httpcore's pool may then be in any state. So a pool of ours is dropped, its connections are
closed (``private_names.tidy``), and the next call opens a new one. An attempt with a user's own client, whose pool
cannot be replaced, never runs in the main thread.
"""

import contextvars
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar, cast

import attrs
import httpx

from followup._call.responses import LONGEST_ERROR_TEXT, Body, problem_of
from followup._call.steps import Broken, Lost, NotSendable, NotSent, Outcome, Response, Send, Steps, TimedOut, Wait
from followup._http import private_names
from followup._http.connections import AsyncConnections, Connections
from followup._http.private_names import our_request
from followup._threads import ATTEMPT_THREAD, NoThreadError, result_in_thread
from followup._time import Time, seconds_left, set_time_limit

R = TypeVar("R")

_FAILURES = (httpx.RequestError, httpx.StreamError, httpx.HTTPStatusError)

_TOO_LATE = TimedOut("ReadTimeout")

_SHORTEST_TIMEOUT = 0.001
"""Seconds. A timeout of 0 would make a socket non-blocking, which fails in another way."""


def drive(steps: Steps[R], connections: Connections, time: Time) -> R:
    """Carry out the steps in this thread, and return their result."""
    outcome: Outcome | None = None
    try:
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as done:
                return cast("R", done.value)
            outcome = None
            if isinstance(step, Wait):
                time.sleep(step.seconds)
            else:
                outcome = _send_in_time(connections, step)
    finally:
        steps.close()


async def drive_async(steps: Steps[R], connections: AsyncConnections, time: Time) -> R:
    """Carry out the steps in this task, and return their result."""
    outcome: Outcome | None = None
    try:
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as done:
                return cast("R", done.value)
            outcome = None
            if isinstance(step, Wait):
                await time.sleep_async(step.seconds)
            else:
                outcome = await _send_or_drop(connections, step)
    finally:
        steps.close()


def _send_in_time(connections: Connections, step: Send) -> Outcome:
    client = connections.client()
    try:
        if not connections.enforce_time_limits and (step.seconds is not None or _is_interruptible(client, step)):
            return send_within(client, step, step.seconds)
        return send(client, step)
    except BaseException:
        if client.is_closed:  # by another thread, and httpx raises a RuntimeError
            connections.client()
        if connections.drop(client):
            private_names.tidy(client, step)
        raise


def _is_interruptible(client: httpx.Client, step: Send) -> bool:
    return threading.current_thread() is threading.main_thread() and private_names.has_pool(client, step)


async def _send_or_drop(connections: AsyncConnections, step: Send) -> Outcome:
    client = connections.client()
    try:
        return await send_async(client, step)
    except Exception:
        if client.is_closed:
            connections.client()
        if connections.drop(client):
            await private_names.tidy_async(client, step)
        raise
    except (KeyboardInterrupt, SystemExit):  # they stop the event loop, so that nothing can be awaited
        connections.drop(client)
        raise


def send(client: httpx.Client, step: Send, abandoned: threading.Event | None = None) -> Outcome:
    """Make one attempt in this thread. An abandoned attempt sends nothing."""
    # In a context of its own, which is thrown away: an interrupt could skip the end of a with block.
    return contextvars.copy_context().run(_send, client, step, abandoned)


def _send(client: httpx.Client, step: Send, abandoned: threading.Event | None) -> Outcome:
    set_time_limit(step.seconds)
    try:
        with our_request():
            request = _request(client, step)
            if isinstance(request, NotSendable):
                return request
            if abandoned is not None:
                request.extensions["trace"] = _trace_that_stops_if(abandoned)
            response = client.send(request, stream=True, auth=None, follow_redirects=False)
            try:
                return _with_proxy(client, step, _read(response))
            finally:
                response.close()
                if client.is_closed and "network_stream" in response.extensions:
                    response.extensions["network_stream"].close()  # a pool closed meanwhile has forgotten it
    except BaseException as failure:
        private_names.tidy(client)
        if isinstance(failure, _FAILURES):
            return _with_proxy(client, step, _outcome_of(failure))
        raise


async def send_async(client: httpx.AsyncClient, step: Send) -> Outcome:
    """Make one attempt in this task."""
    import asyncio  # takes as long to import as the rest of the package; synchronous code does not need it

    limit = asyncio.timeout(step.seconds)
    try:
        async with limit:
            with our_request():
                request = _request(client, step)
                if isinstance(request, NotSendable):
                    return request
                response = await client.send(request, stream=True, auth=None, follow_redirects=False)
                try:
                    return _with_proxy(client, step, await _read_async(response))
                finally:
                    await response.aclose()
                    if client.is_closed and "network_stream" in response.extensions:
                        await response.extensions["network_stream"].aclose()
    except (Exception, asyncio.CancelledError) as failure:
        await private_names.tidy_async(client)
        if isinstance(failure, _FAILURES):
            return _with_proxy(client, step, _outcome_of(failure))
        if isinstance(failure, TimeoutError) and limit.expired():
            return _TOO_LATE
        raise


def send_within(client: httpx.Client, step: Send, seconds: float | None) -> Outcome:
    """Make one attempt in a thread of its own, and stop waiting for it when its time limit is reached.

    The abandoned thread then ends soon and releases its connection: its socket is shut down, each of its reads has a
    timeout, and it checks the time between them. If it is still waiting for a connection, it sends nothing on it.
    """
    abandoned = threading.Event()
    try:
        done = result_in_thread(lambda: send(client, step, abandoned), ATTEMPT_THREAD)
    except NoThreadError as error:
        return NotSent("ConnectError", detail=str(error))
    try:
        outcome = done.get(timeout=seconds)
    except BaseException as error:  # also KeyboardInterrupt
        abandoned.set()
        private_names.shut_down(client, step)
        if isinstance(error, queue.Empty):
            return _TOO_LATE
        raise
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


def _trace_that_stops_if(abandoned: threading.Event) -> Callable[[str, Any], None]:
    """Return a trace function for httpcore that stops an abandoned attempt just before it sends its request.

    Once an attempt is sending, it has a connection, and ``shut_down`` can end it.
    """

    def trace(event: str, _: Any) -> None:
        if event.endswith("send_request_headers.started") and abandoned.is_set():
            raise httpx.ReadTimeout("the attempt took too long")

    return trace


def _request(client: httpx.Client | httpx.AsyncClient, step: Send) -> httpx.Request | NotSendable:
    private_names.keep_no_cookies(client)
    try:
        request = client.build_request(
            step.method,
            step.url,
            # The parameters of a user's client would replace ours.
            params=httpx.URL(step.url).params if client.params else None,
            headers=step.headers,
            content=step.content,
            extensions={"timeout": _timeouts(client, step), private_names.ATTEMPT: step},
        )
    except (httpx.InvalidURL, UnicodeError) as error:
        return NotSendable(type(error).__name__)
    if "cookie" in request.headers:  # a default header of the user's client
        del request.headers["cookie"]
    return request


def _timeouts(client: httpx.Client | httpx.AsyncClient, step: Send) -> dict[str, float | None]:
    """Return the time limit of each part of the attempt, at most that of the attempt as a whole."""
    parts = client.timeout.as_dict() if step.timeouts is None else step.timeouts
    if step.seconds is None:
        return dict(parts)
    whole = max(step.seconds, _SHORTEST_TIMEOUT)
    return {name: whole if seconds is None else min(seconds, whole) for name, seconds in parts.items()}


def _read(response: httpx.Response) -> Response:
    if response.is_stream_consumed:
        return _already_read(response)
    body = Body(response.headers, is_success=response.is_success)
    for chunk in response.iter_raw():
        for _ in body.feed(chunk):
            pass
        if body.is_finished:
            break
        left = seconds_left()
        if left is not None and left <= 0:
            raise httpx.ReadTimeout("the attempt took too long")
    return _response(response, body.content(), body.problem)


async def _read_async(response: httpx.Response) -> Response:
    import asyncio

    if response.is_stream_consumed:
        return _already_read(response)
    body = Body(response.headers, is_success=response.is_success)
    async for chunk in response.aiter_raw():
        for _ in body.feed(chunk):
            await asyncio.sleep(0)
        if body.is_finished:
            break
    return _response(response, body.content(), body.problem)


def _already_read(response: httpx.Response) -> Response:
    """Convert a response that a transport such as ``httpx.MockTransport`` has read and decompressed already."""
    problem = problem_of(response.content, is_success=response.is_success)
    kept = 0 if response.is_success else 4 * LONGEST_ERROR_TEXT
    return _response(response, response.content[:kept] if problem else response.content, problem)


def _response(response: httpx.Response, content: bytes, problem: str | None) -> Response:
    return Response(status_code=response.status_code, headers=response.headers, content=content, problem=problem)


def _with_proxy(client: httpx.Client | httpx.AsyncClient, step: Send, outcome: Outcome) -> Outcome:
    """Name the proxy in the error of a request to this machine, which proxies of the environment do not reach."""
    if isinstance(outcome, Response) and (outcome.is_success or outcome.content[:1] == b"{"):
        return outcome
    from followup._http.network import is_loopback  # imports httpcore, which httpx also imports late

    host = httpx.URL(step.url).host
    if not is_loopback(host) or (proxy := private_names.proxy_of(client, step.url)) is None:
        return outcome
    note = f"The request went through the proxy {proxy}: set NO_PROXY={host} if it should not"
    if isinstance(outcome, Response):
        return attrs.evolve(outcome, note=note)
    return attrs.evolve(outcome, detail=f"{outcome.detail}. {note}" if outcome.detail else note)


def _outcome_of(failure: Exception) -> Outcome:
    name = type(failure).__name__
    match failure:
        case httpx.HTTPStatusError():
            # A user's event hook called raise_for_status(). The call decides about the status, as always.
            try:
                return _already_read(failure.response)
            except httpx.StreamError:  # the hook did not read the body
                return _response(failure.response, b"", None)
        case httpx.UnsupportedProtocol():
            return NotSendable(name)
        case httpx.ConnectTimeout() | httpx.PoolTimeout():
            return NotSent(name, timed_out=True)
        case httpx.ConnectError():
            return NotSent(name, detail=str(failure))
        case httpx.ProxyError():
            return NotSent(name)
        case httpx.TimeoutException():
            return TimedOut(name)
        case httpx.RemoteProtocolError() | httpx.ReadError() | httpx.WriteError():
            return Broken(name)
        case _:
            return Lost(name)
