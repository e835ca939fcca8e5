"""Cookies are neither stored nor sent, since they could link the requests of different organizations."""

import asyncio
from typing import Any

import aiohttp
import httpx
import httpx_aiohttp
import pytest
from support.drivers import Driver
from support.responses import page, patient
from support.server import ScriptedServer, reply

from followup import AsyncFollowUp, FollowUp

COOKIE = {"Set-Cookie": "session=theirs; Path=/"}


@pytest.fixture
def setting(server: ScriptedServer) -> ScriptedServer:
    """A server that sets a cookie in each response."""
    server.script = [reply(200, patient(), headers=COOKIE)]
    return server


def cookies_sent(server: ScriptedServer) -> list[str | None]:
    return [each.headers.get("cookie") for each in server.received]


def test_ours_are_neither_kept_nor_sent(setting: ScriptedServer, driver: Driver) -> None:
    setting.script = [reply(200, page(patient(), more=more), headers=COOKIE) for more in (True, False)]
    driver.items(setting.url, lambda client: client.patients.list())
    assert cookies_sent(setting) == [None, None]


@pytest.mark.parametrize("options", [{}, {"deadline": 20}], ids=str)
def test_those_of_a_users_own_client_stay_its_own(setting: ScriptedServer, options: dict[str, Any]) -> None:
    with httpx.Client(cookies={"mine": "1"}) as own:
        client = FollowUp(api_key="k", base_url=setting.url, http_client=own, **options)
        client.patients.retrieve("pat_1")
        client.patients.retrieve("pat_1")
        assert cookies_sent(setting) == [None, None]
        assert dict(own.cookies) == {"mine": "1"}

        # Its owner's requests go on as ever, and keep what they get.
        own.get(setting.url)
        own.get(setting.url)
        assert cookies_sent(setting)[2:] == ["mine=1", "mine=1; session=theirs"]
        own.cookies = {"new": "2"}  # type: ignore[assignment]
        client.patients.retrieve("pat_1")
        own.get(setting.url)
        assert cookies_sent(setting)[4:] == [None, "new=2"]


def test_those_of_a_users_own_async_client_stay_its_own(setting: ScriptedServer) -> None:
    async def use() -> None:
        async with httpx.AsyncClient(cookies={"mine": "1"}) as own:
            client = AsyncFollowUp(api_key="k", base_url=setting.url, http_client=own)
            await client.patients.retrieve("pat_1")
            await asyncio.gather(own.get(setting.url), client.patients.retrieve("pat_1"))
            await client.patients.retrieve("pat_1")
            assert dict(own.cookies) == {"mine": "1", "session": "theirs"}

    asyncio.run(use())
    assert sorted(str(each) for each in cookies_sent(setting)) == ["None", "None", "None", "mine=1"]


def test_a_cookie_header_of_a_users_own_client_is_not_sent_either(setting: ScriptedServer) -> None:
    with httpx.Client(headers={"Cookie": "gateway=1"}, cookies={"mine": "1"}) as own:
        FollowUp(api_key="k", base_url=setting.url, http_client=own).patients.retrieve("pat_1")
        own.get(setting.url)
    assert cookies_sent(setting)[0] is None
    assert "gateway=1" in str(cookies_sent(setting)[1])


def test_the_owner_of_a_client_may_give_it_another_jar(setting: ScriptedServer) -> None:
    with httpx.Client(cookies={"mine": "1"}) as own:
        FollowUp(api_key="k", base_url=setting.url, http_client=own).patients.retrieve("pat_1")
        own.cookies.jar = httpx.Cookies({"other": "2"}).jar
        own.get(setting.url)
    assert cookies_sent(setting) == [None, "other=2"]


def test_httpx_aiohttp_with_a_session_that_keeps_none(setting: ScriptedServer) -> None:
    async def use() -> None:
        async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:
            transport = httpx_aiohttp.AiohttpTransport(client=session)
            async with AsyncFollowUp(
                api_key="k", base_url=setting.url, http_client=httpx.AsyncClient(transport=transport), deadline=20
            ) as client:
                for _ in range(2):
                    assert (await client.patients.retrieve("pat_1")).id == "pat_1"

    asyncio.run(use())
    assert cookies_sent(setting) == [None, None]
