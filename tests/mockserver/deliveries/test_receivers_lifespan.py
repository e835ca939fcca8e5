"""The lifespan of a mounted ASGI application: startup before its first delivery, state, shutdown."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import fastapi
import pytest
from support.lifespan_app import App

from followup_mockserver import MockService
from followup_mockserver.deliveries import applications

URL = "https://clinic.example/hooks"
OTHER_URL = "https://other.example/hooks"


@pytest.fixture
def service() -> Iterator[MockService]:
    with MockService(start_time="2026-09-28T12:00:00Z", rate_limit=0) as running:
        registered(running)
        yield running


def registered(service: MockService, url: str = URL) -> None:
    with service.client() as client:
        client.webhook_endpoints.create(url=url, enabled_events=["patient.upserted"])


def deliver(service: MockService, number: int = 0) -> str:
    """Cause an event, deliver it, and return the status of its delivery."""
    with service.client() as client:
        client.patients.create(phone=f"+549115555000{number}")
    service.advance()
    return service.deliveries[0].status


def test_the_startup_precedes_the_first_delivery_and_the_shutdown_is_on_close(service: MockService) -> None:
    app = App()
    service.mount(URL, app.asgi)
    assert app.log == []
    assert [deliver(service, number) for number in range(3)] == ["succeeded"] * 3
    assert app.log == ["startup", "request", "request", "request"]
    service.close()
    assert app.log == ["startup", "request", "request", "request", "shutdown"]
    service.close()
    assert app.log.count("shutdown") == 1
    assert len(set(map(id, app.loops))) == 1, "one event loop for all of it"


def test_each_request_has_a_shallow_copy_of_the_state(service: MockService) -> None:
    app = App()
    service.mount(URL, app.asgi)
    deliver(service, 0)
    deliver(service, 1)
    assert [count for _, count in app.states] == [0, 0]
    assert all(requests is app.log for requests, _ in app.states)


def test_applications_share_an_event_loop_and_one_at_two_urls_starts_once(service: MockService) -> None:
    one, other = App(), App()
    for url in (OTHER_URL, "https://clinic.example/more/hooks"):
        registered(service, url)
    service.mount(URL, one.asgi)
    service.mount("https://clinic.example/more", one.asgi, raise_exceptions=False)
    service.mount(OTHER_URL, other.asgi)
    deliver(service)
    assert one.log == ["startup", "request"]
    assert len(set(map(id, one.loops + other.loops))) == 1


class TestFailures:
    def test_a_startup_that_fails_is_raised_and_tried_again(self, service: MockService) -> None:
        app = App(fail_startups=1)
        service.mount(URL, app.asgi)
        with pytest.raises(LookupError, match="no database") as caught:
            deliver(service)
        assert "startup" in caught.value.__notes__[0]
        assert URL in caught.value.__notes__[0]
        assert service.deliveries[0].last_error == "The startup of the receiver raised LookupError."
        assert "no database" in (service.attempts(service.deliveries[0].id)[0].traceback or "")
        service.advance(minutes=1)
        assert service.deliveries[0].status == "succeeded"
        assert app.log == ["startup", "startup", "request"]

    def test_a_shutdown_that_fails_is_raised_when_everything_is_closed(self) -> None:
        service, app = MockService(rate_limit=0), App(fail_shutdown=True)
        registered(service)
        service.mount(URL, app.asgi)
        deliver(service)
        before = threading.active_count()
        with pytest.raises(LookupError, match="no goodbye"):
            service.close()
        assert threading.active_count() < before
        service.close()

    def test_a_startup_may_take_longer_than_an_attempt(self) -> None:
        class Impatient(MockService):
            _attempt_timeout = 1

        with Impatient(rate_limit=0) as service:
            registered(service)
            service.mount(URL, starting_for(1.1))
            assert deliver(service) == "succeeded"

    def test_a_startup_that_does_not_end_is_raised_and_tried_again(
        self, service: MockService, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(applications, "STARTUP_TIMEOUT", 0.05)
        service.mount(URL, starting_for(60))
        with pytest.raises(TimeoutError, match=r"the startup did not complete within 0\.05 s"):
            deliver(service)
        assert service.deliveries[0].last_error == "The startup of the receiver raised TimeoutError."
        with pytest.raises(TimeoutError):
            service.advance(minutes=1)


def starting_for(seconds: float) -> fastapi.FastAPI:
    @asynccontextmanager
    async def lifespan(_: fastapi.FastAPI) -> AsyncIterator[None]:
        await asyncio.sleep(seconds)
        yield

    app = fastapi.FastAPI(lifespan=lifespan)
    app.post("/hooks", status_code=204)(lambda: None)
    return app


async def raises_without_lifespan(scope: Any, receive: Any, send: Any) -> None:
    assert scope["type"] == "http"
    await respond(send)


async def returns_without_lifespan(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "http":
        await respond(send)


async def ignores_the_scope(scope: Any, receive: Any, send: Any) -> None:
    await receive()
    await respond(send)


async def respond(send: Any) -> None:
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


WITHOUT = [raises_without_lifespan, returns_without_lifespan, ignores_the_scope]


@pytest.mark.parametrize("app", WITHOUT)
def test_an_application_without_lifespan_is_called_as_well(
    service: MockService, app: Any, caplog: pytest.LogCaptureFixture
) -> None:
    service.mount(URL, app)
    assert [deliver(service, 0), deliver(service, 1)] == ["succeeded", "succeeded"]
    service.close()
    assert caplog.records == []


def test_a_scope_is_as_the_specification_of_asgi_says(service: MockService) -> None:
    scopes: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        scopes.append(scope)
        if scope["type"] == "lifespan":
            await receive()
            scope["state"]["database"] = "open"
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
            return
        assert (await receive())["type"] == "http.request"
        await respond(send)
        assert await receive() == {"type": "http.disconnect"}

    registered(service, "https://clinic.example/a%20b/ñ?x=1".replace("ñ", "%C3%B1"))
    service.mount("https://clinic.example/a%20b", app)
    with service.client() as client:
        (endpoint, _) = client.webhook_endpoints.list()
        client.webhook_endpoints.ping(endpoint.id)
    service.advance()
    lifespan, request = scopes
    assert lifespan["asgi"]["version"] == "3.0"
    assert (request["method"], request["scheme"], request["path"]) == ("POST", "https", "/a b/ñ")
    assert (request["raw_path"], request["query_string"]) == (b"/a%20b/%C3%B1", b"x=1")
    assert (request["server"], request["state"]) == (("clinic.example", 443), {"database": "open"})
    assert dict(request["headers"])[b"x-service-event-type"] == b"webhook.ping"
    assert request["state"] is not lifespan["state"]
