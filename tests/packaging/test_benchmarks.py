"""The benchmarks still run: nothing else calls them, and they use parts of the code that are not public."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


QUICK = [
    "decoding",
    "signature",
    "in-memory",
    "in-process",
    "testing",
    "deliveries",
    "relay",
    "growth",
    "receiving",
    "planted-bugs",
]
"""The benchmarks that need neither a large mock nor packages that the tests lack."""


def test_the_quick_benchmarks_run() -> None:
    run = subprocess.run(
        [sys.executable, "benchmarks", *QUICK],
        cwd=ROOT,
        env={**os.environ, "FOLLOWUP_BENCHMARK_ONCE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    assert "skipped" not in run.stdout
    assert run.stdout.count("≤") >= len(QUICK), "each has a figure with a target"
