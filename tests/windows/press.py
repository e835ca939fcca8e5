"""Runs a program in this console of Windows, and presses a key of it when a line comes on standard input."""

import os
import signal
import subprocess
import sys

EVENTS = {"Ctrl-C": "CTRL_C_EVENT", "Ctrl-Break": "CTRL_BREAK_EVENT"}

with subprocess.Popen(sys.argv[2:], stdin=subprocess.DEVNULL) as process:
    sys.stdin.readline()
    for name in ("SIGINT", "SIGBREAK"):
        signal.signal(getattr(signal, name), lambda *_: None)
    os.kill(0, getattr(signal, EVENTS[sys.argv[1]]))  # every program of the console
    status = process.wait()
sys.exit(status)
