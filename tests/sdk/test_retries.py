"""Retries over real sockets with both clients; ``test_call.py`` tests the decisions as a table."""

import asyncio
import socket
import time
from typing import Any

import pytest
from support.drivers import Driver
from support.responses import patient
from support.server import ScriptedServer, hang_up, reply

from followup import APIConnectionError, InternalServerError


def create(client: Any) -> Any:
    return client.patients.create(phone="+54 9 11 5555-0000", full_name="Ana Pérez")


def retrieve(client: Any) -> Any:
    return client.patients.retrieve("pat_1")


@pytest.fixture
def sleeps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits between attempts, in seconds, which are recorded in place of sleeping."""
    recorded: list[float] = []
    sleep_of_tasks = asyncio.sleep

    async def sleep(seconds: float) -> None:
        if seconds > 0:
            recorded.append(seconds)
        await sleep_of_tasks(0)

    monkeypatch.setattr(time, "sleep", recorded.append)
    monkeypatch.setattr(asyncio, "sleep", sleep)
    return recorded


@pytest.mark.usefixtures("quick_backoff")
class TestRetries:
    def test_every_attempt_carries_the_same_key_and_the_same_bytes(
        self, server: ScriptedServer, driver: Driver
    ) -> None:
        server.script = [reply(500), hang_up, reply(200, patient())]
        driver.call(server.url, create)
        keys = {each.headers["idempotency-key"] for each in server.received}
        assert len(keys) == 1
        assert keys != {""}
        assert len({each.body for each in server.received}) == 1
        assert len(server.received) == 3

    def test_a_connection_that_breaks_may_have_been_sent(self, server: ScriptedServer, driver: Driver) -> None:
        server.script = [hang_up]
        with pytest.raises(APIConnectionError) as caught:
            driver.call(server.url, create, max_retries=0)
        assert len(server.received) == 1
        assert caught.value.was_sent == "maybe"

    def test_a_refused_connection_was_never_sent(self, driver: Driver) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
        with pytest.raises(APIConnectionError) as caught:
            driver.call(f"http://127.0.0.1:{port}", create, max_retries=1)
        assert caught.value.was_sent == "no"
        assert caught.value.attempts == 2
        assert caught.value.idempotency_key


class TestSleeping:
    def test_a_driver_sleeps_as_long_as_the_call_waits(
        self, server: ScriptedServer, driver: Driver, sleeps: list[float]
    ) -> None:
        server.script = [
            reply(429, headers={"Retry-After": "7.25"}),
            reply(503, headers={"Retry-After": "60"}),
            reply(200, patient()),
        ]
        driver.call(server.url, create)
        assert sleeps == [7.25, 60]

    def test_clients_spread_their_retries(self, server: ScriptedServer, driver: Driver, sleeps: list[float]) -> None:
        server.script = [reply(503)]
        for _ in range(5):
            with pytest.raises(InternalServerError):
                driver.call(server.url, create, max_retries=1)
        assert len(set(sleeps)) == 5
        assert all(0.375 <= each <= 0.5 for each in sleeps)

    def test_a_stale_connection_is_replaced_at_once(
        self, server: ScriptedServer, driver: Driver, sleeps: list[float]
    ) -> None:
        server.script = [reply(200, patient()), hang_up, reply(200, patient())]
        with driver.session(server.url) as session:
            session.call(retrieve)
            session.call(retrieve)
        assert [each.connection for each in server.received] == [1, 1, 2]
        assert sleeps == []
