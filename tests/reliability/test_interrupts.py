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
INTERRUPTIONS = 10_000 if SCALE >= 25 else 20 * SCALE
"""Fifty suffice to find a pool that stays locked in about one run of three; the full scale finds it always."""
DEADLINE, LATE = 5, 5
"""Seconds: the deadline of a call, and what a loaded machine may add to it."""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs interval timers")
@pytest.mark.parametrize("mode", ["keyboard", "soft limit", "asyncio"])
def test_interrupted_calls_leave_a_client_that_works(mode: str, report: Report) -> None:
    with ScriptedServer([reply(200, patient())]) as server:
        command = [sys.executable, str(CLIENT), mode, server.url, str(INTERRUPTIONS), "1"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120 + INTERRUPTIONS / 5)
    assert done.returncode == 0, done.stderr
    calls, interruptions, slowest, left = done.stdout.split()
    report(f"{interruptions} of {calls} calls interrupted, the slowest took {float(slowest):.2f} s")
    assert int(interruptions) == INTERRUPTIONS
    assert float(slowest) < DEADLINE + LATE
    assert int(left) == 0
