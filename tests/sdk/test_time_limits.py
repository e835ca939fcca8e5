"""Time limits: ``timeout`` for each attempt as a whole, ``deadline`` for the whole call."""

import asyncio
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from typing import Any

import httpx
import pytest
from support.drivers import Driver
from support.proxies import CERTIFICATE, connect_proxy, socks_proxy, tls_relay
from support.responses import patient
from support.server import Action, Received, ScriptedServer, drip, drip_gzip_name, hang, interim, reply
from support.sockets import unresponsive
from support.waiting import wait_for

from followup import NOT_GIVEN, APIConnectionError, APITimeoutError, AsyncFollowUp, FollowUp
from followup._core.call import options
from followup._core.http import through_httpx, transport  # noqa: F401 - a first call would import them within its time limit

ENDLESS: dict[str, Callable[[threading.Event], Action]] = {
    "silence": hang,
    "a body that drips": drip,
    "headers that drip": lambda released: drip(released, headers=True),
    "a gzip header that drips": drip_gzip_name,
    "interim responses without end": interim,
}
ENDLESS_FOR_HTTPX = {"headers that drip", "interim responses without end"}
"""Those that a synchronous client of httpx reads for ever: it limits each read, and not their sum."""
HANG_GUARD = 60
"""Seconds: far more than any limit below, far less than for ever."""


def retrieve(client: Any) -> Any:
    return client.patients.retrieve("pat_1")


@contextmanager
def own_client(driver: Driver, **options: Any) -> Iterator[dict[str, Any]]:
    """Options of a client with an ``http_client`` of the user's own."""
    if driver.name == "async":
        # Its event loop ends with the call, so that no connection is kept for another one.
        yield {"http_client": httpx.AsyncClient(limits=httpx.Limits(max_keepalive_connections=0), **options)}
    else:
        with httpx.Client(**options) as own:
            yield {"http_client": own}


@pytest.mark.parametrize("endless", ENDLESS)
class TestEndlessResponses:
    @pytest.mark.parametrize(("bound", "own"), [("timeout", False), ("deadline", True)])
    def test_end_in_time(self, server: ScriptedServer, driver: Driver, endless: str, bound: str, own: bool) -> None:
        if own and driver.name == "sync" and endless in ENDLESS_FOR_HTTPX:
            return
        server.script = [ENDLESS[endless](server.released)]
        for seconds in (0.3, 3, 30):  # on a busy machine, a short time may be over before anything is sent
            with own_client(driver) if own else nullcontext({}) as options, pytest.raises(APITimeoutError) as caught:
                driver.call(server.url, retrieve, max_retries=0, **options, **{bound: seconds})
            assert caught.value.attempts == 1
            if caught.value.was_sent == "maybe":
                return
        pytest.fail("no attempt was sent")

    def test_leave_a_client_that_works_at_once_and_nothing_behind(
        self, server: ScriptedServer, driver: Driver, endless: str
    ) -> None:
        server.script = [ENDLESS[endless](server.released)]
        with driver.session(server.url, max_retries=0) as session:
            outcomes = session.at_once(lambda client: retrieve(client.with_options(deadline=0.3)), 60)
            assert {type(each) for each in outcomes} == {APITimeoutError}
            server.script = [reply(200, patient())]
            assert session.call(lambda client: retrieve(client.with_options(deadline=HANG_GUARD))).id == "pat_1"
            assert threads_of_ours() == []
            wait_for(lambda: server.open_at_the_client() <= 1)
        wait_for(lambda: server.open_at_the_client() == 0)


def threads_of_ours() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name.startswith("followup-")]


def in_pieces(connection: socket.socket, _: Received) -> bool:
    body = httpx.Response(200, json=patient()).content
    connection.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode())
    for start in range(0, len(body), len(body) // 10):
        time.sleep(0.06)
        connection.sendall(body[start : start + len(body) // 10])
    return True


class TestWhatATimeoutMeans:
    @pytest.mark.usefixtures("quick_backoff")
    def test_an_httpx_timeout_bounds_each_read(self, server: ScriptedServer, driver: Driver) -> None:
        server.script = [in_pieces]
        assert driver.call(server.url, retrieve, timeout=httpx.Timeout(0.3), max_retries=20).id == "pat_1"

    @pytest.mark.usefixtures("quick_backoff")
    def test_with_a_client_of_the_users_own_its_timeouts_hold(self, server: ScriptedServer, driver: Driver) -> None:
        server.script = [in_pieces]
        with own_client(driver, timeout=0.3) as options:
            assert driver.call(server.url, retrieve, max_retries=20, **options).id == "pat_1"
        server.script = [hang(server.released)]
        with own_client(driver, timeout=0.1) as options, pytest.raises(APITimeoutError):
            driver.call(server.url, retrieve, max_retries=0, **options)

    def test_the_default_is_30_seconds_and_5_to_connect(self) -> None:
        chosen = options.options_from("k", "http://x", "1", NOT_GIVEN, 2, None, None, None, own_client=False)
        assert chosen.attempt_seconds == 30
        assert chosen.timeouts == {"connect": 5, "read": 30, "write": 30, "pool": 30}


class TestConnecting:
    @pytest.mark.parametrize("sent", [b"", b"\x16\x03\x03\x40\x00"], ids=["silence", "a handshake that drips"])
    def test_a_tls_handshake_ends_in_time_and_leaves_no_connection(self, driver: Driver, sent: bytes) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
            closed_by_the_client = pool.submit(shake_hands_for_ever, listener, sent)
            url = f"https://127.0.0.1:{listener.getsockname()[1]}"
            assert_ends_in_time(driver, url, closed_by_the_client)

    def test_a_name_look_up_ends_in_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        released = threading.Event()
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: released.wait(HANG_GUARD) and [])
        try:
            with FollowUp(api_key="k", base_url="http://slow.example", max_retries=0) as client:
                with pytest.raises(APITimeoutError) as caught:
                    client.with_options(timeout=0.2).patients.retrieve("pat_1")
                assert caught.value.was_sent == "no"
        finally:
            released.set()
            wait_for(lambda: threads_of_ours() == [])

    @pytest.mark.usefixtures("quick_backoff")
    def test_an_address_that_does_not_respond_leaves_time_for_the_next(
        self, server: ScriptedServer, driver: Driver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        server.script = [reply(200, patient())]
        port, real = int(server.url.rsplit(":", 1)[1]), socket.getaddrinfo

        def look_up(host: Any, *args: Any, **kwargs: Any) -> Any:
            hosts = ("127.0.0.2", "127.0.0.1") if host == "two.example" else (host,)
            return [found for each in hosts for found in real(each, *args, **kwargs)]

        monkeypatch.setattr(socket, "getaddrinfo", look_up)
        with unresponsive("127.0.0.2", port):
            assert driver.call(f"http://two.example:{port}", retrieve, timeout=1, max_retries=5).id == "pat_1"

    def test_look_ups_that_hang_hold_up_nothing_else_in_an_event_loop(
        self, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        server.script = [reply(200, patient())]
        released = threading.Event()
        real = socket.getaddrinfo

        def look_up(host: Any, *args: Any, **kwargs: Any) -> Any:
            if host in ("slow.example", b"slow.example"):
                released.wait(HANG_GUARD)
            return real("127.0.0.1" if host == "slow.example" else host, *args, **kwargs)

        async def use() -> None:
            slow = AsyncFollowUp(api_key="k", base_url="http://slow.example", timeout=0.2, max_retries=0)
            calls = [slow.patients.retrieve("pat_1") for _ in range(40)]
            for failure in await asyncio.gather(*calls, return_exceptions=True):
                assert isinstance(failure, APITimeoutError)
            url = server.url.replace("127.0.0.1", "localhost")
            async with AsyncFollowUp(api_key="k", base_url=url) as client:
                assert (await client.patients.retrieve("pat_1")).id == "pat_1"
            assert await asyncio.to_thread(lambda: "theirs") == "theirs"
            assert not released.is_set()
            await slow.close()

        monkeypatch.setattr(socket, "getaddrinfo", look_up)
        try:
            asyncio.run(asyncio.wait_for(use(), HANG_GUARD - 5))
        finally:
            released.set()
            wait_for(lambda: threads_of_ours() == [])

    def test_an_unknown_name_was_never_sent(self, driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
        def unknown(*_: Any, **__: Any) -> Any:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

        monkeypatch.setattr(socket, "getaddrinfo", unknown)
        with pytest.raises(APIConnectionError, match="Name or service not known") as caught:
            driver.call("http://unknown.example", retrieve, max_retries=0)
        assert caught.value.was_sent == "no"

    @pytest.mark.parametrize("own", ["", "http_client=httpx.Client(), timeout=30"], ids=["ours", "http_client"])
    def test_a_call_at_the_end_of_the_program_is_made(self, server: ScriptedServer, own: str) -> None:
        # Since Python 3.12 no thread can be started then.
        server.script = [reply(200, patient())]
        code = f"""
import atexit, httpx
from followup import FollowUp
client = FollowUp(api_key="k", base_url={server.url.replace("127.0.0.1", "localhost")!r}, {own})
def last_call():
    print(client.patients.retrieve("pat_1").id)
    client.close()
atexit.register(last_call)
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
        assert done.stdout.strip() == "pat_1"


def assert_ends_in_time(driver: Driver, url: str, closed_by_the_client: "Future[bool]") -> None:
    while not closed_by_the_client.done():  # on a busy machine, the time may be over before there is a connection
        with pytest.raises(APITimeoutError):
            driver.call(url, retrieve, timeout=0.5, max_retries=0)
        wait([closed_by_the_client], 1)
    assert closed_by_the_client.result()


def shake_hands_for_ever(listener: socket.socket, sent: bytes) -> bool:
    """Whether the client closed the connection, and did so in time."""
    ends = time.monotonic() + HANG_GUARD
    connection, _ = listener.accept()
    with connection:
        connection.settimeout(HANG_GUARD)
        connection.recv(1)  # an answer before the question would be lost on the way through a proxy
        connection.sendall(sent)
        connection.settimeout(0.02)
        while time.monotonic() < ends:
            try:
                if connection.recv(4096) == b"":
                    return True
            except TimeoutError:
                connection.sendall(b"x" if sent else b"")
            except OSError:
                return True
    return False


class TestThroughAProxy:
    @pytest.mark.parametrize("endless", ["silence", "headers that drip"])
    @pytest.mark.parametrize("kind", ["http", "connect", "socks"])
    def test_endless_responses_end_in_time_through_a_proxy(
        self, server: ScriptedServer, driver: Driver, environment: pytest.MonkeyPatch, kind: str, endless: str
    ) -> None:
        server.script = [ENDLESS[endless](server.released)]
        environment.setenv("SSL_CERT_FILE", str(CERTIFICATE))
        with connect_proxy() as tunnel, socks_proxy() as socks, tls_relay(server.url) as secure:
            environment.setenv("ALL_PROXY", {"http": server.url, "connect": tunnel.url, "socks": socks.url}[kind])
            with pytest.raises(APITimeoutError):
                driver.call(secure if kind == "connect" else server.url, retrieve, timeout=0.3, max_retries=0)

    def test_tls_within_tls_ends_in_time(self, driver: Driver, environment: pytest.MonkeyPatch) -> None:
        environment.setenv("SSL_CERT_FILE", str(CERTIFICATE))
        with (
            socket.create_server(("127.0.0.1", 0)) as listener,
            ThreadPoolExecutor(1) as pool,
            connect_proxy() as tunnel,
            tls_relay(tunnel.url) as proxy,
        ):
            environment.setenv("HTTPS_PROXY", proxy)
            closed_by_the_client = pool.submit(shake_hands_for_ever, listener, b"")
            url = f"https://localhost:{listener.getsockname()[1]}"
            assert_ends_in_time(driver, url, closed_by_the_client)
