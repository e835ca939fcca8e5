"""Every span ends, however its call does, and never stays the current one."""

import asyncio
from typing import Any

import httpx
import pytest
from opentelemetry import trace
from support.server import ScriptedServer, reply
from telemetry.exported import Exported

from followup import AsyncFollowUp, FollowUp


class Hook:
    """An event hook of a user that raises."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __call__(self, _: httpx.Request) -> None:
        raise self.error


def ended_with(exported: Exported, name: str = "patients.list") -> Any:
    return dict(exported.span(name).attributes or {})["error.type"]


@pytest.fixture(autouse=True)
def no_current_span() -> Any:
    yield
    assert not trace.get_current_span().get_span_context().is_valid


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(), ZeroDivisionError("Ana")], ids=repr)
def test_an_exception_from_outside_ends_the_span(server: ScriptedServer, exported: Exported, error: Any) -> None:
    with (
        httpx.Client(event_hooks={"request": [Hook(error)]}) as own,
        exported.tracer().start_as_current_span("caller") as caller,
    ):
        client = FollowUp(api_key="k", base_url=server.url, http_client=own)
        with pytest.raises(type(error)):
            client.patients.list()
        assert trace.get_current_span() is caller
    assert ended_with(exported) == type(error).__name__
    assert "Ana" not in exported.everything()


class Service:
    """A service in memory that has received a request, and then responds or never does."""

    def __init__(self, response: httpx.Response | None) -> None:
        self.received = asyncio.Event()
        self._response = response

    async def __call__(self, _: httpx.Request) -> httpx.Response:
        self.received.set()
        if self._response is None:
            await asyncio.Event().wait()
        assert self._response is not None
        return self._response

    def client(self) -> AsyncFollowUp:
        http_client = httpx.AsyncClient(transport=httpx.MockTransport(self))
        return AsyncFollowUp(api_key="k", base_url="http://127.0.0.1:9", http_client=http_client)


@pytest.mark.parametrize(
    "response",
    [None, httpx.Response(503, headers={"Retry-After": "50"})],
    ids=["during an attempt", "while it waits for the next one"],
)
def test_a_cancelled_task_ends_its_span(exported: Exported, response: httpx.Response | None) -> None:
    async def run() -> None:
        service = Service(response)
        task = asyncio.ensure_future(service.client().account.retrieve())
        await service.received.wait()
        for _ in range(20):  # until the task waits
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert ended_with(exported, "account.retrieve") == "CancelledError"
    assert len(exported.span().events) == (0 if response is None else 1)


def test_a_coroutine_that_nobody_finishes_ends_its_span(exported: Exported) -> None:
    """It is closed in another context than its own, where it must not change the current span."""

    async def run() -> None:
        service = Service(None)
        coroutine = service.client().account.retrieve()
        task = asyncio.ensure_future(coroutine)
        await service.received.wait()
        with exported.tracer().start_as_current_span("other") as other:
            coroutine.close()
            assert trace.get_current_span() is other
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(run())
    assert ended_with(exported, "account.retrieve") == "GeneratorExit"


def test_calls_of_many_tasks_are_children_of_their_own_callers(server: ScriptedServer, exported: Exported) -> None:
    async def one(client: AsyncFollowUp, number: int) -> None:
        with exported.tracer().start_as_current_span(f"caller {number}"):
            await client.account.retrieve()

    async def run() -> None:
        async with AsyncFollowUp(api_key="k", base_url=server.url) as client:
            await asyncio.gather(*(one(client, number) for number in range(20)), return_exceptions=True)

    server.script = [reply(404)]
    asyncio.run(run())
    callers = {span.get_span_context().span_id for span in exported.spans() if span.name.startswith("caller")}
    calls = [span for span in exported.spans() if not span.name.startswith("caller")]
    assert len(callers) == len(calls) == 20
    assert {span.parent.span_id for span in calls if span.parent} == callers
