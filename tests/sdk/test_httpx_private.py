"""The private names of httpx and httpcore that the SDK uses, and what happens when one has moved."""

import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import httpcore
import httpx
import pytest
from support.drivers import AsyncDriver, SyncDriver
from support.ports import free_port
from support.responses import patient
from support.server import ScriptedServer, hang, reply

from followup import APITimeoutError, FollowUp
from followup._http import private_names


def test_every_private_name_is_there() -> None:
    assert private_names._missing() == frozenset()


Waiting = tuple[httpx.Client, Any, Any]


@pytest.fixture
def waiting(server: ScriptedServer) -> Iterator[Waiting]:
    """A client, an attempt that hangs, and the request of it as the pool knows it."""
    server.script = [hang(server.released)]
    attempt: Any = SimpleNamespace(url=server.url)
    with httpx.Client(trust_env=False) as client, ThreadPoolExecutor(1) as pool:
        request = client.build_request("GET", server.url, extensions={private_names.ATTEMPT: attempt})
        sent = pool.submit(client.send, request)
        while not server.received:
            time.sleep(0.001)
        (found,) = private_names.pool_of(client._transport_for_url(request.url))._requests
        yield client, attempt, found
        server.released.set()
        with suppress(httpx.HTTPError):
            sent.result()


class TestShutDown:
    def test_ends_the_attempt(self, server: ScriptedServer, waiting: Waiting) -> None:
        client, attempt, _ = waiting
        private_names.shut_down(client, attempt)
        assert server.open_at_the_client() == 0

    def test_finds_it_below_the_transport_of_an_instrumentation(self, server: ScriptedServer, waiting: Waiting) -> None:
        client, attempt, _ = waiting
        client._transport = Wrapper(client._transport)
        private_names.shut_down(client, attempt)
        assert server.open_at_the_client() == 0

    def test_leaves_a_connection_that_is_not_http11(self, server: ScriptedServer, waiting: Waiting) -> None:
        # Other requests may be on it. The package for HTTP/2 is not installed here, so another connection stands in.
        client, attempt, found = waiting
        stream = found.connection._connection._network_stream
        found.connection = SimpleNamespace(_connection=SimpleNamespace(_network_stream=stream))
        private_names.shut_down(client, attempt)
        assert server.open_at_the_client() == 1

    def test_leaves_a_connection_that_another_request_has_taken_over(
        self, server: ScriptedServer, waiting: Waiting
    ) -> None:
        client, attempt, found = waiting
        pool = private_names.pool_of(client._transport)
        pool._requests.append(SimpleNamespace(request=SimpleNamespace(extensions={}), connection=found.connection))
        private_names.shut_down(client, attempt)
        assert server.open_at_the_client() == 1
        del pool._requests[-1]

    def test_leaves_a_stream_without_a_socket(self, server: ScriptedServer, waiting: Waiting) -> None:
        client, attempt, found = waiting
        stream = found.connection._connection._network_stream
        stream.get_extra_info = lambda _: None
        private_names.shut_down(client, attempt)
        assert server.open_at_the_client() == 1
        del stream.get_extra_info


class Wrapper(httpx.BaseTransport):
    """As those of instrumentations."""

    def __init__(self, transport: httpx.BaseTransport) -> None:
        self._transport = transport

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return self._transport.handle_request(request)

    def close(self) -> None:
        self._transport.close()


def answer(_: httpx.Request) -> httpx.Response:
    return httpx.Response(200, json=patient())


@pytest.fixture(params=[httpx.Client, httpx.AsyncClient])
def kind(request: pytest.FixtureRequest) -> Any:
    return request.param


class TestReplacedTransports:
    """Tests of applications put other transports in the place of httpx's own, below our connections."""

    @pytest.mark.parametrize("way", ["constructor", "method", "class"])
    def test_they_are_called(self, kind: Any, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
        real = kind.__init__
        if way == "constructor":
            monkeypatch.setattr(
                kind, "__init__", lambda self, **options: real(self, **options, transport=httpx.MockTransport(answer))
            )
        elif way == "method":
            monkeypatch.setattr(kind, "_init_transport", lambda *_, **__: httpx.MockTransport(answer))
        else:
            monkeypatch.setattr("httpx._client.HTTPTransport", lambda *_, **__: httpx.MockTransport(answer))
            monkeypatch.setattr("httpx._client.AsyncHTTPTransport", lambda *_, **__: httpx.MockTransport(answer))
        driver = SyncDriver() if kind is httpx.Client else AsyncDriver()
        assert driver.call("http://api.example", lambda client: client.patients.retrieve("pat_1")).id == "pat_1"

    def test_the_time_limit_holds_there_too(self, monkeypatch: pytest.MonkeyPatch) -> None:
        released = threading.Event()

        def hang_then_answer(request: httpx.Request) -> httpx.Response:
            released.wait(20)
            return answer(request)

        monkeypatch.setattr(httpx.Client, "_init_transport", lambda *_, **__: httpx.MockTransport(hang_then_answer))
        with FollowUp(api_key="k", base_url="http://api.example", max_retries=0, timeout=0.2) as client:
            with pytest.raises(APITimeoutError):
                client.patients.retrieve("pat_1")
            assert not released.is_set()
            released.set()

    def test_a_mock_has_no_pool(self) -> None:
        assert private_names.pool_of(MagicMock()) is None


CALLS = """
import asyncio, httpx, sys, warnings
from followup import APIConnectionError, APITimeoutError, AsyncFollowUp, FollowUp

hanging, refusing, answering = sys.argv[1:]

async def call(url, **options):
    async with AsyncFollowUp(api_key="k", base_url=url, max_retries=0, **options) as client:
        return await client.patients.retrieve("pat_1")

def outcome_of(make):
    try:
        return make().id
    except Exception as error:
        return type(error).__name__

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for url in (refusing, answering):
        with httpx.Client(trust_env=False) as own:
            for options in ({}, {"http_client": own}):
                client = FollowUp(api_key="k", base_url=url, max_retries=0, **options)
                print(outcome_of(lambda: client.patients.retrieve("pat_1")))
                client.close()
        print(outcome_of(lambda: asyncio.run(call(url))))
    with FollowUp(api_key="k", base_url=hanging, max_retries=0, timeout=0.1) as client:
        print(outcome_of(lambda: client.patients.retrieve("pat_1")))
    print(outcome_of(lambda: asyncio.run(call(hanging, timeout=0.1))))
print([str(each.message) for each in caught if each.category is RuntimeWarning])
"""


NEEDED = {each for names in private_names.NEEDED.values() for each in names}
OF_HTTPX = {each for each in NEEDED if each.startswith(("Client.", "HTTPTransport."))}


@pytest.mark.parametrize(
    ("package", "names"),
    [(httpx, OF_HTTPX), (httpcore, NEEDED - OF_HTTPX), (httpcore, {"ConnectionPool._requests"})],
    ids=["httpx", "httpcore", "_requests"],
)
def test_a_renamed_name_turns_features_off(
    package: Any, names: set[str], server: ScriptedServer, tmp_path: Path
) -> None:
    renamed = "|".join(each.split(".")[1] for each in names)
    copy = tmp_path / package.__name__
    shutil.copytree(Path(package.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for file in copy.rglob("*.py"):
        file.write_text(re.sub(rf"\b({renamed})\b", r"\1_renamed", file.read_text()))
    with ScriptedServer([hang(server.released)]) as hanging, ScriptedServer([reply(200, patient())]) as answering:
        urls = [hanging.url, f"http://127.0.0.1:{free_port()}", answering.url]
        done = subprocess.run(
            [sys.executable, "-c", CALLS, *urls],
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, "PYTHONPATH": str(tmp_path), "NO_PROXY": "*"},
        )
        server.released.set()
    *outcomes, warned = done.stdout.splitlines()
    assert outcomes == ["APIConnectionError"] * 3 + ["pat_1"] * 3 + ["APITimeoutError"] * 2, done.stderr
    assert warned.count("do not have") == 1
    assert all(each in warned for each in names)


@pytest.mark.parametrize(
    ("proxy", "expected"),
    [
        ("http://user:password@proxy.example:3128", "http://proxy.example:3128"),
        ("http://proxy.example", "http://proxy.example"),
        ("socks5://[::1]:1080", "socks5://[::1]:1080"),
    ],
)
def test_the_pool_of_a_proxy_has_its_url(proxy: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    monkeypatch.setenv("NO_PROXY", "excluded.example")
    with httpx.Client() as client:
        assert private_names.proxy_of(client, "https://api.example.com/v1") == expected
        assert private_names.proxy_of(client, "https://excluded.example/v1") is None
