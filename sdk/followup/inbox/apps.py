"""The inbox as a WSGI and an ASGI application, for a webhook's URL.

Both respond to POST only, and read no more than ``MAX_BODY`` bytes. They look at neither the path nor the query.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from http import HTTPStatus
from typing import Any

import anyio.to_thread

from followup._core.tracebacks import clears_frames
from followup.webhooks import MAX_BODY

Receive = Callable[[bytes, Mapping[str, str]], int]
"""Takes body and headers, and returns the HTTP status."""

Message = MutableMapping[str, Any]
ReceiveMessage = Callable[[], Awaitable[Message]]
SendMessage = Callable[[Message], Awaitable[None]]


class WSGIApp:
    """A WSGI application that passes requests to an inbox."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive

    @clears_frames
    def __call__(
        self, environ: Mapping[str, Any], start_response: Callable[[str, list[tuple[str, str]]], object]
    ) -> Iterable[bytes]:
        """Respond to a request."""
        status = self._status(environ)
        start_response(f"{status} {HTTPStatus(status).phrase}", _headers(status))
        return []

    def _status(self, environ: Mapping[str, Any]) -> int:
        if environ["REQUEST_METHOD"] != "POST":
            return HTTPStatus.METHOD_NOT_ALLOWED
        headers = {name[5:].replace("_", "-"): value for name, value in environ.items() if name.startswith("HTTP_")}
        length = _length(environ.get("CONTENT_LENGTH"))
        if length is None:
            # The input of a request in chunks ends by itself, where the server says so; other inputs would block.
            length = MAX_BODY + 1 if environ.get("wsgi.input_terminated") else 0
        elif length > MAX_BODY:
            return HTTPStatus.REQUEST_ENTITY_TOO_LARGE
        body = _read(environ["wsgi.input"], length)
        return HTTPStatus.REQUEST_ENTITY_TOO_LARGE if len(body) > MAX_BODY else self._receive(body, headers)


# An object, because Starlette takes a function at a Route for an endpoint of its own.
class ASGIApp:
    """An ASGI application that passes requests to an inbox, in a thread, so that the event loop goes on."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive

    @clears_frames
    async def __call__(self, scope: Message, receive: ReceiveMessage, send: SendMessage) -> None:
        """Respond to a request, or take part in the lifespan of the server."""
        if scope["type"] == "lifespan":
            await _live(receive, send)
        elif scope["type"] == "http":
            status = await self._status(scope, receive)
            if status is not None:
                headers = [(name.lower().encode(), value.encode()) for name, value in _headers(status)]
                await send({"type": "http.response.start", "status": status, "headers": headers})
                await send({"type": "http.response.body", "body": b""})

    async def _status(self, scope: Message, receive: ReceiveMessage) -> int | None:
        """Return the status of the response; None if the client has gone."""
        if scope["method"] != "POST":
            return HTTPStatus.METHOD_NOT_ALLOWED
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        if (_length(headers.get("content-length")) or 0) > MAX_BODY:
            return HTTPStatus.REQUEST_ENTITY_TOO_LARGE
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            body += message.get("body", b"")
            if len(body) > MAX_BODY:
                return HTTPStatus.REQUEST_ENTITY_TOO_LARGE
            if not message.get("more_body", False):
                return await anyio.to_thread.run_sync(self._receive, bytes(body), headers)


async def _live(receive: ReceiveMessage, send: SendMessage) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


def _headers(status: int) -> list[tuple[str, str]]:
    if status == HTTPStatus.NO_CONTENT:
        return []
    allowed = [("Allow", "POST")] if status == HTTPStatus.METHOD_NOT_ALLOWED else []
    return [("Content-Length", "0"), *allowed]


def _length(text: str | None) -> int | None:
    """Return the value of a Content-Length header. A server has rejected one that is no number, or should have."""
    is_number = text is not None and text.isascii() and text.isdigit()
    return int(text[:20]) if text and is_number else None  # int() raises for thousands of digits


def _read(source: Any, length: int) -> bytes:
    """Read so many bytes, or fewer if the input ends before; one call of ``read`` may return less than it could."""
    parts = []
    while length > 0 and (part := source.read(min(length, 65536))):
        parts.append(part)
        length -= len(part)
    return b"".join(parts)
