"""An attempt has failed ten seconds after it began, whatever the receiver does (sections 3, 6.2 and 8).

The limit of these mocks is shorter, so that nobody waits for it; that it is ten seconds is stated here too.
"""

import asyncio
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import httpx
import pytest
from support.proxies import CERTIFICATE
from support.receivers import Inbox, listening
from support.server import Action, Received, ScriptedServer, endless, hang, interim
from support.sockets import unresponsive
from support.waiting import succeeded

from followup import WebhookDelivery
from followup_mockserver import MockServer, MockService
from followup_mockserver.deliveries import AttemptResult, PreparedAttempt, dispatch
from followup_mockserver.deliveries.socket_sender import Sender

LIMIT = 0.3
TOO_LATE = f"No response within {LIMIT} s."
HANG_GUARD = 60
"""Seconds after which a test that should take half of one gives up."""
URL = "https://clinic.example/hooks"


class ImpatientServer(MockServer):
    _attempt_timeout = LIMIT


class ImpatientService(MockService):
    _attempt_timeout = LIMIT


@pytest.fixture
def server() -> Iterator[ImpatientServer]:
    with ImpatientServer(rate_limit=0, allow_http_webhooks=True, start_time="2026-09-28T12:00:00Z") as running:
        yield running


@pytest.fixture
def service() -> Iterator[ImpatientService]:
    options: Any = {"allow_http_webhooks": True, "allow_network": True}
    with ImpatientService(rate_limit=0, start_time="2026-09-28T12:00:00Z", **options) as running:
        yield running


def continuing_as_fast_as_it_can(released: threading.Event) -> Action:
    def act(connection: socket.socket, _: Received) -> bool:
        while not released.is_set():
            connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)
        return False

    return act


OK = b"HTTP/1.1 200 OK\r\n"
NEVER_ENDING: dict[str, Callable[[threading.Event], Action]] = {
    "says nothing": hang,
    "drips its status line": lambda released: endless(released, b"HTTP/1.1 20", b"0"),
    "drips a header": lambda released: endless(released, OK + b"X-Slow: "),
    "sends one header after the other": lambda released: endless(released, OK, b"X-More: 1\r\n"),
    "asks to continue without end": interim,
    "asks to continue as fast as it can": continuing_as_fast_as_it_can,
}


def delivered(mock: MockServer | MockService, url: str) -> WebhookDelivery:
    """One delivery to a URL, after its first attempt; the mock moves its clock in a thread, so that a hang shows."""
    with mock.client() as client:
        client.webhook_endpoints.create(url=url, enabled_events=["*"])
        client.patients.create(phone="+5491155550000")
    moving = threading.Thread(target=mock.advance, daemon=True)
    moving.start()
    moving.join(HANG_GUARD)
    assert not moving.is_alive(), "the clock is still being moved"
    (delivery,) = mock.deliveries
    return delivery


def assert_too_late(delivery: WebhookDelivery) -> None:
    assert (delivery.status, delivery.attempts, delivery.last_status_code) == ("pending", 1, None)
    assert delivery.last_error == TOO_LATE


class TestSockets:
    @pytest.mark.parametrize("never_ending", NEVER_ENDING.values(), ids=NEVER_ENDING)
    def test_section_6_2_a_receiver_that_never_ends_is_a_failed_attempt(
        self, server: ImpatientServer, never_ending: Callable[[threading.Event], Action]
    ) -> None:
        with ScriptedServer() as receiver:
            receiver.script = [never_ending(receiver.released)]
            delivery = delivered(server, receiver.url)
        if sys.version_info >= (3, 15) and never_ending is continuing_as_fast_as_it_can:
            assert delivery.last_error == "No response (the response is not HTTP)."  # http.client counts them
            return
        assert_too_late(delivery)

    def test_section_6_2_a_tls_handshake_has_no_longer(self, service: ImpatientService) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            assert_too_late(delivered(service, f"https://127.0.0.1:{listener.getsockname()[1]}/"))

    def test_section_6_2_neither_has_a_name_look_up(
        self, service: ImpatientService, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        answered = threading.Event()
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answered.wait(HANG_GUARD) and [])
        try:
            assert_too_late(delivered(service, "https://clinic.example/"))
        finally:
            answered.set()

    def test_a_cancelled_attempt_does_not_hold_up_the_end_of_the_event_loop(self) -> None:
        async def run(url: str) -> None:
            async with MockService(allow_http_webhooks=True, allow_network=True) as service:
                client = service.async_client()
                await client.webhook_endpoints.create(url=url, enabled_events=["*"])
                await client.patients.create(phone="+5491155550000")
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(service.advance_async(), LIMIT)

        with socket.create_server(("127.0.0.1", 0)) as listener:
            began = time.monotonic()
            asyncio.run(run(f"http://127.0.0.1:{listener.getsockname()[1]}/"))
            assert time.monotonic() - began < 8, "it did not wait for the 10 s of the receiver"

    def test_section_6_2_neither_has_a_port_that_does_not_respond(self, service: ImpatientService) -> None:
        with unresponsive("127.0.0.2") as port:
            assert_too_late(delivered(service, f"http://127.0.0.2:{port}/"))

    def test_an_address_that_does_not_respond_leaves_time_for_the_next(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(ImpatientService, "_attempt_timeout", 1.0)
        service = ImpatientService(allow_http_webhooks=True, allow_network=True)
        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, 0)) for each in ("127.0.0.2", "127.0.0.1")]
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(CERTIFICATE)
        with listening(Inbox(), tls) as url, unresponsive("127.0.0.2", httpx.URL(url).port or 0):
            monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
            delivery = delivered(service, url.replace("127.0.0.1", "clinic.example"))
        assert "certificate" in (delivery.last_error or ""), "the next one has been reached"

    def test_section_6_2_neither_has_a_receiver_that_does_not_read(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            result = sent(f"http://127.0.0.1:{listener.getsockname()[1]}/", body=b"x" * 50_000_000)
        assert result.outcome.error == TOO_LATE

    def test_one_receiver_with_many_urls_leaves_room_for_the_others(self) -> None:
        inbox = Inbox()
        with (
            MockServer(allow_http_webhooks=True) as server,
            ScriptedServer() as hanging,
            listening(inbox) as url,
            server.client() as client,
        ):
            hanging.script = [hang(hanging.released)]
            for number in range(12):
                for _ in range(4):
                    client.webhook_endpoints.create(url=f"{hanging.url}/{number}", enabled_events=["*"])
            client.webhook_endpoints.create(url=url, enabled_events=["*"])
            client.patients.create(phone="+5491155550000")
            assert succeeded(server)
            assert hanging.connections <= 8, "four at a time"

    def test_http_goes_to_this_machine_alone_wherever_localhost_resolves_to(
        self, service: ImpatientService, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: pytest.fail("it was looked up"))
        with listening(Inbox()) as url:
            assert delivered(service, url.replace("127.0.0.1", "localhost")).status == "succeeded"

    @pytest.mark.parametrize("host", ["localhost", "[::1]"])
    def test_a_receiver_may_listen_on_ipv6_alone(self, service: ImpatientService, host: str) -> None:
        with MockServer(host="::1") as receiver:
            assert delivered(service, f"http://{host}:{httpx.URL(receiver.url).port}/").last_status_code == 404


def sent(url: str, *, body: bytes) -> AttemptResult:
    """What came of one attempt with a body that is larger than any webhook's."""
    mock = MockService(allow_http_webhooks=True)
    with mock.client() as client:
        client.webhook_endpoints.create(url=url, enabled_events=["*"])
        client.patients.create(phone="+5491155550000")
    return Sender(LIMIT).send(large(mock, body))


def large(mock: MockService, body: bytes) -> PreparedAttempt:
    with mock._tenant.lock:
        due = dispatch.due_attempt(mock._tenant, mock.deliveries[0].id, "schedule")
        assert due is not None
        prepared = dispatch.begin(mock._tenant, due)
    assert prepared is not None
    return attrs.evolve(prepared, body=body)


async def asleep(scope: Any, receive: Any, send: Any) -> None:
    assert scope["type"] == "http"
    await asyncio.sleep(HANG_GUARD)


def slow_wsgi(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    time.sleep(LIMIT + 0.1)
    start_response("200 OK", [])
    return []


def slow_function(_: httpx.Request) -> httpx.Response:
    time.sleep(LIMIT + 0.1)
    return httpx.Response(200)


class TestMountedReceivers:
    @pytest.mark.parametrize("receiver", [asleep, slow_wsgi, slow_function])
    def test_section_6_2_a_slow_receiver_is_a_failed_attempt(
        self, service: ImpatientService, server: ImpatientServer, receiver: Any
    ) -> None:
        for mock in (service, server):
            mock.mount(URL, receiver)
            assert_too_late(delivered(mock, URL))

    def test_section_6_2_a_server_leaves_a_receiver_behind_that_never_returns(self, server: ImpatientServer) -> None:
        released = threading.Event()

        def hanging(_: httpx.Request) -> httpx.Response:
            released.wait(HANG_GUARD)
            return httpx.Response(200)

        try:
            server.mount(URL, hanging)
            assert_too_late(delivered(server, URL))
        finally:
            released.set()
        assert_too_late(server.deliveries[0])

    def test_an_async_receiver_that_does_not_let_itself_be_cancelled_is_left_behind(
        self, service: ImpatientService
    ) -> None:
        released = threading.Event()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            assert scope["type"] == "http"
            released.wait(HANG_GUARD)

        service.mount(URL, app)
        try:
            assert_too_late(delivered(service, URL))
        finally:
            released.set()

    def test_section_6_2_work_after_the_response_does_not_count(self, service: ImpatientService) -> None:
        worked = threading.Event()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            await send({"type": "http.response.start", "status": 202, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            await asyncio.sleep(LIMIT + 0.1)
            worked.set()

        service.mount(URL, app)
        assert delivered(service, URL).status == "succeeded"
        assert worked.wait(HANG_GUARD)
