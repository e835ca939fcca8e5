"""Calls in process leave the signal handlers of the user alone, and a cancelled task loses no job."""

import asyncio
import random
import signal
from typing import Any

import httpx

from followup_mockserver import MockService

URL = "https://clinic.example/hook"


def test_the_handlers_of_signals_stay_those_of_the_user() -> None:
    def handlers() -> dict[signal.Signals | int, Any]:
        return {number: signal.getsignal(number) for number in signal.valid_signals()}

    seen: list[dict[signal.Signals | int, Any]] = []

    def receive(_: httpx.Request) -> httpx.Response:
        seen.append(handlers())
        return httpx.Response(204)

    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        expected = handlers()
        with MockService() as service, service.client() as client:
            client.webhook_endpoints.create(url=URL, enabled_events=["*"])
            service.mount(URL, receive)
            client.patients.create(phone="+5491155550000")
            service.advance()
        assert [*seen, handlers()] == [expected, expected]
    finally:
        signal.signal(signal.SIGTERM, before)


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
