"""A soak test: the mock runs for many hours of its own clock, and a reset frees all memory."""

import gc
import time
import tracemalloc

import httpx
import pytest

from followup_mockserver import MockService

from .conftest import SCALE, Report

RUNS = 3 + SCALE // 10
PATIENTS = 8 + 7 * SCALE
LONGEST_JOURNAL = 10_000


def test_memory_is_flat_after_resets(report: Report) -> None:
    began = time.perf_counter()
    service = MockService(start_time="2026-09-28T12:00:00Z", rate_limit=0)
    calls = 0

    def run_and_reset() -> None:
        nonlocal calls
        service.mount("https://clinic.example", lambda _: httpx.Response(500))
        with service.client() as client:
            client.webhook_endpoints.create(url="https://clinic.example", enabled_events=["*"])
            for number in range(PATIENTS):
                patient = client.patients.create(phone=f"+54911{number:08}").id
                client.appointments.create(patient=patient, start_at="2026-10-01T10:00:00Z")
                client.visits.create(patient=patient, visited_at="2026-09-28T10:00:00Z")
                client.intake_requests.create(patient={"phone": f"+54911{number:08}"})
                client.events.create({"id": f"e{number}", "type": "order.issued", "data": {}})
                service.advance(minutes=1)
                calls += 5
        service.advance(days=3)
        assert service.messages
        service.reset()

    memory = []
    tracemalloc.start()
    for _ in range(RUNS):
        run_and_reset()
        gc.collect()
        memory.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    # The first run fills the caches of libraries; after it, memory must not grow.
    assert max(memory[1:]) - memory[1] < 100_000, memory
    sizes = ", ".join(f"{size / 1e6:.2f}" for size in memory)
    report(f"{RUNS} runs, {calls:,} calls, {time.perf_counter() - began:.1f} s; MB after each reset: {sizes}")


@pytest.mark.nightly
def test_the_journal_and_the_idempotency_records_are_bounded(report: Report) -> None:
    service = MockService(start_time="2026-09-28T12:00:00Z", rate_limit=0)
    many = LONGEST_JOURNAL + 500
    with service.client() as client:
        for number in range(many):
            client.patients.create(phone="+5491155550000", idempotency_key=f"k{number}")
            if number % 100 == 0:
                service.advance(hours=1)
    assert len(service.requests) == min(many, LONGEST_JOURNAL)
    kept = len(service._tenant.idempotency)
    assert kept <= 25 * 100
    report(f"{many:,} creates with a key each: {len(service.requests):,} in the journal, {kept:,} keys of a day kept")
