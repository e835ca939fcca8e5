"""Calls that a signal handler interrupts with an exception, at any moment: the client never hangs, then or later."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.responses import patient
from support.server import ScriptedServer, reply

from .conftest import SCALE, Report

CLIENT = Path(__file__).with_name("interrupts.py")
CALLS = 10_000 if SCALE >= 25 else 40 * SCALE
"""A hundred suffice to find a pool that stays locked in about one run of three; the full scale finds it always."""
DEADLINE, LATE = 5, 5
"""Seconds: the deadline of a call, and what a loaded machine may add to it."""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs interval timers")
@pytest.mark.parametrize("mode", ["keyboard", "soft limit", "own client", "asyncio"])
def test_interrupted_calls_leave_a_client_that_works(mode: str, report: Report) -> None:
    with ScriptedServer([reply(200, patient())]) as server:
        command = [sys.executable, str(CLIENT), mode, server.url, str(CALLS), "1"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120 + CALLS / 10)
    assert done.returncode == 0, done.stderr
    interruptions, slowest, left = done.stdout.split()
    report(f"{interruptions} of {CALLS:,} calls interrupted, the slowest took {float(slowest):.2f} s")
    assert int(interruptions) > CALLS / 4
    assert float(slowest) < DEADLINE + LATE
    assert int(left) == 0
