"""A server that starts once, stops promptly whatever is under way, and says nothing about it."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from support.server import ScriptedServer, hang

from followup_mockserver import MockServer

GUARD = 9
"""Seconds after which something hangs: fewer than whatever is under way when a server stops would take."""


def test_a_server_starts_once() -> None:
    server = MockServer()
    with server, pytest.raises(RuntimeError, match="started already"):
        server.start()
    with pytest.raises(RuntimeError, match="stopped"):
        server.start()
    with pytest.raises(RuntimeError, match="stopped"), server:
        pass


def test_a_server_that_was_never_started_can_be_stopped() -> None:
    server = MockServer()
    server.stop()
    server.stop()
    with pytest.raises(RuntimeError, match="stopped"):
        server.start()


def test_a_server_can_be_stopped_twice_and_by_two_threads() -> None:
    server = MockServer()
    server.start()
    with ThreadPoolExecutor(4) as pool:
        assert [each.result(GUARD) for each in [pool.submit(server.stop) for _ in range(4)]] == [None] * 4


def poll(server: MockServer) -> httpx.Response:
    return httpx.get(f"{server.url}/_mock/messages?wait=60", timeout=GUARD, trust_env=False)


def delayed_call(server: MockServer) -> httpx.Response:
    server.add_fault(operation="*", kind="delay", seconds=300)
    headers = {"Authorization": f"Bearer {server.api_key}"}
    return httpx.get(f"{server.url}/v1/account", headers=headers, timeout=GUARD, trust_env=False)


def advance(server: MockServer) -> httpx.Response:
    return httpx.post(f"{server.url}/_mock/clock/advance", json={"days": 1}, timeout=GUARD, trust_env=False)


def resend(server: MockServer) -> httpx.Response:
    url = f"{server.url}/_mock/webhook_deliveries/{server.deliveries[0].id}/resend"
    return httpx.post(url, json={}, timeout=GUARD, trust_env=False)


def hanging_function(_: httpx.Request) -> httpx.Response:
    threading.Event().wait(2 * GUARD)
    return httpx.Response(200)


@pytest.mark.parametrize("call", [poll, delayed_call, advance, resend])
@pytest.mark.parametrize("mounted", [True, False], ids=["mounted", "socket"])
def test_stopping_waits_for_nobody_and_says_nothing(
    call: Callable[[MockServer], Any],
    mounted: bool,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    with ScriptedServer() as receiver, ThreadPoolExecutor(5) as pool:
        receiver.script = [hang(receiver.released)]
        with MockServer(allow_http_webhooks=True) as server, server.client() as client:
            if mounted:
                server.mount(receiver.url, hanging_function)
            client.webhook_endpoints.create(url=receiver.url, enabled_events=["*"])
            client.patients.create(phone="+5491155550000")
            calls = [pool.submit(call, server) for _ in range(4)]
            ends = time.monotonic() + GUARD
            while server_threads_at_work(server) < len(calls) and time.monotonic() < ends:
                time.sleep(0.01)
            pool.submit(server.stop).result(GUARD)
        for each in calls:
            assert each.exception(GUARD) is None or isinstance(each.exception(), httpx.TransportError)
    assert capfd.readouterr().err == ""
    assert caplog.records == []


def server_threads_at_work(server: MockServer) -> int:
    return server._web_server._waitress.task_dispatcher.active_count if server._web_server else 0
