"""A soak test: the mock runs for many hours of its own clock, and a reset frees all memory."""

import subprocess
import sys
import time
from pathlib import Path

from .conftest import SCALE, Report

MOCK = Path(__file__).with_name("reset_mock.py")
RUNS = 3 + SCALE // 10
PATIENTS = 8 + 7 * SCALE


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
