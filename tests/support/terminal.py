"""A command on a pseudo-terminal."""

import contextlib
import os
import struct
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

import pytest

from support.waiting import wait_for


class Terminal:
    """Runs a command on a terminal of its own; leaving the context kills it."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], *, cwd: Path | None = None, width: int = 80
    ) -> None:
        pty, fcntl, termios = map(pytest.importorskip, ("pty", "fcntl", "termios"))  # not on Windows
        self._terminal, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
        os.set_blocking(self._terminal, False)
        self._output = b""
        self.process = subprocess.Popen(
            command, cwd=cwd, stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True
        )
        os.close(slave)

    @property
    def output(self) -> str:
        """The output so far."""
        with contextlib.suppress(OSError):  # there is no more, or the command has closed the terminal
            while part := os.read(self._terminal, 65_536):
                self._output += part
        return self._output.decode(errors="ignore").replace("\r\n", "\n")

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._terminal, keys.encode())

    def wait_for(self, look: Callable[[str], object]) -> None:
        """Wait until the output is as it should be, or the command has ended."""
        wait_for(lambda: self.process.poll() is not None or look(self.output))
        assert look(self.output), self.output

    def end(self) -> int:
        """Wait for the end of the command, and return its exit status."""
        wait_for(lambda: (self.output, self.process.poll())[1] is not None)
        return int(self.process.returncode)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._terminal)
