"""The benchmarks still run: nothing else calls them, and they use parts of the code that are not public."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


IN_ONE_PROCESS = ["decoding", "signature", "in-memory", "in-process", "testing", "deliveries"]
WITH_DATABASES = ["relay", "growth", "receiving"]


@pytest.mark.parametrize("names", [IN_ONE_PROCESS, pytest.param(WITH_DATABASES, marks=pytest.mark.nightly)], ids=len)
def test_the_quick_benchmarks_run(names: list[str]) -> None:
    """These need neither a large mock nor packages that the tests lack."""
    run = subprocess.run(
        [sys.executable, "benchmarks", *names],
        cwd=ROOT,
        env={**os.environ, "FOLLOWUP_BENCHMARK_ONCE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    assert "skipped" not in run.stdout
    assert run.stdout.count("≤") >= len(names), "each has a figure with a target"
