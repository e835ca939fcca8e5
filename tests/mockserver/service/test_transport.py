"""The transport without a socket: what an application sees of a request, and what both clients see of its response."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from followup_mockserver import MockService
from followup_mockserver.service import InProcessTransport

BASE = "http://followup.mock"
Send = Callable[..., httpx.Response]


def echo(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    """Answers with what arrived."""
    seen = {name: value for name, value in environ.items() if isinstance(value, str)}
    seen["body"] = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)).decode()
    start_response("200 OK", [("Content-Type", "application/json"), ("X-Two", "a"), ("X-Two", "b")])
    return [json.dumps(seen).encode()]


def send_sync(app: Any, method: str, path: str, **request: Any) -> httpx.Response:
    with httpx.Client(transport=InProcessTransport(app), base_url=BASE, follow_redirects=True) as client:
        return client.request(method, path, **request)


def send_async(app: Any, method: str, path: str, **request: Any) -> httpx.Response:
    async def run() -> httpx.Response:
        transport = InProcessTransport(app)
        async with httpx.AsyncClient(transport=transport, base_url=BASE, follow_redirects=True) as client:
            return await client.request(method, path, **request)

    return asyncio.run(run())


@pytest.fixture(params=[send_sync, send_async], ids=["sync", "async"])
def send(request: pytest.FixtureRequest) -> Send:
    chosen: Send = request.param
    return chosen


def test_the_application_sees_the_request(send: Send) -> None:
    response = send(
        echo, "PATCH", "/a%20ñ/%2Fb?q=1&q=%C3%B1", content=b"body", headers=[("X-Own", "a"), ("X-Own", "b")]
    )
    seen = response.json()
    assert (seen["REQUEST_METHOD"], seen["QUERY_STRING"], seen["HTTP_X_OWN"]) == ("PATCH", "q=1&q=%C3%B1", "a, b")
    assert seen["PATH_INFO"].encode("latin-1").decode() == "/a ñ//b"
    assert (seen["body"], seen["SERVER_NAME"], seen["SERVER_PORT"]) == ("body", "followup.mock", "80")
    assert response.headers.get_list("x-two") == ["a", "b"]


@pytest.mark.parametrize("kind", ["disconnect", "truncate"])
def test_a_connection_that_a_fault_drops_is_a_protocol_error(send: Send, kind: Any) -> None:
    service = MockService(rate_limit=0)
    service.add_fault(operation="account.retrieve", kind=kind)
    headers = {"Authorization": f"Bearer {service.api_key}"}
    with pytest.raises(httpx.RemoteProtocolError) as caught:
        send(service._wsgi_app, "GET", "/v1/account", headers=headers)
    assert caught.value.request.url.path == "/v1/account"
    assert send(service._wsgi_app, "GET", "/v1/account", headers=headers).status_code == 200


def test_an_error_of_the_application_is_raised_and_its_response_is_closed(send: Send) -> None:
    closed = []

    class Answer:
        def __iter__(self) -> Iterator[bytes]:
            yield b"half"
            raise ZeroDivisionError

        def close(self) -> None:
            closed.append(True)

    def app(_: dict[str, Any], start_response: Any) -> Any:
        start_response("200 OK", [])
        return Answer()

    with pytest.raises(ZeroDivisionError):
        send(app, "GET", "/")
    assert closed == [True]


def test_a_long_poll_of_the_control_api_does_not_block_the_event_loop() -> None:
    other_call = threading.Event()

    def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        if environ["PATH_INFO"] == "/_mock/messages":
            assert other_call.wait(60)
        else:
            other_call.set()
        return echo(environ, start_response)

    async def run() -> list[int]:
        async with httpx.AsyncClient(transport=InProcessTransport(app), base_url=BASE) as client:
            calls = asyncio.gather(client.get("/_mock/messages"), client.get("/v1/account"))
            return [each.status_code for each in await calls]

    assert asyncio.run(run()) == [200, 200]
