"""Tools that answer requests in tests get ours, and tools that only watch httpx and httpcore see nothing of them."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import httpcore
import httpx
import pytest
import respx
import vcr
import wrapt
from support.drivers import Driver
from support.responses import page, patient
from support.server import ScriptedServer, reply

URL = "https://api.example"


def find(client: Any) -> Any:
    return client.patients.list(phone="+5491155550000")


def ids(driver: Driver, url: str) -> list[str]:
    return [each.id for each in driver.items(url, find)]


class TestToolsThatAnswer:
    def test_respx(self, driver: Driver) -> None:
        with respx.mock(base_url=URL) as router:
            route = router.get("/v1/patients").respond(json=page(patient()))
            assert ids(driver, URL) == ["pat_1"]
        request = route.calls.last.request
        assert str(request.url) == f"{URL}/v1/patients?phone=%2B5491155550000"
        assert request.headers["authorization"] == "Bearer fu_secret_key"

    def test_respx_that_lets_a_request_through(self, server: ScriptedServer, driver: Driver) -> None:
        server.script = [reply(200, page(patient()))]
        with respx.mock as router:
            router.route().pass_through()
            assert ids(driver, server.url) == ["pat_1"]
        assert len(server.received) == 1

    def test_pytest_httpx(self, driver: Driver, request: pytest.FixtureRequest) -> None:
        request.getfixturevalue("httpx_mock").add_response(json=page(patient()))
        assert ids(driver, URL) == ["pat_1"]

    def test_vcr(self, server: ScriptedServer, driver: Driver, tmp_path: Path) -> None:
        server.script = [reply(200, page(patient()))]
        for _ in range(2):
            with vcr.use_cassette(str(tmp_path / "calls.yaml")):
                assert ids(driver, server.url) == ["pat_1"]
        assert len(server.received) == 1

    @pytest.mark.parametrize("kind", ["ConnectionPool", "HTTPConnection"])
    def test_any_other_replacement(self, driver: Driver, kind: str) -> None:
        owner = getattr(httpcore, kind if driver.name == "sync" else f"Async{kind}")
        method = "handle_request" if driver.name == "sync" else "handle_async_request"
        response = httpcore.Response(200, content=httpx.Response(200, json=page(patient())).content)
        with mock.patch.object(owner, method, return_value=response) as replacement:
            assert ids(driver, "http://api.example") == ["pat_1"]
        assert replacement.call_count == 1


@contextmanager
def watched() -> Iterator[list[Any]]:
    """Wrap the methods that instrumentations wrap, as they do, with wrapt."""
    seen: list[Any] = []

    def watch(wrapped: Any, _: object, args: Any, kwargs: Any) -> Any:
        seen.append(args)
        return wrapped(*args, **kwargs)

    with ExitStack() as stack:
        for owner, method in (
            (httpcore.HTTPConnection, "handle_request"),
            (httpcore.AsyncHTTPConnection, "handle_async_request"),
            (httpcore.ConnectionPool, "handle_request"),
            (httpcore.AsyncConnectionPool, "handle_async_request"),
            (httpx.HTTPTransport, "handle_request"),
            (httpx.AsyncHTTPTransport, "handle_async_request"),
            (httpx.Client, "send"),
            (httpx.AsyncClient, "send"),
        ):
            wrapper = wrapt.FunctionWrapper(getattr(owner, method), watch)
            stack.enter_context(mock.patch.object(owner, method, wrapper))
        yield seen


SENTRY = """
import asyncio, sys, sentry_sdk
from sentry_sdk.integrations.httpx import HttpxIntegration
from followup import AsyncFollowUp, FollowUp

kind, url = sys.argv[1:]
sent = []
class Collector(sentry_sdk.transport.Transport):
    def capture_envelope(self, envelope):
        sent.append(envelope)

async def call():
    async with AsyncFollowUp(api_key="k", base_url=url) as client:
        await client.patients.list(phone="+5491155550000")

# Of the integrations that are on by default, the one that matters; it takes seconds to look for all of them.
options = dict(auto_enabling_integrations=False, integrations=[HttpxIntegration()])
sentry_sdk.init("http://key@127.0.0.1:9/1", traces_sample_rate=1.0, transport=Collector, **options)
with sentry_sdk.start_transaction(name="patient of Ana Secreta"):
    if kind == "async":
        asyncio.run(call())
    else:
        with FollowUp(api_key="k", base_url=url) as client:
            client.patients.list(phone="+5491155550000")
sentry_sdk.capture_message("something else happened")
sentry_sdk.flush()
print([item.payload.json for envelope in sent for item in envelope.items])
"""


class TestToolsThatWatch:
    @pytest.mark.parametrize("proxied", [False, True], ids=["direct", "through a proxy"])
    def test_wrappers_see_nothing(
        self, server: ScriptedServer, driver: Driver, proxied: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        server.script = [reply(200, page(patient()))]
        if proxied:
            monkeypatch.setenv("HTTP_PROXY", server.url)
        with watched() as seen:
            assert ids(driver, "http://api.example" if proxied else server.url) == ["pat_1"]
        assert seen == []

    def test_sentry_exports_nothing_and_adds_no_header(self, server: ScriptedServer, driver: Driver) -> None:
        server.script = [reply(200, page(patient()))]
        command = [sys.executable, "-c", SENTRY, driver.name, server.url]
        sent = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
        assert "something else happened" in sent
        assert "patient of Ana Secreta" in sent
        assert "5491155550000" not in sent
        assert "/v1/patients" not in sent
        assert {"baggage", "sentry-trace", "traceparent"}.isdisjoint(server.received[0].headers)
