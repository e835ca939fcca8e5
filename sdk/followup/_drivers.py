"""The only input and output of a call: one attempt over httpx, synchronous and asynchronous side by side.

Each function takes a ``Send`` and returns its outcome: the response, read to its end, or why there is none. Every
attempt is bounded by ``Send.seconds`` as a whole:

- ``send`` relies on the network backend of our own pools, which runs no thread and ends the attempt itself.
- ``send_within`` is for an ``http_client`` of the user's own, below which we cannot reach: it runs a thread.
- ``send_async`` is cancelled by the event loop.
"""

import queue

import httpx

from followup._bodies import MAX_BODY_BYTES, TOO_LARGE, Body
from followup._call import Failure, NotSendable, Outcome, Response, Send
from followup._httpx_private import ATTEMPT, keep_no_cookies, shut_down
from followup._quiet import our_request
from followup._threads import run_aside
from followup._time_limit import seconds_left, time_limit

_FAILURES = (httpx.RequestError, httpx.StreamError, httpx.HTTPStatusError, NotSendable)

_SHORTEST_TIMEOUT = 0.001
"""Seconds. A socket understands 0 as "do not wait at all", which is another kind of failure."""


def send(client: httpx.Client, step: Send) -> Outcome:
    """Carry out one attempt in this thread."""
    try:
        with our_request(), time_limit(step.seconds):
            request = _request(client, step)
            response = client.send(request, stream=True, auth=None, follow_redirects=False)
            try:
                return _read(response)
            finally:
                response.close()
    except _FAILURES as failure:
        return _outcome_of(failure)


async def send_async(client: httpx.AsyncClient, step: Send) -> Outcome:
    """Carry out one attempt in this task."""
    import asyncio  # costs as much as the rest of the package, and synchronous code does not need it

    limit = asyncio.timeout(step.seconds)
    try:
        async with limit:
            with our_request():
                request = _request(client, step)
                response = await client.send(request, stream=True, auth=None, follow_redirects=False)
                try:
                    return await _read_async(response)
                finally:
                    await response.aclose()
    except TimeoutError:
        if not limit.expired():
            raise
        return _too_late()
    except _FAILURES as failure:
        return _outcome_of(failure)


def send_within(client: httpx.Client, step: Send, seconds: float) -> Outcome:
    """Carry out one attempt in a thread of its own, and stop waiting for it when its time is up.

    The thread then ends as soon as it can, and gives its connection back: its socket is shut down, each of its reads
    was bounded all along, and it looks at the clock between them.
    """
    done: queue.SimpleQueue[Outcome | BaseException] = queue.SimpleQueue()

    def attempt() -> None:
        try:
            done.put(send(client, step))
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            done.put(error)

    run_aside(attempt, "followup-attempt")
    try:
        outcome = done.get(timeout=seconds)
    except queue.Empty:
        shut_down(client, step)
        return _too_late()
    except BaseException:  # KeyboardInterrupt
        shut_down(client, step)
        raise
    if isinstance(outcome, BaseException) and not isinstance(outcome, Failure):
        raise outcome
    return outcome


def _request(client: httpx.Client | httpx.AsyncClient, step: Send) -> httpx.Request:
    keep_no_cookies(client)
    try:
        return client.build_request(
            step.method,
            step.url,
            # httpx would put the parameters of a client in the place of ours.
            params=httpx.URL(step.url).params if client.params else None,
            headers=step.headers,
            content=step.content,
            extensions={"timeout": _timeouts(client, step), ATTEMPT: step},
        )
    except (httpx.InvalidURL, UnicodeError) as error:
        problem = type(error).__name__
    # Outside the handler: the original error holds what was to be sent.
    raise NotSendable(problem)


def _timeouts(client: httpx.Client | httpx.AsyncClient, step: Send) -> dict[str, float | None]:
    """The bounds of each part of the attempt; none exceeds that of the whole."""
    parts = (client.timeout if step.timeout is None else step.timeout).as_dict()
    if step.seconds is None:
        return parts
    whole = max(step.seconds, _SHORTEST_TIMEOUT)
    return {name: whole if seconds is None else min(seconds, whole) for name, seconds in parts.items()}


def _read(response: httpx.Response) -> Response:
    if response.is_stream_consumed:
        return _already_read(response)
    body = Body(response.headers)
    for chunk in response.iter_raw():
        for _ in body.feed(chunk):
            pass
        if body.problem is not None:
            break
        left = seconds_left()
        if left is not None and left <= 0:
            raise httpx.ReadTimeout("the attempt took too long")
    return _response(response, body.content(), body.problem)


async def _read_async(response: httpx.Response) -> Response:
    import asyncio

    if response.is_stream_consumed:
        return _already_read(response)
    body = Body(response.headers)
    async for chunk in response.aiter_raw():
        for _ in body.feed(chunk):
            await asyncio.sleep(0)
        if body.problem is not None:
            break
    return _response(response, body.content(), body.problem)


def _already_read(response: httpx.Response) -> Response:
    """Transports such as ``httpx.MockTransport`` return responses that are read, and decoded by httpx."""
    if len(response.content) > MAX_BODY_BYTES:
        return _response(response, b"", TOO_LARGE)
    return _response(response, response.content, None)


def _response(response: httpx.Response, content: bytes, problem: str | None) -> Response:
    return Response(status_code=response.status_code, headers=response.headers, content=content, problem=problem)


def _outcome_of(failure: Exception) -> Outcome:
    if isinstance(failure, httpx.HTTPStatusError):
        # An event hook of the user's own called raise_for_status(); what the status means is decided by the call.
        return _response(failure.response, b"", None)
    assert isinstance(failure, Failure)
    return failure


def _too_late() -> httpx.TimeoutException:
    return httpx.ReadTimeout("the attempt took too long")
