"""Calls a WSGI or an ASGI application in this process, with an httpx.Request."""

import asyncio
import contextvars
import io
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any
from urllib.parse import unquote

import httpx

from followup._for_mockserver import SIGNATURE_HEADER
from followup_mockserver.world.state.faults import READ_TIMEOUT, ConnectionDropped, ResponseTooLate, WSGIApp

Message = MutableMapping[str, Any]

Headers = Sequence[tuple[str, str]]

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


def _scope(request: httpx.Request, state: Mapping[str, Any]) -> dict[str, Any]:
    url = request.url
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
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


def call_wsgi(app: WSGIApp, request: httpx.Request) -> httpx.Response:
    """Call the application with a request, and return its response.

    Args:
        app: the WSGI application.
        request: its body is read; its URL becomes the path and the query.

    Raises:
        httpx.RemoteProtocolError: a fault dropped the connection.
        httpx.ReadTimeout: a fault delayed the response for longer than the read timeout of the request.
    """
    request.read()
    started: list[tuple[str, list[tuple[str, str]]]] = []

    def start_response(
        status: str,
        headers: list[tuple[str, str]],
        _: tuple[type[BaseException], BaseException, TracebackType] | None = None,
    ) -> Callable[[bytes], Any]:
        started[:] = [(status, headers)]
        return lambda _: None

    chunks: Iterable[bytes] = ()
    try:
        chunks = app(_environ(request), start_response)
        body = b"".join(chunks)
    except ResponseTooLate:
        raise httpx.ReadTimeout("The mock's response came after the timeout.", request=request) from None
    except ConnectionDropped:
        raise httpx.RemoteProtocolError("The mock dropped the connection.", request=request) from None
    finally:
        close = getattr(chunks, "close", None)
        if close is not None:
            close()
    status, headers = started[0]
    return httpx.Response(int(status.split(" ", 1)[0]), headers=headers, content=body, request=request)


def _environ(request: httpx.Request) -> dict[str, Any]:
    url = request.url
    environ: dict[str, Any] = {
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": url.scheme,
        "wsgi.input": io.BytesIO(request.content),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
        "REQUEST_METHOD": request.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote(url.raw_path.partition(b"?")[0].decode("ascii"), "latin-1"),
        "QUERY_STRING": url.query.decode("ascii"),
        "SERVER_NAME": url.host,
        "SERVER_PORT": str(url.port or _DEFAULT_PORTS.get(url.scheme, 80)),
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
    }
    for name, value in request.headers.items():
        key = name.upper().replace("-", "_")
        environ[key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{key}"] = value
    timeout = request.extensions.get("timeout", {}).get("read")
    if timeout is not None:
        environ[READ_TIMEOUT] = timeout
    if environ.pop("HTTP_TRANSFER_ENCODING", None) is not None:
        # The streamed body has been read completely, and WSGI applications rely on Content-Length.
        environ["CONTENT_LENGTH"] = str(len(request.content))
    return environ


_current: contextvars.ContextVar[tuple[str | None, list[BaseException]]] = contextvars.ContextVar(
    "followup_mock_attempt"
)
"""The signature of the attempt that is being handled, and the exceptions that a framework caught meanwhile."""


@contextmanager
def caught(signature: str | None) -> Iterator[list[BaseException]]:
    """Collect the exceptions that Flask and Django catch while they handle an attempt, in the order of catching.

    Only frameworks that have been imported are watched.

    Args:
        signature: signature header of the attempt; None without one.
    """
    for name, receive in (("flask", _from_flask), ("django.core.signals", _from_django)):
        if (module := sys.modules.get(name)) is not None:
            # Again is without effect. For a weak reference, Django would keep a finalizer for each call.
            module.got_request_exception.connect(receive, weak=False)
    exceptions: list[BaseException] = []
    token = _current.set((signature, exceptions))
    try:
        yield exceptions
    finally:
        _current.reset(token)


def _from_flask(_: object, exception: BaseException, **__: object) -> None:
    _add(exception, sys.modules["flask"].request)


def _from_django(request: Any = None, **_: object) -> None:
    _add(sys.exc_info()[1], request)


def _add(error: BaseException | None, request: Any) -> None:
    signature, exceptions = _current.get(("", []))
    if error is not None and request is not None and request.headers.get(SIGNATURE_HEADER) == signature:
        exceptions.append(error)
