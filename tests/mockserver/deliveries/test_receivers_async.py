"""``advance_async``: mounted receivers run in the event loop of the test, which is never blocked."""

import asyncio
import logging
import random
import threading
from collections.abc import Callable, Coroutine, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import httpx
import pytest
from support.lifespan_app import App
from support.receiver_kinds import KINDS, Work
from support.receivers import Inbox, listening

from followup_mockserver import MockServer, MockService

URL = "https://clinic.example/hooks"
NOON = datetime(2026, 9, 28, 12, tzinfo=UTC)

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Place:
    """Records in which thread and event loop a receiver runs."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, object]] = []

    def __call__(self) -> None:
        self.seen.append((threading.get_ident(), asyncio._get_running_loop()))


@pytest.fixture
def service() -> Iterator[MockService]:
    with MockService(start_time=NOON, rate_limit=0) as running:
        prepare(running)
        yield running


def prepare(service: MockService) -> None:
    with service.client() as client:
        client.webhook_endpoints.create(url=URL, enabled_events=["patient.upserted"])
        client.patients.create(phone="+5491155550000")


def another(service: MockService, number: int = 1) -> None:
    with service.client() as client:
        client.patients.create(phone=f"+549115555000{number}")


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
class TestEveryKind:
    async def test_it_runs_in_the_event_loop_of_the_test(
        self, service: MockService, make: Callable[[Work], Any]
    ) -> None:
        place = Place()
        service.mount(URL, make(place))
        advanced = await service.advance_async(hours=1)
        assert place.seen == [(threading.get_ident(), asyncio.get_running_loop())]
        assert advanced.now == service.clock.now == NOON + timedelta(hours=1)
        assert service.deliveries[0].status == "succeeded"
        await service.aclose()

    def test_the_synchronous_advance_calls_it_too(self, service: MockService, make: Callable[[Work], Any]) -> None:
        place = Place()
        service.mount(URL, make(place))
        service.advance()
        another(service)

        async def in_an_event_loop() -> None:
            service.advance()

        asyncio.run(in_an_event_loop())
        assert [each.status for each in service.deliveries] == ["succeeded", "succeeded"]
        (thread, loop), (second_thread, second_loop) = place.seen
        assert thread == second_thread
        assert loop is not None or thread == threading.get_ident()
        assert loop in (None, second_loop), "an asynchronous receiver keeps its event loop"


def httpx_204(_: httpx.Request) -> httpx.Response:
    return httpx.Response(204)


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), 60))


def waiting() -> tuple[Any, asyncio.Event, asyncio.Event]:
    """Return a receiver, the event that it sets when it is called, and the event for which it waits then."""
    began, release = asyncio.Event(), asyncio.Event()

    async def receive(_: httpx.Request) -> httpx.Response:
        began.set()
        await release.wait()
        return httpx.Response(204)

    return receive, began, release


class TestSeveralTasks:
    async def test_the_second_waits_without_blocking_the_loop(self, service: MockService) -> None:
        receive, began, release = waiting()
        service.mount(URL, receive)
        first = asyncio.create_task(service.advance_async(hours=1))
        await began.wait()
        second = asyncio.create_task(service.advance_async(hours=1))
        await asyncio.sleep(0.01)
        assert not second.done()
        release.set()
        assert (await first).now == NOON + timedelta(hours=1)
        assert (await second).ran == 0
        assert service.clock.now == NOON + timedelta(hours=2), "the duration began when the first had ended"

    async def test_one_that_is_cancelled_while_it_waits_leaves_the_others(self, service: MockService) -> None:
        receive, began, release = waiting()
        service.mount(URL, receive)
        tasks = [asyncio.create_task(service.advance_async()) for _ in range(3)]
        await began.wait()
        await asyncio.sleep(0)
        tasks[1].cancel()
        release.set()
        await asyncio.gather(tasks[0], tasks[2])
        assert tasks[1].cancelled()

    async def test_a_synchronous_advance_that_would_block_the_loop_is_an_error(self, service: MockService) -> None:
        receive, began, release = waiting()
        service.mount(URL, receive)
        first = asyncio.create_task(service.advance_async())
        await began.wait()
        with pytest.raises(RuntimeError, match=r"await service\.advance_async\(\)"):
            service.advance()
        release.set()
        await first
        service.advance()

    async def test_a_handler_that_advances_gets_an_error_instead_of_a_deadlock(self, service: MockService) -> None:
        async def receive(_: httpx.Request) -> httpx.Response:
            await service.advance_async()
            return httpx.Response(204)

        service.mount(URL, receive)
        with pytest.raises(RuntimeError, match="cannot advance the clock"):
            await service.advance_async()


async def none(awaitable: Any) -> None:
    await awaitable


async def cancelled_by_asyncio(service: MockService) -> None:
    async with asyncio.timeout(0.05):
        await service.advance_async(days=1)


async def cancelled_by_anyio(service: MockService) -> None:
    with anyio.fail_after(0.05):
        await service.advance_async(days=1)


class TestCancellation:
    @pytest.mark.parametrize("how", ["asyncio", "anyio"])
    async def test_it_leaves_the_attempt_failed_and_the_service_usable(self, service: MockService, how: str) -> None:
        cancelled: list[bool] = []

        async def receive(_: httpx.Request) -> httpx.Response:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                cancelled.append(True)
                raise
            return httpx.Response(204)

        service.mount(URL, receive)
        with pytest.raises(TimeoutError):
            await {"asyncio": cancelled_by_asyncio, "anyio": cancelled_by_anyio}[how](service)
        assert service.deliveries[0].last_error == "The attempt was interrupted (CancelledError)."
        assert service.deliveries[0].next_attempt_at == NOON + timedelta(minutes=1)
        await asyncio.sleep(0)
        assert cancelled == [True]
        service.mount(URL, httpx_204)
        await service.advance_async(minutes=1)
        assert service.deliveries[0].status == "succeeded"

    async def test_a_receiver_that_takes_too_long_is_cancelled_and_nothing_is_raised(self) -> None:
        class Impatient(MockService):
            _attempt_timeout = 0.05

        async def receive(_: httpx.Request) -> httpx.Response:
            try:
                await asyncio.sleep(60)
            finally:
                raise KeyError("late")

        async with Impatient(start_time=NOON) as service:
            prepare(service)
            service.mount(URL, receive)
            await service.advance_async()
            assert service.deliveries[0].last_error == "No response within 0.05 s."


class TestLifespan:
    async def test_aclose_shuts_down_and_closes(self, service: MockService) -> None:
        app = App()
        service.mount(URL, app.asgi)
        await service.advance_async()
        await service.aclose()
        assert app.log == ["startup", "request", "shutdown"]
        await service.aclose()
        service.close()
        assert app.log.count("shutdown") == 1

    def test_close_drops_an_application_whose_loop_is_gone_and_logs_it(
        self, service: MockService, caplog: pytest.LogCaptureFixture
    ) -> None:
        app = App()
        service.mount(URL, app.asgi)
        run(lambda: none(service.advance_async()))
        service.close()
        assert app.log == ["startup", "request"]
        (record,) = caplog.records
        assert (record.name, record.levelno) == ("followup_mockserver", logging.WARNING)
        assert URL in record.getMessage()

    def test_close_runs_the_shutdown_in_a_loop_that_only_stands_still(
        self, service: MockService, caplog: pytest.LogCaptureFixture
    ) -> None:
        app = App()
        service.mount(URL, app.asgi)
        with asyncio.Runner() as runner:
            runner.run(none(service.advance_async()))
            service.close()
        assert app.log == ["startup", "request", "shutdown"]
        assert caplog.records == []

    async def test_advance_and_then_advance_async_moves_the_application(self, service: MockService) -> None:
        app = App()
        service.mount(URL, app.asgi)
        service.advance()
        another(service)
        await service.advance_async()
        assert app.log == ["startup", "request", "shutdown", "startup", "request"]
        assert app.loops[-1] is asyncio.get_running_loop()
        await service.aclose()

    async def test_advance_is_an_error_where_it_would_block_the_application(self, service: MockService) -> None:
        app = App()
        service.mount(URL, app.asgi)
        await service.advance_async()
        another(service)
        for call in (service.advance, service.step, lambda: service.resend(service.deliveries[0].id)):
            with pytest.raises(RuntimeError, match=r"runs in this event loop.*advance_async"):
                call()
        assert service.deliveries[0].attempts == 0
        await service.advance_async()
        assert service.deliveries[0].status == "succeeded"
        await service.aclose()


async def test_a_socket_is_waited_for_without_blocking_the_loop() -> None:
    inbox = Inbox()
    with listening(inbox) as url:
        async with MockService(allow_network=True, allow_http_webhooks=True) as service:
            with service.client() as client:
                client.webhook_endpoints.create(url=url, enabled_events=["*"])
                client.patients.create(phone="+5491155550000")
            await service.advance_async()
            assert service.deliveries[0].status == "succeeded"


async def test_a_server_can_be_awaited_too() -> None:
    received = asyncio.Event()
    loop = asyncio.get_running_loop()

    def receive(_: httpx.Request) -> httpx.Response:
        # It needs the loop of the test, which a blocking advance() would stop.
        asyncio.run_coroutine_threadsafe(none(asyncio.sleep(0)), loop).result(10)
        loop.call_soon_threadsafe(received.set)
        return httpx.Response(204)

    with MockServer(rate_limit=0, start_time=NOON) as server:
        server.mount(URL, receive)
        async with server.async_client() as client:
            await client.webhook_endpoints.create(url=URL, enabled_events=["*"])
            await client.patients.create(phone="+5491155550000")
        await server.advance_async()
        await received.wait()
        assert server.deliveries[0].status == "succeeded"


def test_a_cancelled_task_loses_no_job() -> None:
    chance = random.Random(1)

    async def receive(_: httpx.Request) -> httpx.Response:
        await asyncio.sleep(0)
        return httpx.Response(204 if chance.random() < 0.5 else 500)

    async def cancel_some(service: MockService) -> int:
        hits = 0
        for number in range(60):
            task = asyncio.create_task(service.advance_async(minutes=7 if number % 3 else 0))
            for _ in range(chance.randrange(12)):
                await asyncio.sleep(0)
            hits += task.cancel()
            await asyncio.wait({task})
        return hits

    with MockService(start_time="2026-09-28T12:00:00Z", rate_limit=0) as service, service.client() as client:
        client.webhook_endpoints.create(url=URL, enabled_events=["*"])
        service.mount(URL, receive, raise_exceptions=False)
        for number in range(20):
            client.patients.create(phone=f"+5491155550{number:03}")
        assert asyncio.run(cancel_some(service)) > 5
        service.advance(days=5)
        deliveries = list(client.webhook_deliveries.list(limit=100))
        assert {each.status for each in deliveries} <= {"succeeded", "failed"}
        assert [each.payload["ref"] for each in deliveries] == [each.id for each in client.patients.list(limit=100)]
        assert service.jobs == []
