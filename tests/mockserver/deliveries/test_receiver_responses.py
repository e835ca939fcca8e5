"""An attempt keeps the response of the receiver: status line, headers, and the first 4 KiB of the body."""

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from support.http import Api
from support.server import Action, Received, ScriptedServer, endless, hang_up, reply

from followup_mockserver import MockServer, MockService
from followup_mockserver.deliveries import socket_sender as sender_module
from followup_mockserver.world.state.records import Attempt, ReceiverResponse

HOOKS = "https://clinic.example/hooks"
HANG_GUARD = 60
"""Seconds after which a test that should take a fraction of one gives up."""
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
LOCKED = b'{"error":"database is locked"}'


def raw(data: bytes, *, close: bool = False) -> Action:
    """Send these bytes as the response."""

    def act(connection: socket.socket, _: Received) -> bool:
        connection.sendall(data)
        return not close

    return act


class ImpatientService(MockService):
    _attempt_timeout = 1.0


class PatientService(MockService):
    _attempt_timeout = 600.0


@pytest.fixture
def networked() -> Iterator[MockService]:
    with ImpatientService(
        allow_http_webhooks=True, allow_network=True, rate_limit=0, start_time="2026-09-28T12:00:00Z"
    ) as service:
        yield service


def attempt_at(service: MockService | MockServer, url: str) -> Attempt:
    """Return the first attempt to deliver a webhook to this URL."""
    with service.client() as client:
        client.webhook_endpoints.create(url=url, enabled_events=["*"])
        client.patients.create(phone="+5491155550000")
    service.advance()
    (attempt,) = service.attempts(service.deliveries[0].id)
    assert 0 <= attempt.seconds < 60
    return attempt


def answered(networked: MockService, *actions: Action) -> tuple[Attempt, ReceiverResponse]:
    with ScriptedServer([*actions]) as receiver:
        attempt = attempt_at(networked, receiver.url)
    assert attempt.response is not None
    return attempt, attempt.response


class TestSockets:
    def test_section_6_2_the_final_status_decides(self, networked: MockService) -> None:
        interim = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n"
        attempt, response = answered(networked, raw(interim + b"HTTP/1.1 200 X\r\nContent-Length: 2\r\n\r\nok"))
        assert (attempt.status_code, attempt.error) == (200, None)
        assert (response.headers, response.body, response.body_is_whole) == ({"content-length": "2"}, b"ok", True)

    def test_an_error_keeps_what_the_receiver_said(self, networked: MockService) -> None:
        attempt, response = answered(networked, reply(500, LOCKED, {"X-Trace": "7"}))
        assert (attempt.status_code, attempt.error) == (500, "HTTP status 500.")
        assert response.status_line == "HTTP/1.1 500 X"
        assert response.headers == {"content-type": "application/json", "content-length": "30", "x-trace": "7"}
        assert (response.body, response.body_is_whole) == (LOCKED, True)

    @pytest.mark.parametrize(
        ("data", "close", "status", "body", "whole"),
        [
            (b"1.1 204 No Content\r\n\r\n", False, 204, b"", True),
            (b"1.1 500 X\r\nContent-Length: 4096\r\n\r\n" + b"x" * 4096, False, 500, b"x" * 4096, True),
            (b"1.1 500 X\r\nContent-Length: 4097\r\n\r\n" + b"x" * 4097, False, 500, b"x" * 4096, False),
            (b"1.1 500 X\r\nContent-Length: 100000000000\r\n\r\n" + b"x" * 10_000, False, 500, b"x" * 4096, False),
            (b"1.1 503 X\r\n" + CHUNKED + b"4\r\ndata\r\n5\r\nbase \r\n0\r\n\r\n", False, 503, b"database ", True),
            (b"1.1 200 X\r\n" + CHUNKED + b"3\r\nabc\r\nnonsense\r\n", True, 200, b"abc", False),
            (b"1.1 200 X\r\n" + CHUNKED + b"3\r\nabc\r\n5\r\nbase \r\n", True, 200, b"abcbase ", False),
            (b"1.0 500 X\r\n\r\nno space left", True, 500, b"no space left", True),
            (b"1.1 500 X\r\nContent-Length: 50\r\n\r\nhalf", True, 500, b"half", False),
            (b"1.1 200 X\r\nContent-Length: 50\r\n\r\nhalf", False, 200, b"", False),
        ],
    )
    def test_the_beginning_of_a_body_is_kept_and_does_not_change_the_outcome(
        self, networked: MockService, data: bytes, close: bool, status: int, body: bytes, whole: bool
    ) -> None:
        attempt, response = answered(networked, raw(b"HTTP/" + data, close=close))
        assert (attempt.status_code, attempt.error) == (status, None if status < 300 else f"HTTP status {status}.")
        assert (response.body, response.body_is_whole) == (body, whole)

    @pytest.mark.parametrize("close", ["keep-alive", "close"])
    def test_nobody_waits_long_for_a_body(self, monkeypatch: pytest.MonkeyPatch, close: str) -> None:
        monkeypatch.setattr(sender_module, "_BODY_TIMEOUT", 0.1)
        service = PatientService(allow_http_webhooks=True, allow_network=True)
        with ScriptedServer() as receiver:
            head = f"HTTP/1.1 200 OK\r\nConnection: {close}\r\nContent-Length: 100000\r\n\r\n"
            receiver.script = [endless(receiver.released, head.encode())]
            attempting = threading.Thread(target=attempt_at, args=(service, receiver.url), daemon=True)
            attempting.start()
            attempting.join(HANG_GUARD)
            assert not attempting.is_alive(), "the attempt still waits for the body"
        (attempt,) = service.attempts(service.deliveries[0].id)
        assert attempt.status_code == 200
        assert attempt.response is not None

    def test_headers_of_the_same_name_are_joined(self, networked: MockService) -> None:
        head = b"HTTP/1.1 500 Oops\r\nVia: a\r\nX-Empty:\r\nvia: b\r\nContent-Length: 0\r\n\r\n"
        _, response = answered(networked, raw(head))
        assert response.headers == {"via": "a, b", "x-empty": "", "content-length": "0"}


CLOSED = "No response (the connection was closed without a response)."


def reset_by_peer(*data: bytes) -> Action:
    """Send these bytes, and reset the connection."""

    def act(connection: socket.socket, _: Received) -> bool:
        for each in data:
            connection.sendall(each)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return False

    return act


@pytest.mark.parametrize(
    ("action", "error"),
    [
        (raw(b"HTTP/2 200\r\n\r\n", close=True), "No response (the response is not HTTP)."),
        (raw(b"HTTP/1.1 " + b"2" * 70_000, close=True), "No response (the response is not HTTP)."),
        (raw(b"220 smtp.example ESMTP\r\n", close=True), "No response (the response is not HTTP)."),
        (hang_up, CLOSED),
        (reset_by_peer(), CLOSED),
    ],
)
def test_an_error_is_a_sentence(networked: MockService, action: Action, error: str) -> None:
    with ScriptedServer([action]) as receiver:
        attempt = attempt_at(networked, receiver.url)
    assert (attempt.error, attempt.status_code, attempt.response) == (error, None, None)


Parts = list[bytes]


def function(parts: Parts) -> Any:
    return lambda _: httpx.Response(500, content=b"".join(parts), headers={"X-Trace": "7"})


def coroutine_function(parts: Parts) -> Any:
    async def receive(request: httpx.Request) -> httpx.Response:
        return function(parts)(request)

    return receive


def wsgi(parts: Parts) -> Any:
    def app(_: Any, start_response: Callable[..., Any]) -> Parts:
        start_response("500 Internal Server Error", [("X-Trace", "7")])
        return parts

    return app


def asgi(parts: Parts) -> Any:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        assert scope["type"] == "http"
        await send({"type": "http.response.start", "status": 500, "headers": [(b"X-Trace", b"7")]})
        for part in parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body"})

    return app


RECEIVERS: dict[str, Callable[[Parts], Any]] = {
    "function": function,
    "coroutine function": coroutine_function,
    "in parts": lambda parts: lambda _: httpx.Response(500, content=iter(parts), headers={"X-Trace": "7"}),
    "WSGI": wsgi,
    "ASGI": asgi,
}


@pytest.mark.parametrize("kind", [MockService, MockServer])
@pytest.mark.parametrize("make", RECEIVERS.values(), ids=RECEIVERS)
@pytest.mark.parametrize(
    ("parts", "kept", "whole"),
    [
        ([LOCKED[:5], LOCKED[5:]], LOCKED, True),
        ([b"x" * 4096], b"x" * 4096, True),
        ([b"x" * 1000] * 5, b"x" * 4096, False),
    ],
    ids=["short", "4 KiB", "longer"],
)
def test_a_mounted_receiver_keeps_it_too(
    kind: type[MockService | MockServer], make: Callable[[Parts], Any], parts: Parts, kept: bytes, whole: bool
) -> None:
    with kind(start_time="2026-09-28T12:00:00Z") as mock:
        mock.mount(HOOKS, make(parts))
        response = attempt_at(mock, HOOKS).response
    assert response is not None
    assert response.status_line == "HTTP/1.1 500 Internal Server Error"
    assert response.headers["x-trace"] == "7"
    assert (response.body, response.body_is_whole) == (kept, whole)


def test_a_body_that_cannot_be_read_leaves_the_outcome(service: MockService) -> None:
    def parts() -> Iterator[bytes]:
        yield b"half"
        raise RuntimeError("disk full")

    service.mount(HOOKS, lambda _: httpx.Response(200, content=parts()))
    attempt = attempt_at(service, HOOKS)
    assert attempt.error is None
    assert attempt.response is not None
    assert (attempt.response.body, attempt.response.body_is_whole) == (b"", False)


def test_repr_shows_nothing_of_it(service: MockService) -> None:
    service.mount(HOOKS, function([LOCKED]))
    attempt = attempt_at(service, HOOKS)
    for text in (repr(attempt), repr(attempt.response)):
        assert "locked" not in text
        assert "x-trace" not in text
    assert repr(attempt.response) == "ReceiverResponse(body=<30 bytes>, body_is_whole=True)"


@pytest.mark.parametrize("path", ["attempts", "webhook_deliveries/{}/attempts"])
def test_the_control_api_shows_it(service: MockService, api: Api, path: str) -> None:
    service.mount(HOOKS, lambda _: httpx.Response(400, content=b"se\xf1al", headers={"Content-Type": "text/plain"}))
    attempt_at(service, HOOKS)
    (shown,) = api.get("/_mock/" + path.format(service.deliveries[0].id)).json()["data"]
    assert shown["response"] == {
        "statusLine": "HTTP/1.1 400 Bad Request",
        "headers": {"content-type": "text/plain", "content-length": "5"},
        "body": "se\ufffdal",
        "bodyIsWhole": True,
    }


class TestSnapshots:
    def test_a_snapshot_keeps_it_to_the_byte(self, service: MockService) -> None:
        body = bytes(range(256)) * 20
        service.mount(HOOKS, lambda _: httpx.Response(500, content=body, headers={"X-Empty": ""}))
        before = attempt_at(service, HOOKS)
        saved = json.loads(json.dumps(service.save()))
        for copy in (MockService.load(saved), service.fork()):
            assert copy.attempts(before.delivery) == [before]
