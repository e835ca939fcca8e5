"""The receivers mounted in this process, which receive the webhooks of their URLs without a socket."""

import asyncio
import contextvars
import enum
import inspect
import io
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote, urlsplit

import attrs
import httpx

from followup._for_mockserver import SIGNATURE_HEADER
from followup_mockserver.world.state.faults import READ_TIMEOUT, ConnectionDropped, ResponseTooLate, WSGIApp

Receiver = Callable[..., Any]
"""An ASGI or WSGI application, or a function or coroutine function that takes an httpx.Request and returns an
httpx.Response."""


class ReceiverKind(enum.Enum):
    """How a receiver is called; the value is the number of its positional arguments."""

    ASGI = 3
    WSGI = 2
    FUNCTION = 1


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Mount:
    """A receiver, and the URL that it is mounted at.

    Attributes:
        url: webhooks whose URL begins with this one go to the receiver.
        receiver: the application or function.
        kind: how the receiver is called.
        raise_exceptions: whether an exception of the receiver is raised out of ``advance`` in process.
    """

    url: str
    receiver: Receiver = attrs.field(repr=False)
    kind: ReceiverKind
    raise_exceptions: bool


def kind_of(receiver: Receiver) -> ReceiverKind:
    """Return the kind of a receiver: ASGI applications require three arguments, WSGI applications two, functions one.

    Optional arguments do not count. Of the callables that require none, such as those that accept any number, coroutine
    functions are taken for ASGI applications, and all others for functions.
    """
    parameters = inspect.signature(receiver).parameters.values()
    positional = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    required = sum(each.default is inspect.Parameter.empty for each in positional)
    if 1 <= required <= 3:
        return ReceiverKind(required)
    call = receiver if inspect.isfunction(receiver) or inspect.ismethod(receiver) else type(receiver).__call__
    return ReceiverKind.ASGI if inspect.iscoroutinefunction(call) else ReceiverKind.FUNCTION


class Mounts:
    """The mounted receivers, by URL. Thread-safe."""

    def __init__(self) -> None:
        self._mounts: dict[str, Mount] = {}

    def add(self, url: str, receiver: Receiver, *, raise_exceptions: bool = True) -> None:
        """Mount a receiver for webhooks whose URL is ``url`` or begins with it.

        Raises:
            TypeError: the receiver is not callable.
        """
        if not callable(receiver):
            raise TypeError("mount() requires an ASGI or WSGI application, or a function")
        url = url.rstrip("/")
        mount = Mount(url=url, receiver=receiver, kind=kind_of(receiver), raise_exceptions=raise_exceptions)
        self._mounts[url] = mount

    def at(self, url: str) -> Mount | None:
        """Return the mount with the longest URL that ``url`` begins with, or None."""
        # At a ``/`` or ``?`` only: https://clinic.example/hook does not receive for https://clinic.example/hooks.
        matching = [each for each in self.urls() if url == each or url.startswith((f"{each}/", f"{each}?"))]
        return self._mounts[max(matching, key=len)] if matching else None

    def urls(self) -> list[str]:
        """Return the mounted URLs, in the order in which they were mounted."""
        return list(self._mounts)


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
        # Frameworks cancel a response at a disconnect, so there is none before the response is complete.
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
    timeout = request.extensions.get("timeout", {}).get("read")
    environ = environ_of(request.method, str(request.url), request.headers, request.content, timeout)
    if environ.pop("HTTP_TRANSFER_ENCODING", None) is not None:
        # The streamed body has been read completely, and WSGI applications rely on Content-Length.
        environ["CONTENT_LENGTH"] = str(len(request.content))
    try:
        status, headers, body = run_wsgi(app, environ)
    except ResponseTooLate:
        raise httpx.ReadTimeout("The mock's response came after the timeout.", request=request) from None
    except ConnectionDropped:
        raise httpx.RemoteProtocolError("The mock dropped the connection.", request=request) from None
    return httpx.Response(status, headers=headers, content=body, request=request)


def run_wsgi(app: WSGIApp, environ: dict[str, Any]) -> tuple[int, list[tuple[str, str]], bytes]:
    """Call the application, and return the status, headers and body of its response.

    Raises:
        ConnectionDropped, ResponseTooLate: a fault affected the request.
    """
    started: list[tuple[str, list[tuple[str, str]]]] = []

    def start_response(status: str, headers: list[tuple[str, str]], *_: object) -> Callable[[bytes], object]:
        # An error handler calls it again, before the body: the last call counts (PEP 3333).
        started[:] = [(status, headers)]
        # ``write`` of PEP 3333, which Flask and Django do not call.
        return lambda _: None

    chunks: Iterable[bytes] = ()
    try:
        chunks = app(environ, start_response)
        body = b"".join(chunks)
    finally:
        close = getattr(chunks, "close", None)
        if close is not None:
            close()
    status, headers = started[0]
    return int(status.split(" ", 1)[0]), headers, body


def environ_of(
    method: str, url: str, headers: Mapping[str, str], content: bytes, read_timeout: float | None
) -> dict[str, Any]:
    """Return the WSGI environment of a request; the read timeout is in seconds."""
    parts = urlsplit(url)
    environ: dict[str, Any] = {
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": parts.scheme,
        "wsgi.input": io.BytesIO(content),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
        "REQUEST_METHOD": method,
        "SCRIPT_NAME": "",
        # Decoded bytes, each as one character (PEP 3333).
        "PATH_INFO": unquote(parts.path or "/", "latin-1"),
        "QUERY_STRING": parts.query,
        "SERVER_NAME": parts.hostname,
        "SERVER_PORT": str(parts.port or _DEFAULT_PORTS.get(parts.scheme, 80)),
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
    }
    for name, value in headers.items():
        key = name.upper().replace("-", "_")
        environ[key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{key}"] = value
    if read_timeout is not None:
        environ[READ_TIMEOUT] = read_timeout
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
    # The signals are of the process: a receiver may call another application, whose exception is not its own.
    if error is not None and request is not None and request.headers.get(SIGNATURE_HEADER) == signature:
        exceptions.append(error)
