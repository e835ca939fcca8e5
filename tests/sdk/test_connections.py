"""Connections are shared, closed, dropped with their event loop, and never leaked."""

import asyncio
import gc
import gzip
import json
import socket
import threading
import warnings
from contextlib import nullcontext
from typing import Any

import httpcore
import httpx
import pytest
from support.drivers import Driver
from support.proxies import each_connection
from support.responses import page, patient
from support.server import Action, Received, ScriptedServer, reply

from followup import (
    APIConnectionError,
    APIStatusError,
    AsyncFollowUp,
    ConfigurationError,
    FollowUp,
    InternalServerError,
)
from followup._core.http.network import AsyncBackend


def test_a_closed_client_raises_a_clear_error(server: ScriptedServer) -> None:
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


def test_trio_is_not_supported(server: ScriptedServer) -> None:
    with httpx.Client() as _, pytest.raises(ConfigurationError, match=r"asyncio; trio .* not supported"):
        AsyncFollowUp(api_key="k", base_url=server.url).account.retrieve().send(None)  # type: ignore[attr-defined]


@pytest.mark.usefixtures("quick_backoff")
def test_a_client_that_is_closed_during_a_call(server: ScriptedServer) -> None:
    clients: list[FollowUp] = []

    def close_and(then: Action) -> Action:
        def act(connection: Any, received: Received) -> bool:
            clients[-1].close()
            return then(connection, received)

        return act

    for then in (reply(200, patient()), reply(503)):
        server.script = [close_and(then)]
        clients.append(FollowUp(api_key="k", base_url=server.url))
        fails = pytest.raises(ConfigurationError, match="has been closed")
        with fails if len(clients) == 2 else nullcontext():  # a retry; the attempt that is going on ends as ever
            assert clients[-1].patients.retrieve("pat_1").id == "pat_1"
    assert len(server.received) == 2
    assert server.open_at_the_client() == 0


def test_closing_a_derived_client_leaves_the_parents_connections_open(server: ScriptedServer, driver: Driver) -> None:
    def use(client: FollowUp) -> None:
        with client.with_options(timeout=60, max_retries=0, deadline=60) as derived:
            derived.patients.retrieve("pat_1")

    async def use_async(client: AsyncFollowUp) -> None:
        async with client.with_options(max_retries=0) as derived:
            await derived.patients.retrieve("pat_1")

    server.script = [reply(200, patient())]
    with driver.session(server.url) as session:
        session.call(use_async if driver.name == "async" else use)
        session.call(lambda client: client.patients.retrieve("pat_1"))
    assert server.connections == 1


def test_derived_options_hold_for_the_derived_client_only(server: ScriptedServer) -> None:
    server.script = [reply(500), reply(200, patient())]
    with FollowUp(api_key="k", base_url=server.url) as client:
        with pytest.raises(InternalServerError, match="500"):
            client.with_options(max_retries=0).patients.retrieve("pat_1")
        assert client.patients.retrieve("pat_1").id == "pat_1"


@pytest.mark.parametrize("own", [False, True], ids=["our connections", "http_client"])
def test_only_a_client_of_the_users_own_keeps_cookies_and_it_stays_open(
    server: ScriptedServer, driver: Driver, own: bool
) -> None:
    # Cookies could link the requests of different organizations.
    pages = [page(patient(), more=more) for more in (True, False)]
    server.script = [reply(200, each, headers={"Set-Cookie": "session=theirs; Path=/"}) for each in pages]
    kind: Any = httpx.Client if driver.name == "sync" else httpx.AsyncClient
    theirs = kind(
        cookies={"mine": "1"},
        headers={"X-Mine": "1"},
        auth=("user", "password"),
        limits=httpx.Limits(max_keepalive_connections=0),
    )
    driver.items(server.url, lambda client: client.patients.list(), **({"http_client": theirs} if own else {}))
    sent = [(each.headers.get("cookie"), each.headers.get("x-mine")) for each in server.received]
    assert sent == ([("mine=1", "1"), ("mine=1; session=theirs", "1")] if own else [(None, None)] * 2)
    assert {each.headers["authorization"] for each in server.received} == {"Bearer fu_secret_key"}
    assert not theirs.is_closed


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


def test_a_closed_http_client_of_the_user_raises_a_clear_error(server: ScriptedServer, driver: Driver) -> None:
    own: Any = httpx.Client() if driver.name == "sync" else httpx.AsyncClient()
    own.close() if driver.name == "sync" else asyncio.run(own.aclose())
    with pytest.raises(ConfigurationError, match="http_client has been closed"):
        driver.call(server.url, lambda client: client.patients.retrieve("pat_1"), http_client=own)
    assert server.received == []


def test_parameters_of_a_users_own_client_do_not_replace_ours(server: ScriptedServer, driver: Driver) -> None:
    # With them in the place of ours, a search for one patient would find all of them.
    server.script = [reply(200, page(patient()))]
    own: Any = (httpx.Client if driver.name == "sync" else httpx.AsyncClient)(
        params={"subscription": "1"}, limits=httpx.Limits(max_keepalive_connections=0)
    )
    driver.items(server.url, lambda client: client.patients.list(phone="+54 9 11"), http_client=own)
    query = httpx.URL(server.received[0].target).params
    assert dict(query) == {"subscription": "1", "phone": "+54 9 11"}


def test_a_request_that_httpx_cannot_make_is_an_error_of_ours(server: ScriptedServer, driver: Driver) -> None:
    own: Any = (httpx.Client if driver.name == "sync" else httpx.AsyncClient)()
    with pytest.raises(APIConnectionError, match=r"cannot be sent .*InvalidURL") as caught:  # its limit is 65,536
        driver.call(server.url, lambda client: client.patients.list(phone="1" * 70_000), http_client=own)
    assert (caught.value.was_sent, caught.value.attempts) == ("no", 1)
    assert caught.value.__context__ is None
    own.cookies.set("theirs", "ñ")  # as a server may have set it
    with pytest.raises(APIConnectionError, match=r"cannot be sent .*UnencodableHeader") as caught:
        driver.call(server.url, lambda client: client.patients.retrieve("pat_1"), http_client=own)
    assert (caught.value.was_sent, caught.value.attempts, caught.value.__context__) == ("no", 1, None)
    assert server.received == []


@pytest.mark.parametrize("meanwhile", ["hangs up", "sends another response"])
def test_what_happened_to_an_idle_connection_is_noticed_although_the_event_loop_was_blocked(
    server: ScriptedServer, meanwhile: str
) -> None:
    blocked, happened = threading.Event(), threading.Event()

    def respond(connection: socket.socket, received: Received) -> bool:
        reply(200, patient())(connection, received)
        assert blocked.wait(60)
        if meanwhile == "hangs up":
            connection.shutdown(socket.SHUT_RDWR)
        else:
            reply(200, patient(fullName="Another"))(connection, received)
        happened.set()
        return meanwhile != "hangs up"

    async def use() -> list[str | None]:
        async with AsyncFollowUp(api_key="k", base_url=server.url, max_retries=0) as client:
            first = await client.patients.retrieve("pat_1")
            blocked.set()
            assert happened.wait(60)
            return [first.full_name, (await client.patients.retrieve("pat_1")).full_name]

    server.script = [respond, reply(200, patient())]
    assert asyncio.run(use()) == [patient()["fullName"]] * 2
    assert server.connections == 2


def test_a_response_before_the_end_of_a_large_request(driver: Driver) -> None:
    body = gzip.compress(b'{"error": {"code": "too_large"}}' + b" " * 7_000_000)  # takes longer than the rest to send
    head = f"HTTP/1.1 413 X\r\nContent-Encoding: gzip\r\nContent-Length: {len(body)}\r\n\r\n".encode()

    def respond(connection: socket.socket) -> None:
        connection.recv(1024)
        connection.sendall(head + body)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(1024 * 1024):
            pass

    with each_connection(respond) as port, pytest.raises(APIStatusError) as caught:
        driver.call(
            f"http://127.0.0.1:{port}",
            lambda client: client.patients.create(phone="1", full_name="x" * 8_000_000),
            max_retries=0,
        )
    assert caught.value.code == "too_large"


def test_a_second_response_is_not_taken_for_that_of_the_next_call(server: ScriptedServer, driver: Driver) -> None:
    def twice(connection: socket.socket, _: Received) -> bool:
        both = [page(patient(f"pat_{number}")) for number in (1, 2)]
        bodies = [json.dumps(each).encode() for each in both]
        connection.sendall(b"".join(b"HTTP/1.1 200 X\r\nContent-Length: %d\r\n\r\n%b" % (len(b), b) for b in bodies))
        return True

    server.script = [twice]
    makes = [lambda client, phone=each: client.patients.list(phone=phone) for each in "123"]
    with driver.session(server.url, max_retries=1) as session:
        assert [session.call(each).data[0].id for each in makes] == ["pat_1"] * 3


def test_nothing_is_sent_on_a_connection_that_the_server_has_ended() -> None:
    async def use(port: int) -> bool:
        backend = AsyncBackend(0)
        stream = await backend.connect_tcp("127.0.0.1", port)
        assert await stream.read(1) == b""
        with pytest.raises(httpcore.WriteError):
            await stream.write(b"x")
        return backend.limit.has_sent

    with each_connection(lambda _: None) as port:
        assert asyncio.run(use(port)) is False
