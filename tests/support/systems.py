"""What the system of this machine can do, found out by asking it, for tests that need it."""

import multiprocessing
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

KILL = getattr(signal, "SIGKILL", signal.SIGTERM)
"""The signal with which ``os.kill`` ends a process at once, as a crash does."""

KILLED = -KILL if hasattr(signal, "SIGKILL") else KILL
"""The exit status of a process that was ended so."""


HAS_SIGNALS = hasattr(signal, "SIGSTOP")


def stop(process: subprocess.Popen[Any], number: signal.Signals = signal.SIGTERM) -> None:
    """Stop a command with a signal, which is no error; where there are none, end it."""
    if HAS_SIGNALS:
        process.send_signal(number)
        assert process.wait(60) == 0
    else:
        process.kill()
        process.wait(60)


def _has_modes() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "file")
        file.touch(mode=0o600)
        return file.stat().st_mode & 0o777 == 0o600


def _replaces_open_files() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        old, new = Path(folder, "old"), Path(folder, "new")
        old.touch()
        new.touch()
        try:
            with old.open(encoding="utf-8"):
                new.replace(old)
        except PermissionError:
            return False
        return True


def may_write_everywhere() -> bool:
    """Return whether files that nobody may write are written all the same, as root does."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "file")
        file.touch(mode=0o400)
        try:
            return file.open("ab").close() is None
        except PermissionError:
            return False
        finally:
            file.chmod(0o600)


def _has_links() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        link = Path(folder, "link")
        try:
            link.symlink_to("file")
        except OSError:
            return False
        return link.is_symlink()


REPLACES_OPEN_FILES = _replaces_open_files()

needs_forks = pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="this system cannot fork"
)
HAS_MODES = _has_modes()

needs_modes = pytest.mark.skipif(not HAS_MODES, reason="files of this system have no modes")
needs_links = pytest.mark.skipif(not _has_links(), reason="this system makes no symbolic links")
needs_replaced_files = pytest.mark.skipif(not REPLACES_OPEN_FILES, reason="this system replaces no file that is open")
needs_signals = pytest.mark.skipif(not HAS_SIGNALS, reason="processes of this system send each other no signals")
needs_fifos = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no FIFOs")
needs_time_zones = pytest.mark.skipif(not hasattr(time, "tzset"), reason="a process of this system has no time zone")
needs_shell = pytest.mark.skipif(shutil.which("sh") is None, reason="sh is not installed")
