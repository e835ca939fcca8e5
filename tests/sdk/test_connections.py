"""Connections: shared, closed, left open, dropped with their event loop, and never leaked."""

import asyncio
import gc
import json
import os
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.answers import patient
from support.server import Received, ScriptedServer, reply

from followup import APIStatusError, AsyncFollowUp, ConfigurationError, FollowUp, InternalServerError


def open_files() -> int:
    return len([*Path("/proc/self/fd").iterdir()])


def test_calls_share_a_connection(server: ScriptedServer) -> None:
    server.script = [reply(200, patient())]
    with FollowUp(api_key="k", base_url=server.url) as client:
        for _ in range(5):
            client.patients.retrieve("pat_1")
    assert server.connections == 1


def test_a_closed_client_says_so(server: ScriptedServer) -> None:
    client = FollowUp(api_key="k", base_url=server.url)
    client.close()
    client.close()
    with pytest.raises(ConfigurationError, match="closed"):
        client.patients.retrieve("pat_1")

    async def use_closed() -> None:
        async_client = AsyncFollowUp(api_key="k", base_url=server.url)
        await async_client.close()
        await async_client.patients.retrieve("pat_1")

    with pytest.raises(ConfigurationError, match="closed"):
        asyncio.run(use_closed())


def test_closing_a_derived_client_leaves_the_parents_connections_open(server: ScriptedServer) -> None:
    server.script = [reply(200, patient())]
    with FollowUp(api_key="k", base_url=server.url) as client:
        client.patients.retrieve("pat_1")
        with client.with_options(timeout=1, max_retries=0, deadline=5) as derived:
            derived.patients.retrieve("pat_1")
        client.patients.retrieve("pat_1")
    assert server.connections == 1


def test_closing_an_async_derived_client_leaves_the_parents_connections_open(server: ScriptedServer) -> None:
    server.script = [reply(200, patient())]

    async def use() -> None:
        async with AsyncFollowUp(api_key="k", base_url=server.url) as client:
            async with client.with_options(max_retries=0) as derived:
                await derived.patients.retrieve("pat_1")
            await client.patients.retrieve("pat_1")

    asyncio.run(use())
    assert server.connections == 1


def test_derived_options_hold_for_the_derived_client_only(server: ScriptedServer) -> None:
    server.script = [reply(500), reply(200, patient())]
    with FollowUp(api_key="k", base_url=server.url) as client:
        with pytest.raises(InternalServerError, match="500"):
            client.with_options(max_retries=0).patients.retrieve("pat_1")
        assert client.patients.retrieve("pat_1").id == "pat_1"


def test_a_client_of_the_users_own_is_used_and_left_open(server: ScriptedServer) -> None:
    server.script = [reply(200, patient())]
    with httpx.Client(headers={"X-Mine": "1"}, auth=("user", "password"), follow_redirects=True) as own:
        with FollowUp(api_key="k", base_url=server.url, http_client=own) as client:
            client.patients.retrieve("pat_1")
        assert not own.is_closed
    assert server.received[0].headers["x-mine"] == "1"
    assert server.received[0].headers["authorization"] == "Bearer k"


def test_the_key_does_not_follow_a_redirect(server: ScriptedServer) -> None:
    with ScriptedServer(script=[reply(200, patient())]) as elsewhere:
        server.script = [reply(307, headers={"Location": f"{elsewhere.url}/v1/patients/pat_1"})]
        with httpx.Client(follow_redirects=True) as own, pytest.raises(APIStatusError, match="307"):
            FollowUp(api_key="k", base_url=server.url, http_client=own).patients.retrieve("pat_1")
        assert elsewhere.received == []


def test_one_async_client_in_three_event_loops_one_after_another(server: ScriptedServer) -> None:
    server.script = [reply(200, patient())]
    client = AsyncFollowUp(api_key="k", base_url=server.url)

    async def use() -> str:
        first = await client.patients.retrieve("pat_1")
        await client.patients.retrieve("pat_1")
        return first.id

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # each loop ends with its connections open
        assert [asyncio.run(use()) for _ in range(3)] == ["pat_1"] * 3

        async def close() -> None:
            await client.close()

        asyncio.run(close())
        gc.collect()
    assert server.connections == 3


def test_an_async_client_that_was_not_closed_warns_and_schedules_nothing(server: ScriptedServer) -> None:
    server.script = [reply(200, patient())]

    async def forget() -> None:
        client = AsyncFollowUp(api_key="k", base_url=server.url)
        await client.patients.retrieve("pat_1")
        tasks = asyncio.all_tasks()
        del client
        with pytest.warns(ResourceWarning, match="unclosed FollowUp client"):
            gc.collect()
        assert asyncio.all_tasks() == tasks

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        asyncio.run(forget())
        gc.collect()


def test_ten_thousand_calls_leak_no_file_descriptor() -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=patient()))
    with ScriptedServer(script=[reply(200, patient())]) as server:
        before = open_files()
        with FollowUp(api_key="k", base_url=server.url) as client:
            for _ in range(500):
                client.patients.retrieve("pat_1")
            for _ in range(50):
                with FollowUp(api_key="k", base_url=server.url) as short:
                    short.patients.retrieve("pat_1")
        assert open_files() <= before + 2
    before = open_files()
    with httpx.Client(transport=transport) as own:
        client = FollowUp(api_key="k", base_url="http://x", http_client=own)
        for _ in range(10_000):
            client.patients.retrieve("pat_1")
    assert open_files() <= before + 2


def echo_phone(connection: Any, received: Received) -> bool:
    phone = json.loads(received.body)["phone"]
    return reply(200, patient(phone=phone))(connection, received)


def test_sixteen_threads_share_a_client(server: ScriptedServer) -> None:
    server.script = [echo_phone]
    with FollowUp(api_key="k", base_url=server.url) as client, ThreadPoolExecutor(16) as pool:
        phones = [f"{number}" for number in range(400)]
        found = list(pool.map(lambda phone: client.patients.create(phone=phone).phone, phones))
    assert found == phones


def test_a_hundred_tasks_share_a_client(server: ScriptedServer) -> None:
    server.script = [echo_phone]

    async def use() -> list[str | None]:
        async with AsyncFollowUp(api_key="k", base_url=server.url) as client:
            made = await asyncio.gather(*(client.patients.create(phone=str(number)) for number in range(100)))
            return [each.phone for each in made]

    assert asyncio.run(use()) == [str(number) for number in range(100)]


def test_a_client_goes_on_working_after_a_fork(server: ScriptedServer) -> None:
    server.script = [echo_phone]
    with FollowUp(api_key="k", base_url=server.url) as client:
        client.patients.create(phone="parent")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # forking beside threads, as pre-forking servers do
            child = os.fork()
        if child == 0:
            phone = "lost"
            try:
                phone = client.patients.create(phone="child").phone or ""
            finally:
                os._exit(0 if phone == "child" else 1)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        assert client.patients.create(phone="again").phone == "again"
    numbers = {json_phone(each): each.connection for each in server.received}
    assert numbers["parent"] == numbers["again"] != numbers["child"]


def json_phone(received: Received) -> str:
    return str(json.loads(received.body)["phone"])


def test_a_deadline_leaves_no_thread_behind(server: ScriptedServer) -> None:
    server.script = [reply(200, patient())]
    with FollowUp(api_key="k", base_url=server.url, deadline=5) as client:
        for _ in range(20):
            client.patients.retrieve("pat_1")
    for thread in threading.enumerate():
        if thread.name == "followup-deadline":
            thread.join(1)
            assert not thread.is_alive()
