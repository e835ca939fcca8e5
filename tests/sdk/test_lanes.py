"""Calls that wait for a free connection, of which there are at most 100."""

import asyncio
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import httpx
import pytest
from support.drivers import Driver
from support.responses import patient
from support.server import Received, ScriptedServer, hang, reply
from support.waiting import wait_for

from followup import APITimeoutError, AsyncFollowUp, FollowUp
from followup._core.http import transport


def retrieve(client: Any) -> Any:
    return client.patients.retrieve("pat_1")


class TestTheWait:
    def test_does_not_count_towards_an_attempt(
        self, server: ScriptedServer, driver: Driver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(transport, "MOST_LANES", 1)

        def slowly(connection: Any, received: Received) -> bool:
            time.sleep(0.25)
            return reply(200, patient())(connection, received)

        server.script = [slowly]
        with driver.session(server.url, timeout=1.5, max_retries=0) as session:
            assert [each.id for each in session.at_once(retrieve, 8)] == ["pat_1"] * 8
        assert (server.connections, len(server.received)) == (1, 8)

    def test_of_hundreds_of_calls(self, server: ScriptedServer) -> None:
        server.script = [reply(200, patient())]

        async def use() -> list[str]:
            async with AsyncFollowUp(api_key="k", base_url=server.url, max_retries=0) as client:
                calls = (client.patients.retrieve("pat_1") for _ in range(900))
                return [each.id for each in await asyncio.gather(*calls)]

        assert asyncio.run(use()) == ["pat_1"] * 900
        assert server.connections <= 100

    @pytest.mark.parametrize("option", [{"deadline": 0.3}, {"timeout": httpx.Timeout(30, pool=0.3)}], ids=str)
    def test_ends_with_the_deadline_or_the_pool_timeout(
        self, server: ScriptedServer, driver: Driver, option: dict[str, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(transport, "MOST_LANES", 1)
        server.script = [hang(server.released)]

        def threads(client: FollowUp) -> None:
            with ThreadPoolExecutor(1) as pool:
                pool.submit(retrieve, client)
                wait_for(lambda: server.received)
                with pytest.raises(APITimeoutError) as caught:
                    retrieve(client.with_options(**option))
                assert caught.value.was_sent == "no"
                server.stop_listening()
                server.released.set()

        async def tasks(client: AsyncFollowUp) -> None:
            first = asyncio.ensure_future(client.patients.retrieve("pat_1"))
            await asyncio.to_thread(wait_for, lambda: server.received)
            with pytest.raises(APITimeoutError) as caught:
                await client.with_options(**option).patients.retrieve("pat_1")
            assert caught.value.was_sent == "no"
            first.cancel()

        with driver.session(server.url, max_retries=0) as session:
            session.call(tasks if driver.name == "async" else threads)

    def test_serves_calls_again_after_more_than_there_are_connections_time_out(
        self, server: ScriptedServer, driver: Driver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(transport, "MOST_LANES", 3)
        server.script = [hang(server.released)]
        with driver.session(server.url, max_retries=0) as session:
            outcomes = session.at_once(lambda client: retrieve(client.with_options(deadline=0.2)), 16)
            assert {type(each) for each in outcomes} == {APITimeoutError}
            server.script = [reply(200, patient())]
            assert session.call(retrieve).id == "pat_1"

    def test_serves_calls_again_after_more_than_there_are_connections_are_cancelled(
        self, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(transport, "MOST_LANES", 3)
        server.script = [hang(server.released)]

        async def tasks() -> str:
            async with AsyncFollowUp(api_key="k", base_url=server.url, max_retries=0) as client:
                calls = [asyncio.ensure_future(client.patients.retrieve("pat_1")) for _ in range(16)]
                await asyncio.to_thread(wait_for, lambda: len(server.received) == 3)
                for each in calls:
                    each.cancel()
                await asyncio.gather(*calls, return_exceptions=True)
                server.script = [reply(200, patient())]
                return (await client.patients.retrieve("pat_1")).id

        assert asyncio.run(tasks()) == "pat_1"


def test_a_server_that_sends_without_a_request_has_to_wait(server: ScriptedServer) -> None:
    """An idle connection of an event loop keeps no more than it may, whatever arrives on it."""
    sent, over = 0, threading.Event()

    def act(connection: socket.socket, received: Received) -> bool:
        reply(200, patient())(connection, received)
        connection.settimeout(0.5)
        nonlocal sent
        with suppress(OSError):
            while not over.is_set() and sent < 64 * 2**20:
                sent += connection.send(bytes(2**16))
        over.set()
        return False

    async def idle() -> None:
        async with AsyncFollowUp(api_key="k", base_url=server.url) as client:
            await client.patients.retrieve("pat_1")
            while not over.is_set():  # noqa: ASYNC110 - a thread sets it
                await asyncio.sleep(0.01)

    server.script = [act]
    asyncio.run(idle())
    assert sent < 32 * 2**20  # what the buffers of the system take
