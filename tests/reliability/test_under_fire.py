"""No request is lost or takes effect twice, whatever faults the network and the service have.

``nox -s reliability`` runs these tests at full scale, with 10,000 creates.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from followup._core.call import retries
from followup_mockserver import MockServer

from .conftest import SCALE, Report

CALLS = 150 * SCALE
TASKS = 200
PATIENT = {"phone": "+5491155550000"}

FAULTS = (
    ("status", "before", 429), ("status", "before", 500), ("status", "after", 500), ("status", "after", 503),
    ("disconnect", "before", 500), ("disconnect", "after", 500), ("truncate", "after", 500),
    ("delay", "before", 500), ("delay", "after", 500),
)  # fmt: skip
TIMEOUT = 0.4
"""Seconds of the client's timeout; a delay takes longer."""


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Iterator[MockServer]:
    """A server on which three calls in ten fail, in all ways, before or after they take effect."""
    monkeypatch.setattr(retries, "FIRST_BACKOFF", 0.001)
    with MockServer(rate_limit=0, seed=7) as server:
        for kind, when, status in FAULTS:
            server.add_fault(
                operation="treatments.create",
                kind=kind,  # type: ignore[arg-type]
                when=when,  # type: ignore[arg-type]
                status=status,
                seconds=TIMEOUT * 1.5 if kind == "delay" else 0,
                retry_after=0.01 if status == 429 else None,
                times=None,
                probability=0.005 if kind == "delay" else 0.05,
            )
        yield server


def check(server: MockServer, expected: list[str], began: float, report: Report) -> None:
    """Assert that each treatment was created exactly once, and that calls really failed."""
    server.clear_faults()
    with server.client() as client:
        found = Counter(each.name for each in client.treatments.list(limit=100))
    assert found == Counter(expected)
    statuses = Counter(each.status for each in server.requests if each.operation == "treatments.create")
    failed = sum(count for status, count in statuses.items() if status != 200)
    assert failed > min(len(expected), 10_000) / 10
    report(
        f"{len(expected):,} creates in {time.perf_counter() - began:.1f} s, each done once; last calls {dict(statuses)}"
    )


def test_exactly_once_from_threads(failing: MockServer, report: Report) -> None:
    began = time.perf_counter()
    with failing.client(max_retries=20, timeout=TIMEOUT) as client, ThreadPoolExecutor(16) as pool:

        def create(number: int) -> str:
            return client.treatments.create(patient=PATIENT, name=f"t{number}").name  # type: ignore[arg-type]

        expected = [f"t{number}" for number in range(CALLS)]
        assert list(pool.map(create, range(CALLS))) == expected
    check(failing, expected, began, report)


def test_exactly_once_from_tasks(failing: MockServer, report: Report) -> None:
    began = time.perf_counter()
    expected = [f"t{number}" for number in range(CALLS)]

    async def run() -> list[str]:
        numbers = iter(range(CALLS))
        made: list[str] = []
        # With 200 tasks, a call may wait for one of the 100 connections, and that wait counts towards its timeout.
        async with failing.async_client(max_retries=20, timeout=60) as client:

            async def work() -> None:
                for number in numbers:
                    result = await client.treatments.create(patient=PATIENT, name=f"t{number}")  # type: ignore[arg-type]
                    made.append(result.name)

            await asyncio.gather(*(work() for _ in range(TASKS)))
        return made

    assert sorted(asyncio.run(run())) == sorted(expected)
    check(failing, expected, began, report)
