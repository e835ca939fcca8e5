"""The mock at scale: calls with a million objects, the memory of an object, and the scheduler."""

import copy
import gc
import heapq
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from measure import Figure, compare

from followup_mockserver import MockService
from followup_mockserver.rules import patients
from followup_mockserver.service import InProcessTransport
from followup_mockserver.world.state.clock import Job, Scheduler

FEW, MANY = 1_000, 1_000_000
PREPARED = 10_000
"""Patients of a mock that a test suite prepares once."""

NOON = datetime(2026, 9, 28, 12, tzinfo=UTC)


def filled(number: int) -> MockService:
    """Return a mock with this many patients."""
    service = MockService(rate_limit=0, start_time=NOON)
    tenant = service._tenant
    with tenant.caused_by(None):
        for each in range(number):
            patients.save(
                tenant, {"phone": f"+54911{each:08}", "full_name": f"Patient {each}", "external_id": f"P-{each}"}
            )
    return service


def calls() -> Iterator[Figure]:
    """Compare calls with a million objects to calls with a thousand."""
    import httpx

    few, many = filled(FEW), filled(MANY)
    gc.collect()
    numbers = count(50_000_000)

    def http(service: MockService) -> httpx.Client:
        headers = {"Authorization": f"Bearer {service.api_key}"}
        return httpx.Client(transport=InProcessTransport(service.app), base_url=service.url, headers=headers)

    small, large = http(few), http(many)

    def create(client: httpx.Client) -> Callable[[], Any]:
        return lambda: client.post("/v1/patients", json={"phone": f"+54911{next(numbers):08}"}).raise_for_status()

    def get(client: httpx.Client, path: str) -> Callable[[], Any]:
        return lambda: client.get(path).raise_for_status()

    yield compare("POST, at a million objects", create(large), "at a thousand", create(small), calls=500, target=1.3)
    middle = {each: [*each._tenant.patients][FEW // 2].id for each in (few, many)}
    for what, path in (
        ("the newest page", "/v1/patients?limit=10"),
        ("a page after a cursor", "/v1/patients?limit=10&startingAfter={cursor}"),
        ("a filter", "/v1/patients?externalId=P-500"),
    ):
        yield compare(
            f"GET {what}, at a million objects",
            get(large, path.format(cursor=middle[many])),
            "at a thousand",
            get(small, path.format(cursor=middle[few])),
            calls=500,
            target=1.3,
        )


_MEASURE_MEMORY = """
import os, sys
sys.path.insert(0, {folder!r})
import scale
from pathlib import Path
def resident(): return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
before = resident()
kept = scale.{what}({many})
print((resident() - before) / {many})
"""
"""Measures the resident memory of a process of its own, so that nothing else counts; works on Linux only."""


def plain_dicts(number: int) -> dict[str, dict[str, Any]]:
    """Return the patients as a simple mock would store them: in a dict by id, without further indexes."""
    kept = {}
    for each in range(number):
        now = NOON + timedelta(seconds=each)
        path_id = f"pat_{each:024}"
        kept[path_id] = {
            "id": path_id,
            "object": "patient",
            "fullName": f"Patient {each}",
            "phone": f"+54911{each:08}",
            "email": None,
            "dni": None,
            "externalId": f"P-{each}",
            "dateOfBirth": None,
            "stage": "pending_follow_up",
            "optedOut": False,
            "createdAt": now,
            "updatedAt": now,
        }
    return kept


def memory() -> Iterator[Figure]:
    """Compare the memory of a patient with that of a plain dict."""

    def bytes_per_patient(what: str) -> float:
        from pathlib import Path

        code = _MEASURE_MEMORY.format(folder=str(Path(__file__).parent), what=what, many=MANY)
        return float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)

    yield Figure(
        "bytes per patient, with a million and all indexes",
        "plain dicts by id",
        bytes_per_patient("filled"),
        bytes_per_patient("plain_dicts"),
        0.9,
    )


def timers() -> Iterator[Figure]:
    """Compare scheduling a million reminders and taking them all with heapq."""
    times = [NOON + timedelta(seconds=(each * 7_919) % MANY) for each in range(MANY)]

    def ours() -> None:
        scheduler = Scheduler()
        for number, at in enumerate(times):
            scheduler.schedule(at, Job("reminder", f"apt_{number}"))
        while scheduler.pop_due(times[-1] + timedelta(days=400)) is not None:
            pass

    def theirs() -> None:
        heap: list[tuple[datetime, int, Job]] = []
        for number, at in enumerate(times):
            heapq.heappush(heap, (at, number, Job("reminder", f"apt_{number}")))
        while heap:
            heapq.heappop(heap)

    yield compare("one timer, with a million pending", ours, "heapq", theirs, calls=1, rounds=3, target=2.0).per(MANY)


def snapshots() -> Iterator[Figure]:
    """Compare forks and loaded snapshots with copies of plain dicts and of parsed JSON."""
    service = filled(PREPARED)
    kept = plain_dicts(PREPARED)
    data = service.save()
    text = json.dumps(data).encode()
    yield compare(
        "a fork of 10,000 patients",
        service.fork,
        "copy.deepcopy of plain dicts",
        lambda: copy.deepcopy(kept),
        calls=1,
        target=0.5,
    )
    yield compare(
        "a snapshot of 10,000 patients, saved and encoded",
        lambda: json.dumps(service.save()),
        "json.dumps of the data",
        lambda: json.dumps(data),
        calls=1,
        target=5.0,
    )
    yield compare(
        "a snapshot of 10,000 patients, loaded",
        lambda: MockService.load(text),
        "json.loads of the text",
        lambda: json.loads(text),
        calls=1,
        target=10.0,
    )


BENCHMARKS: dict[str, Callable[[], Iterator[Figure]]] = {
    "scale": calls,
    "memory": memory,
    "timers": timers,
    "snapshots": snapshots,
}
