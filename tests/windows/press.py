"""Runs a program in this console of Windows, and presses a key of it when a line comes on standard input."""

import os
import signal
import subprocess
import sys

EVENTS = {"Ctrl-C": "CTRL_C_EVENT", "Ctrl-Break": "CTRL_BREAK_EVENT"}

NO_SUCH_KEY = 77

with subprocess.Popen(sys.argv[2:], stdin=subprocess.DEVNULL) as process:
    sys.stdin.readline()
    for name in ("SIGINT", "SIGBREAK"):
        signal.signal(getattr(signal, name), lambda *_: None)
    try:
        os.kill(0, getattr(signal, EVENTS[sys.argv[1]]))  # every program of the console
    except OSError:  # Wine 8 has no Ctrl-Break
        process.kill()
        sys.exit(NO_SUCH_KEY)
    status = process.wait()
sys.exit(status)
