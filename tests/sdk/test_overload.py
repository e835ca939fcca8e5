"""A service hangs while more calls wait than there are connections; afterwards the pool works again."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from support.responses import patient
from support.server import ScriptedServer, hang, reply

from followup import APIConnectionError, AsyncFollowUp, FollowUp
from followup._core.http import transport

WAVES = 3
CALLS = 16
LIMITS = httpx.Limits(max_connections=3)


@pytest.fixture
def few_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "MOST_LANES", 3)


@pytest.fixture
def hung(server: ScriptedServer) -> ScriptedServer:
    server.script = [hang(server.released)]
    return server


def waves(client: FollowUp) -> None:
    """Calls in more threads than there are connections; each times out."""

    def fails(_: int) -> None:
        with pytest.raises(APIConnectionError):
            client.patients.retrieve("pat_1")

    for _ in range(WAVES):
        with ThreadPoolExecutor(CALLS) as threads:
            list(threads.map(fails, range(CALLS)))


async def waves_of_tasks(client: AsyncFollowUp) -> None:
    """Calls in more tasks than there are connections; each times out."""
    for _ in range(WAVES):
        calls = [client.patients.retrieve("pat_1") for _ in range(CALLS)]
        for failure in await asyncio.gather(*calls, return_exceptions=True):
            assert isinstance(failure, APIConnectionError)


async def waves_of_cancelled_tasks(client: AsyncFollowUp) -> None:
    """Calls in more tasks than there are connections; each is cancelled."""
    patient_client = client.with_options(timeout=60)
    for _ in range(WAVES):
        tasks = [asyncio.ensure_future(patient_client.patients.retrieve("pat_1")) for _ in range(CALLS)]
        await asyncio.sleep(0.1)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.usefixtures("few_connections")
@pytest.mark.parametrize(("option", "own"), [("timeout", False), ("deadline", False), ("timeout", True)])
def test_connections_serve_calls_again(hung: ScriptedServer, option: str, own: bool) -> None:
    with httpx.Client(limits=LIMITS, trust_env=False) as theirs:
        options: dict[str, Any] = {"http_client": theirs, "timeout": 30} if own else {}
        with FollowUp(api_key="k", base_url=hung.url, max_retries=0, **options) as client:
            waves(client.with_options(**{option: 0.2}))  # type: ignore[arg-type]
            hung.script = [reply(200, patient())]
            assert client.patients.retrieve("pat_1").id == "pat_1"


@pytest.mark.usefixtures("few_connections")
@pytest.mark.parametrize("overload", [waves_of_tasks, waves_of_cancelled_tasks])
def test_async_connections_serve_calls_again(hung: ScriptedServer, overload: Callable[[Any], Any]) -> None:
    async def use() -> str:
        async with AsyncFollowUp(api_key="k", base_url=hung.url, max_retries=0) as client:
            await overload(client.with_options(timeout=0.2))
            hung.script = [reply(200, patient())]
            return (await client.with_options(timeout=30).patients.retrieve("pat_1")).id

    assert asyncio.run(use()) == "pat_1"
