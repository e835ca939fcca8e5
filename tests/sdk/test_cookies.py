"""Our transport neither stores nor sends cookies, which could link the requests of different organizations."""

from typing import Any

import httpx
import pytest
from support.drivers import Driver
from support.responses import page, patient
from support.server import ScriptedServer, reply

COOKIE = {"Set-Cookie": "session=theirs; Path=/"}


@pytest.mark.parametrize("own", [False, True], ids=["our connections", "http_client"])
def test_only_a_client_of_the_users_own_keeps_them(server: ScriptedServer, driver: Driver, own: bool) -> None:
    server.script = [reply(200, page(patient(), more=more), headers=COOKIE) for more in (True, False)]
    kind: Any = httpx.Client if driver.name == "sync" else httpx.AsyncClient
    theirs = kind(cookies={"mine": "1"}, headers={"X-Mine": "1"}, limits=httpx.Limits(max_keepalive_connections=0))
    options = {"http_client": theirs} if own else {}
    driver.items(server.url, lambda client: client.patients.list(), **options)
    sent = [(each.headers.get("cookie"), each.headers.get("x-mine")) for each in server.received]
    assert sent == ([("mine=1", "1"), ("mine=1; session=theirs", "1")] if own else [(None, None)] * 2)
