"""The fixture ``followup_env``: code under test creates its own client, and nothing but the mock can be reached."""

import asyncio
import os
import warnings
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from support.receivers import Inbox, listening

from followup import AsyncFollowUp, FollowUp
from followup_mockserver import MockEnvironment, RejectedRequest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # Starlette prefers another HTTP client for its TestClient
    from fastapi.testclient import TestClient

pytest_plugins = ["pytester"]

ELSEWHERE = "https://api.clinic.example/v1/patients"


@pytest.fixture
def other() -> Iterator[SimpleNamespace]:
    """A server of the test itself, on a loopback address, with its requests."""
    inbox = Inbox()
    with listening(inbox) as url:
        yield SimpleNamespace(url=url.removesuffix("/hooks"), requests=inbox.requests)


async def with_async_httpx(url: str) -> None:
    async with httpx.AsyncClient() as client:
        await client.get(url)


def with_httpx(url: str) -> None:
    with httpx.Client() as client:
        client.get(url)


def with_the_sdk_in_a_thread(url: str) -> None:
    with httpx.Client() as http, FollowUp(base_url=url, http_client=http, timeout=5, max_retries=5) as client:
        client.account.retrieve()


def with_the_sdk(url: str) -> None:
    with FollowUp(base_url=url, max_retries=5) as client:
        client.account.retrieve()


async def with_the_async_sdk(url: str) -> None:
    async with AsyncFollowUp(base_url=url, max_retries=5) as client:
        await client.account.retrieve()


CLIENTS: list[Callable[[str], Any]] = [
    with_httpx,
    with_async_httpx,
    with_the_sdk,
    with_the_sdk_in_a_thread,
    with_the_async_sdk,
]


def call(use: Callable[[str], Any], url: str) -> None:
    done = use(url)
    if done is not None:
        asyncio.run(done)


def test_clients_of_the_code_under_test_reach_the_service(followup_env: MockEnvironment) -> None:
    with FollowUp() as client:
        client.patients.create(phone="+5491155550000")

    async def use() -> None:
        async with AsyncFollowUp() as client:
            await client.patients.list()
        async with httpx.AsyncClient() as http, AsyncFollowUp(http_client=http) as client:
            await client.doctors.list()

    asyncio.run(use())
    headers = {"Authorization": f"Bearer {os.environ['FOLLOWUP_API_KEY']}"}
    assert httpx.get(f"{os.environ['FOLLOWUP_BASE_URL']}/v1/account", headers=headers).status_code == 200
    assert [each.operation for each in reversed(followup_env.service.requests)] == [
        "patients.create",
        "patients.list",
        "doctors.list",
        "account.retrieve",
    ]


OTHER_PORT, OTHER_SCHEME = "http://followup.mock:81/v1/account", "https://followup.mock/v1/account"


@pytest.mark.parametrize(
    ("use", "url"),
    [(with_httpx, OTHER_PORT), (with_async_httpx, OTHER_SCHEME), *((each, ELSEWHERE) for each in CLIENTS)],
)
def test_another_server_is_rejected(
    followup_env: MockEnvironment, other: SimpleNamespace, use: Callable[[str], Any], url: str
) -> None:
    url = url.replace("https://api.clinic.example", other.url)
    origin = url[: url.index("/v1")]
    with pytest.raises(RejectedRequest) as caught:
        call(use, url)
    assert isinstance(caught.value, AssertionError)
    assert not isinstance(caught.value, (httpx.HTTPError, OSError))
    assert other.requests == []
    assert str(caught.value).startswith(f"followup_env rejected GET {origin}/v1/")
    assert "reaches only http://followup.mock." in str(caught.value)
    assert f"followup_env.allow('{origin}')" in str(caught.value)
    assert followup_env.service.requests == []
    assert followup_env.service.waits == [], "it was not retried"


def test_the_message_shows_neither_query_nor_personal_data(followup_env: MockEnvironment) -> None:
    with pytest.raises(RejectedRequest) as caught:
        httpx.get("https://ana:secret@api.clinic.example/v1/patients/30123456?phone=%2B5491155550000&name=Ana")
    assert "https://api.clinic.example/v1/patients/…:" in str(caught.value)
    for hidden in ("secret", "ana", "30123456", "5555", "Ana"):
        assert hidden not in str(caught.value)


@pytest.mark.parametrize("use", [with_httpx, with_async_httpx])
def test_an_allowed_server_is_reached(
    followup_env: MockEnvironment, other: SimpleNamespace, use: Callable[[str], Any]
) -> None:
    followup_env.allow("http://127.0.0.1:1", f"{other.url}/any/path")
    call(use, f"{other.url}/it")
    assert [each.url.path for each in other.requests] == ["/it"]
    with pytest.raises(
        RejectedRequest, match=rf"reaches only http://followup.mock and http://127.0.0.1:1 and {other.url}"
    ):
        call(use, ELSEWHERE)


@pytest.mark.parametrize("url", ["clinic.example", "", "ftp://clinic.example", "http://", "http://clinic:no", None])
def test_an_invalid_url_is_not_allowed(followup_env: MockEnvironment, url: Any) -> None:
    with pytest.raises(
        ValueError, match=r"allow: .* must be a URL with scheme and host, such as http://127.0.0.1:8000"
    ):
        followup_env.allow(url)


def test_transports_without_network_are_left_alone(followup_env: MockEnvironment) -> None:
    app = FastAPI()

    @app.get("/book")
    def book() -> str:
        with FollowUp() as client:
            return client.patients.create(phone="+5491155550000").id

    with TestClient(app) as client:
        assert client.get("/book").json().startswith("pat_")
    answers = httpx.MockTransport(lambda _: httpx.Response(204))
    assert httpx.Client(transport=answers).get(ELSEWHERE).status_code == 204
    assert [each.operation for each in followup_env.service.requests] == ["patients.create"]


def test_a_receiver_that_calls_elsewhere_fails_the_test(followup_env: MockEnvironment) -> None:
    def receive(_: httpx.Request) -> httpx.Response:
        httpx.get(ELSEWHERE)
        return httpx.Response(204)

    with FollowUp() as client:
        client.webhook_endpoints.create(url="https://clinic.example/hooks", enabled_events=["*"])
        client.patients.create(phone="+5491155550000")
    followup_env.service.mount("https://clinic.example/hooks", receive)
    with pytest.raises(RejectedRequest):
        followup_env.service.advance()


def test_the_end_of_a_test(pytester: pytest.Pytester, other: SimpleNamespace) -> None:
    pytester.makepyfile(
        f"""
        import httpx, os, pytest
        from concurrent.futures import ThreadPoolExecutor
        from followup import FollowUp
        before = httpx.HTTPTransport.handle_request, httpx.AsyncHTTPTransport.handle_async_request

        def test_reaches_the_mock(followup_env):
            with FollowUp() as client:
                assert client.account.retrieve()

        def test_afterwards_everything_is_as_before():
            assert "FOLLOWUP_BASE_URL" not in os.environ and "FOLLOWUP_API_KEY" not in os.environ
            assert before == (httpx.HTTPTransport.handle_request, httpx.AsyncHTTPTransport.handle_async_request)
            assert httpx.get("{other.url}").status_code == 204

        def test_another_thread_hides_a_rejection(followup_env):
            with ThreadPoolExecutor() as pool:
                pool.submit(httpx.get, "https://api.clinic.example/v1/patients")

        def test_a_rejection_is_expected(followup_env):
            with httpx.Client() as http, FollowUp(base_url="https://a.example", http_client=http, timeout=5) as client:
                with pytest.raises(Exception, match="followup_env rejected"):  # raised by a thread of the attempt
                    client.account.retrieve()
        """
    )
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:asyncio")
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*_ test_another_thread_hides_a_rejection _*",
            "followup_env rejected GET https://api.clinic.example/v1/patients: *",
        ]
    )
