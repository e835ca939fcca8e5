"""Mounted receivers: which kind of application they are, and that nothing leaves the process without permission."""

import functools
import json
import socket
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import Mock

import httpx
import pytest
from support.receiver_kinds import KINDS
from support.receivers import Inbox, listening

from followup_mockserver import MockService

URL = "https://clinic.example/hooks"
calls: list[str] = []


@pytest.fixture(autouse=True)
def no_calls() -> Iterator[None]:
    calls.clear()
    yield
    calls.clear()


def function(request: httpx.Request) -> httpx.Response:
    calls.append(request.headers["x-service-event-type"])
    return httpx.Response(204)


def with_an_option(request: httpx.Request, log: Any = None, status: int = 204) -> httpx.Response:
    return function(request)


async def coroutine_function(request: httpx.Request, retries: int = 0) -> httpx.Response:
    return function(request)


def wsgi(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    assert json.loads(environ["wsgi.input"].read())["type"] == environ["HTTP_X_SERVICE_EVENT_TYPE"]
    calls.append(environ["HTTP_X_SERVICE_EVENT_TYPE"])
    start_response("204 No Content", [])
    return []


async def asgi(scope: Any, receive: Any, send: Any) -> None:
    assert scope["type"] == "http"
    calls.append(json.loads((await receive())["body"])["type"])
    assert calls[-1] == dict(scope["headers"])[b"x-service-event-type"].decode()
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


async def any_arguments(*arguments: Any) -> Any:
    return await asgi(*arguments)


def decorated(app: Any) -> Any:
    @functools.wraps(app)
    def wrapper(*arguments: Any, **options: Any) -> Any:
        return app(*arguments, **options)

    return wrapper


def ping() -> None:
    calls.append("webhook.ping")


RECEIVERS: dict[str, Callable[[], Any]] = {
    **{name: functools.partial(make, ping) for name, make in KINDS.items()},
    "function with optional arguments": lambda: with_an_option,
    "partial of a coroutine function": lambda: functools.partial(coroutine_function, retries=1),
    "decorated function": lambda: decorated(function),
    "decorated ASGI": lambda: decorated(asgi),
    "mock object": lambda: Mock(side_effect=function),
    "WSGI that reads the body": lambda: wsgi,
    "ASGI that reads the body": lambda: asgi,
    "ASGI in a coroutine function of any arguments": lambda: any_arguments,
}


@pytest.mark.parametrize("make", RECEIVERS.values(), ids=RECEIVERS)
def test_it_receives_the_webhook(make: Callable[[], Any]) -> None:
    with MockService(rate_limit=0) as service, service.client() as client:
        endpoint = client.webhook_endpoints.create(url=URL, enabled_events=["*"])
        client.webhook_endpoints.ping(endpoint.id)
        service.mount(URL, make())
        service.advance()
        assert service.deliveries[0].last_status_code == 204
    assert calls == ["webhook.ping"]


@pytest.mark.parametrize("receiver", [None, "clinic", 204])
def test_something_that_cannot_be_called_is_a_type_error(receiver: Any) -> None:
    with pytest.raises(TypeError, match="requires an ASGI or WSGI application, or a function"):
        MockService().mount(URL, receiver)


def test_a_function_of_no_argument_raises_when_it_is_called() -> None:
    with MockService(rate_limit=0) as service, service.client() as client:
        client.webhook_endpoints.create(url=URL, enabled_events=["*"])
        client.patients.create(phone="+5491155550000")
        service.mount(URL, lambda: httpx.Response(204))
        with pytest.raises(TypeError, match="positional argument"):
            service.advance()


def delivered(service: MockService, url: str = URL) -> str | None:
    """Return the error of the first attempt of a delivery."""
    with service.client() as client:
        client.webhook_endpoints.create(url=url, enabled_events=["*"])
        client.patients.create(phone="+5491155550000")
    service.advance()
    return service.deliveries[0].last_error


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    monkeypatch.setattr(socket.socket, "connect", fail)


@pytest.mark.usefixtures("no_network")
class TestWithoutPermission:
    def test_a_url_at_which_nothing_is_mounted_is_a_failed_attempt(self) -> None:
        with MockService() as service:
            service.mount("https://clinic.example/hook", lambda _: httpx.Response(204))
            service.mount("https://other.example", lambda _: httpx.Response(204))
            assert delivered(service) == (
                "Nothing is mounted for https://clinic.example/hooks; mounted: https://clinic.example/hook, "
                "https://other.example. Use service.mount(), or MockService(allow_network=True)."
            )
            (delivery,) = service.deliveries
            assert (delivery.status, delivery.attempts, delivery.last_status_code) == ("pending", 1, None)
            assert delivery.next_attempt_at is not None
            service.mount(URL, lambda _: httpx.Response(204))
            service.advance(hours=1)
            assert service.deliveries[0].status == "succeeded"

    def test_the_error_shows_no_query_which_may_be_a_secret(self) -> None:
        with MockService() as service:
            service.mount("https://other.example/?token=t0psecret", lambda _: httpx.Response(204))
            error = delivered(service, f"{URL}?token=s3cret") or ""
        assert "s3cret" not in error
        assert "t0psecret" not in error
        assert error.startswith(f"Nothing is mounted for {URL}?…; mounted: https://other.example/?…. ")

    def test_a_loopback_address_needs_permission_too(self) -> None:
        with MockService(allow_http_webhooks=True) as service:
            error = delivered(service, "http://127.0.0.1:9/hooks") or ""
        assert "Nothing is mounted" in error
        assert "; mounted: nothing." in error


def test_with_permission_a_webhook_is_sent() -> None:
    inbox = Inbox()
    with listening(inbox) as url, MockService(allow_network=True, allow_http_webhooks=True) as service:
        assert delivered(service, url) is None
    assert len(inbox.requests) == 1


@pytest.mark.parametrize("url", ["https://clinic.example/?token=s3cret", "https://10.0.0.1/"])
def test_forwarding_elsewhere_needs_permission(url: str) -> None:
    with pytest.raises(ValueError, match=r"^forward_to must be a URL of this machine; .*allow_network=True") as caught:
        MockService(forward_to=url)
    assert "s3cret" not in str(caught.value)
    MockService(forward_to=url, allow_network=True).close()
    with pytest.raises(ValueError, match="allow_network must be true or false"):
        MockService(allow_network="yes")  # type: ignore[arg-type]
