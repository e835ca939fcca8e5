"""A server starts once, and stops promptly and silently, whatever is in progress."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from support.server import ScriptedServer, hang

from followup_mockserver import MockServer
from followup_mockserver.control import access_to

GUARD = 55
"""Seconds after which something hangs: less than the requests in progress would take by themselves."""


class PatientServer(MockServer):
    _attempt_timeout = 300.0


def test_a_server_starts_once_and_may_be_stopped_twice() -> None:
    server, never_started = MockServer(), MockServer()
    with server, pytest.raises(RuntimeError, match="starts once"):
        server.start()
    for stopped in (server, never_started, never_started):
        stopped.stop()
        with pytest.raises(RuntimeError, match="starts once"):
            stopped.start()


def poll(server: MockServer) -> httpx.Response:
    url = f"{server.url}/_mock/changes?since={access_to(server).tenant.version}&wait=60"
    return httpx.get(url, timeout=GUARD, trust_env=False)


def delayed_call(server: MockServer) -> httpx.Response:
    server.add_fault(operation="*", kind="delay", seconds=300)
    headers = {"Authorization": f"Bearer {server.api_key}"}
    return httpx.get(f"{server.url}/v1/account", headers=headers, timeout=GUARD, trust_env=False)


def advance(server: MockServer) -> httpx.Response:
    return httpx.post(f"{server.url}/_mock/clock/advance", json={"days": 1}, timeout=GUARD, trust_env=False)


def resend(server: MockServer) -> httpx.Response:
    url = f"{server.url}/_mock/webhook_deliveries/{server.deliveries[0].id}/resend"
    return httpx.post(url, json={}, timeout=GUARD, trust_env=False)


def count_requests(server: MockServer) -> threading.Semaphore:
    """Return a semaphore that every request to a server that will start releases when it reaches the application."""
    arrived, app = threading.Semaphore(0), server._wsgi_app

    def counting(environ: Any, start_response: Any) -> Any:
        arrived.release()
        return app(environ, start_response)

    server._wsgi_app = counting
    return arrived


@pytest.mark.parametrize("call", [poll, delayed_call, advance, resend])
@pytest.mark.parametrize("mounted", [True, False], ids=["mounted", "socket"])
def test_stopping_is_prompt_and_silent(
    call: Callable[[MockServer], Any],
    mounted: bool,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    with ScriptedServer() as receiver, ThreadPoolExecutor(5) as pool:
        receiver.script = [hang(receiver.released)]
        server = PatientServer(allow_http_webhooks=True)
        arrived = count_requests(server)
        with server, server.client() as client:
            if mounted:
                server.mount(receiver.url, lambda _: httpx.Response(200 + receiver.released.wait()))
            client.webhook_endpoints.create(url=receiver.url, enabled_events=["*"])
            client.patients.create(phone="+5491155550000")
            calls = [pool.submit(call, server) for _ in range(4)]
            assert all(arrived.acquire(timeout=GUARD) for _ in range(2 + len(calls)))
            pool.submit(server.stop).result(GUARD)
            with pytest.raises(httpx.ConnectError):
                httpx.get(f"{server.url}/_mock/health", timeout=GUARD, trust_env=False)
        for each in calls:
            assert each.exception(GUARD) is None or isinstance(each.exception(), httpx.TransportError)
    assert capfd.readouterr().err == ""
    assert caplog.records == []
