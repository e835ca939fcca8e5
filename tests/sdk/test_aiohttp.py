"""``AsyncFollowUp(http_client=httpx_aiohttp.HttpxAiohttpClient())``: the extra ``aiohttp``."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import httpx_aiohttp
import pytest
from support.ports import free_port
from support.responses import patient
from support.server import Action, ScriptedServer, drip, hang, hang_up, reply

from followup import APIConnectionError, APITimeoutError, AsyncFollowUp, Patient
from followup_mockserver import MockServer

pytestmark = pytest.mark.usefixtures("quick_backoff")


def run(url: str, use: Callable[[AsyncFollowUp], Awaitable[Any]], **options: Any) -> Any:
    async def main() -> Any:
        async with (
            httpx_aiohttp.HttpxAiohttpClient() as theirs,
            AsyncFollowUp(api_key="fu_test_mock", base_url=url, http_client=theirs, **options) as client,
        ):
            return await use(client)

    return asyncio.run(main())


async def retrieve(client: AsyncFollowUp) -> Patient:
    return await client.patients.retrieve("pat_1")


def test_calls_and_pages_with_the_mock() -> None:
    async def use(client: AsyncFollowUp) -> tuple[list[str | None], set[str]]:
        create = client.patients.create
        made = await asyncio.gather(
            *(create(phone=f"+54911555500{number:02}", full_name=f"Ana {number}") for number in range(50))
        )
        assert {each.id for each in await asyncio.gather(*(client.patients.retrieve(each.id) for each in made))} == {
            each.id for each in made
        }
        await client.patients.update(made[0].id, full_name="Eva")
        return [each.full_name async for each in client.patients.list(limit=20)], {each.id for each in made}

    with MockServer() as server:
        names, ids = run(server.url, use)
    assert len(ids) == 50
    assert sorted(str(each) for each in names) == sorted([f"Ana {number}" for number in range(1, 50)] + ["Eva"])


@pytest.mark.parametrize("failure", [hang_up, reply(503), reply(429, headers={"Retry-After": "0"})])
def test_a_passing_failure_is_retried_with_the_same_key(server: ScriptedServer, failure: Action) -> None:
    server.script = [failure, reply(200, patient())]
    assert run(server.url, lambda client: client.patients.create(phone="1")).id == "pat_1"
    assert len({each.headers["idempotency-key"] for each in server.received}) == 1
    assert len(server.received) == 2


def test_a_refused_connection_was_not_sent() -> None:
    with pytest.raises(APIConnectionError) as caught:
        run(f"http://127.0.0.1:{free_port()}", retrieve, max_retries=0)
    assert caught.value.was_sent == "no"


@pytest.mark.parametrize("bound", ["timeout", "deadline"])
@pytest.mark.parametrize("endless", [hang, drip])
def test_a_response_without_end_ends_in_time(server: ScriptedServer, endless: Any, bound: str) -> None:
    server.script = [endless(server.released)]
    with pytest.raises(APITimeoutError) as caught:
        run(server.url, retrieve, max_retries=0, **{bound: 0.3})
    assert caught.value.was_sent == "maybe"
