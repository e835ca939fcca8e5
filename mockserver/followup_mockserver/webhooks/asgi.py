"""One request to an ASGI application in the running event loop."""

import asyncio
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any

import httpx

Message = MutableMapping[str, Any]

Headers = Sequence[tuple[str, str]]

_ASGI_VERSION = {"version": "3.0", "spec_version": "2.4"}
_DEFAULT_PORTS = {"http": 80, "https": 443}


async def call_asgi(
    app: Any,
    request: httpx.Request,
    state: Mapping[str, Any],
    respond: Callable[[int, Headers], object],
    add_body: Callable[[bytes, bool], None],
) -> None:
    """Call an application with a request, and return when the application returns.

    Args:
        app: the ASGI application.
        request: the request; its body has been read.
        state: the state of the application's lifespan; the request gets a shallow copy.
        respond: called with status and headers as soon as the response begins.
        add_body: called with each part of the response's body, and whether it is the last one.

    Raises:
        RuntimeError: the application returned without a response.
    """
    body: list[Message] = [{"type": "http.request", "body": request.content, "more_body": False}]
    responded = asyncio.Event()
    began = False

    async def receive() -> Message:
        if body:
            return body.pop()
        await responded.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        nonlocal began
        if message["type"] == "http.response.start" and not began:
            began = True
            headers = [
                (bytes(name).decode("latin-1"), bytes(value).decode("latin-1"))
                for name, value in message.get("headers", ())
            ]
            respond(int(message["status"]), headers)
        elif message["type"] == "http.response.body":
            is_last = not message.get("more_body", False)
            add_body(bytes(message.get("body", b"")), is_last)
            if is_last:
                responded.set()

    await app(_scope(request, state), receive, send)
    if not began:
        raise RuntimeError("the ASGI application returned without a response")


def lifespan_scope(state: MutableMapping[str, Any]) -> dict[str, Any]:
    """Return the scope of an application's lifespan; the application adds to the state."""
    return {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": state}


def _scope(request: httpx.Request, state: Mapping[str, Any]) -> dict[str, Any]:
    url = request.url
    return {
        "type": "http",
        "asgi": dict(_ASGI_VERSION),
        "http_version": "1.1",
        "method": request.method,
        "scheme": url.scheme,
        "path": url.path,
        "raw_path": url.raw_path.partition(b"?")[0],
        "query_string": url.query,
        "root_path": "",
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "server": (url.host, url.port or _DEFAULT_PORTS[url.scheme]),
        "client": ("127.0.0.1", 123),
        "extensions": {},
        "state": dict(state),
    }
