"""Nothing is lost and nothing is done twice, however badly the network and the service behave.

``nox -s reliability`` runs the same at full scale: 10,000 creates, 5,000 deliveries.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from followup import FollowUpError, _retry
from followup_mockserver import MockServer

from .conftest import SCALE, Tell

CALLS = 400 * SCALE
TASKS = 200
PATIENT = {"phone": "+5491155550000"}

TROUBLES = (
    ("status", "before", 429), ("status", "before", 500), ("status", "after", 500), ("status", "after", 503),
    ("disconnect", "before", 500), ("disconnect", "after", 500), ("truncate", "after", 500),
    ("delay", "before", 500), ("delay", "after", 500),
)  # fmt: skip
PATIENCE = 0.4
"""Seconds that the client waits for an answer, and less than a delay takes."""


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Iterator[MockServer]:
    """A server that spoils three calls in ten, before or after the work, in every way it knows."""
    monkeypatch.setattr(_retry, "FIRST_BACKOFF", 0.001)
    with MockServer(rate_limit=0, seed=7) as server:
        for kind, when, status in TROUBLES:
            server.add_fault(
                operation="treatments.create",
                kind=kind,  # type: ignore[arg-type]
                when=when,  # type: ignore[arg-type]
                status=status,
                seconds=PATIENCE * 1.5 if kind == "delay" else 0,
                retry_after=0.01 if status == 429 else None,
                times=None,
                probability=0.005 if kind == "delay" else 0.05,
            )
        yield server


def check(server: MockServer, expected: list[str], began: float, tell: Tell) -> None:
    """Every treatment is there once."""
    server.clear_faults()
    with server.client() as client:
        found = Counter(each.name for each in client.treatments.list(limit=100))
    assert found == Counter(expected)
    statuses = Counter(each.status for each in server.requests if each.operation == "treatments.create")
    spoiled = sum(count for status, count in statuses.items() if status != 200)
    assert spoiled > min(len(expected), 10_000) / 10
    tell(
        f"{len(expected):,} creates in {time.perf_counter() - began:.1f} s, each done once; last calls {dict(statuses)}"
    )


def test_exactly_once_from_threads(failing: MockServer, tell: Tell) -> None:
    began = time.perf_counter()
    with failing.client(max_retries=20, timeout=PATIENCE) as client, ThreadPoolExecutor(16) as pool:

        def create(number: int) -> str:
            return client.treatments.create(patient=PATIENT, name=f"t{number}").name  # type: ignore[arg-type]

        wanted = [f"t{number}" for number in range(CALLS)]
        assert list(pool.map(create, range(CALLS))) == wanted
    check(failing, wanted, began, tell)


def test_exactly_once_from_tasks(failing: MockServer, tell: Tell) -> None:
    began = time.perf_counter()
    wanted = [f"t{number}" for number in range(CALLS)]

    async def run() -> list[str]:
        numbers = iter(range(CALLS))
        made: list[str] = []
        # The wait for one of the 100 connections counts too: with 200 tasks it is no sign of trouble.
        async with failing.async_client(max_retries=20, timeout=60) as client:

            async def work() -> None:
                for number in numbers:
                    result = await client.treatments.create(patient=PATIENT, name=f"t{number}")  # type: ignore[arg-type]
                    made.append(result.name)

            await asyncio.gather(*(work() for _ in range(TASKS)))
        return made

    assert sorted(asyncio.run(run())) == sorted(wanted)
    check(failing, wanted, began, tell)


def test_a_caller_resumes_with_the_key_of_the_error(failing: MockServer, tell: Tell) -> None:
    began = time.perf_counter()
    wanted = [f"t{number}" for number in range(CALLS // 4)]
    with failing.client(max_retries=0, timeout=PATIENCE) as client:
        for name in wanted:
            key = None
            while True:
                try:
                    client.treatments.create(patient=PATIENT, name=name, idempotency_key=key)  # type: ignore[arg-type]
                except FollowUpError as error:
                    key = error.idempotency_key  # type: ignore[attr-defined]
                else:
                    break
    check(failing, wanted, began, tell)
