"""A soak test: the mock runs for many hours of its own clock, and a reset frees all memory."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from followup_mockserver import MockService

from .conftest import SCALE, Report

MOCK = Path(__file__).with_name("reset_mock.py")
RUNS = 3 + SCALE // 10
PATIENTS = 8 + 7 * SCALE
LONGEST_JOURNAL = 10_000


def test_memory_is_flat_after_resets(report: Report) -> None:
    """In a process of its own, since tracemalloc also counts what the threads of other tests allocate."""
    began = time.perf_counter()
    command = [sys.executable, str(MOCK), str(RUNS), str(PATIENTS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120 + RUNS * PATIENTS)
    assert done.returncode == 0, done.stderr
    memory = [int(each) for each in done.stdout.split()]
    # The first run fills the caches of libraries; after it, memory must not grow.
    assert max(memory[1:]) - memory[1] < 100_000, memory
    sizes = ", ".join(f"{size / 1e6:.2f}" for size in memory)
    report(f"{RUNS} runs, {time.perf_counter() - began:.1f} s; MB after each reset: {sizes}")


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
