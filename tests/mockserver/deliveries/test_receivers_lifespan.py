"""The lifespan of a mounted ASGI application: startup before its first delivery, state, shutdown."""

import asyncio
import gc
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import fastapi
import httpx
import pytest
from support.forks import in_a_child
from support.lifespan_app import App
from support.waiting import succeeded, wait_for

from followup_mockserver import MockServer, MockService

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


def test_a_replaced_application_is_shut_down_on_close_and_goes_on_if_it_is_mounted_again(service: MockService) -> None:
    one, other = App(), App()
    for number, app in enumerate([one, other, one]):
        service.mount(URL, app.asgi)
        deliver(service, number)
    assert (one.log, other.log) == (["startup", "request", "request"], ["startup", "request"])
    service.close()
    assert (one.log[-1], other.log[-1]) == ("shutdown", "shutdown")


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

    def test_an_exit_in_a_startup_leaves_the_event_loop_running(self, service: MockService) -> None:
        attempts: list[int] = []

        @asynccontextmanager
        async def lifespan(_: fastapi.FastAPI) -> AsyncIterator[None]:
            attempts.append(1)
            if len(attempts) == 1:
                raise KeyboardInterrupt
            yield

        app = fastapi.FastAPI(lifespan=lifespan)
        app.post("/hooks", status_code=204)(lambda: None)
        service.mount(URL, app)
        with pytest.raises(KeyboardInterrupt):
            deliver(service)
        service.advance(minutes=1)
        assert service.deliveries[0].status == "succeeded"

    def test_an_application_may_report_a_failure_without_an_exception(self, service: MockService) -> None:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            await receive()
            await send({"type": "lifespan.startup.failed", "message": "no disk"})

        service.mount(URL, app)
        with pytest.raises(RuntimeError, match="the startup of the application failed: no disk"):
            deliver(service)

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

    def test_a_server_logs_the_shutdown_that_fails(self, caplog: pytest.LogCaptureFixture) -> None:
        with MockServer(rate_limit=0) as server, server.client() as client:
            server.mount(URL, App(fail_shutdown=True).asgi)
            client.webhook_endpoints.create(url=URL, enabled_events=["*"])
            client.patients.create(phone="+5491155550000")
            succeeded(server)
        (record,) = [each for each in caplog.records if each.name == "followup_mockserver"]
        assert record.getMessage() == "the shutdown of a mounted application failed"
        assert record.exc_info is not None
        assert str(record.exc_info[1]) == "no goodbye"

    def test_a_startup_that_takes_longer_than_an_attempt_goes_on(self) -> None:
        class Impatient(MockService):
            _attempt_timeout = 1

        released = threading.Event()

        @asynccontextmanager
        async def lifespan(_: fastapi.FastAPI) -> AsyncIterator[None]:
            await asyncio.to_thread(released.wait, 20)
            yield

        with Impatient(start_time="2026-09-28T12:00:00Z", rate_limit=0) as service:
            app = fastapi.FastAPI(lifespan=lifespan)
            app.post("/hooks", status_code=204)(lambda: None)
            registered(service)
            service.mount(URL, app)
            deliver(service)
            assert service.deliveries[0].last_error == "The startup of the receiver did not complete within 1 s."
            released.set()
            service.advance(days=3)  # a slow machine may need more than one attempt
            assert service.deliveries[0].status == "succeeded"


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


def threads() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "followup-mock-event-loop"]


@pytest.mark.parametrize("end", [MockService.close, lambda _: None], ids=["closed", "forgotten"])
def test_no_service_leaves_a_thread_behind(
    end: Callable[[MockService], None], caplog: pytest.LogCaptureFixture
) -> None:
    gc.collect()
    wait_for(lambda: not threads() or None)
    service = MockService(rate_limit=0)
    registered(service)
    service.mount(URL, App().asgi)
    deliver(service)
    assert len(threads()) == 1
    end(service)
    del service
    gc.collect()
    assert wait_for(lambda: not threads())
    assert "Task was destroyed" not in caplog.text


def test_a_service_without_asynchronous_receivers_has_no_thread(service: MockService) -> None:
    before = threading.active_count()
    service.mount(URL, lambda _: httpx.Response(204))
    deliver(service)
    assert threading.active_count() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_process_starts_the_application_again(service: MockService) -> None:
    app = App()
    service.mount(URL, app.asgi)
    assert deliver(service, 0) == "succeeded"

    def in_child() -> list[str]:
        deliver(service, 1)
        service.close()
        return [*app.log, service.deliveries[0].status]

    assert in_a_child(in_child) == ["startup", "request", "startup", "request", "shutdown", "succeeded"]
    assert deliver(service, 2) == "succeeded"
    assert app.log == ["startup", "request", "request"]
