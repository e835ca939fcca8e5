"""An httpx transport that calls a WSGI application in this process, for synchronous and asynchronous clients."""

import asyncio
import io
import sys
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any
from urllib.parse import unquote

import httpx

from followup_mockserver.state.faults import READ_TIMEOUT, ConnectionDropped, ResponseTooLate, WSGIApp


class InProcessTransport(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Sends requests by calling the application. Responses are buffered, not streamed.

    Args:
        app: the WSGI application.
    """

    def __init__(self, app: WSGIApp) -> None:
        self._app = app

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Return the application's response."""
        return call_wsgi(self._app, request)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Return the application's response."""
        await request.aread()
        if _may_wait(request):
            return await asyncio.to_thread(call_wsgi, self._app, request)
        return call_wsgi(self._app, request)


def _may_wait(request: httpx.Request) -> bool:
    """Return whether the application may block the event loop: the control API, for a receiver or in a long poll.

    An operation of the API does not, since delays advance the mock's clock. It runs directly, because passing it to a
    thread costs half as much time again.
    """
    return request.url.path.startswith("/_mock")


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
    except ConnectionDropped:
        raise httpx.RemoteProtocolError("The mock dropped the connection.", request=request) from None
    except ResponseTooLate:
        raise httpx.ReadTimeout("The mock's response came after the timeout.", request=request) from None
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
        "SERVER_PORT": str(url.port or {"http": 80, "https": 443}.get(url.scheme, 80)),
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
