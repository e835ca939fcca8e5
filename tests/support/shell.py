"""Runs ``followup`` as a person does: in a folder, with pipes, or on a terminal of a certain width."""

import contextlib
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Sequence
from pathlib import Path
from typing import Any

COMMAND = [sys.executable, "-c", "from followup.cli import main; main()"]
_STYLE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
_OF_THE_MACHINE = (
    "COLUMNS",
    "LINES",
    "TZ",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "NO_COLOR",
    "FORCE_COLOR",
    "PYTHONIOENCODING",
)
"""What the tests set for themselves, whatever the machine that runs them says."""


def own_environment() -> dict[str, str]:
    """The environment of the tests, without what would change how the command writes."""
    kept = {name: value for name, value in os.environ.items() if name not in _OF_THE_MACHINE}
    return {**kept, "TZ": "UTC", "LC_ALL": "C.UTF-8"}


class Shell:
    """Runs the command against a server, in a directory of its own."""

    def __init__(self, url: str, api_key: str, directory: Path, command: Sequence[str] = COMMAND) -> None:
        self.command = command
        self.directory = directory
        self.environment = {**own_environment(), "FOLLOWUP_BASE_URL": url, "FOLLOWUP_API_KEY": api_key}

    def run(
        self, *arguments: str, stdin: str | bytes | None = None, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        typed = stdin.encode() if isinstance(stdin, str) else stdin
        result = subprocess.run(
            [*self.command, *arguments],
            input=b"" if typed is None else typed,
            capture_output=True,
            check=False,
            timeout=60,
            cwd=self.directory,
            env={**self.environment, "COLUMNS": "200", **environment},
        )
        return subprocess.CompletedProcess(
            result.args, result.returncode, result.stdout.decode(), result.stderr.decode()
        )

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*self.command, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.directory,
            env=self.environment,
        )

    def told(self, *arguments: str) -> list[Any]:
        result = self.run(*arguments)
        assert result.returncode == 0, result.stderr
        return [json.loads(line) for line in result.stdout.splitlines()]

    def refused(self, *arguments: str, stdin: str | bytes | None = None, **environment: str) -> str:
        result = self.run(*arguments, stdin=stdin, **environment)
        assert result.returncode != 0
        assert "Traceback" not in result.stderr
        assert len(result.stderr.strip().splitlines()) == 1
        return result.stderr

    def on_a_terminal(self, width: int, *arguments: str, **environment: str) -> str:
        """What the command writes on a terminal that is so wide, without colours."""
        return _STYLE.sub("", self.raw_on_a_terminal(width, *arguments, **environment))

    def raw_on_a_terminal(self, width: int, *arguments: str, **environment: str) -> str:
        """What the command writes on a terminal that is so wide, as the terminal gets it."""
        terminal, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
        written = []
        with subprocess.Popen(
            [*self.command, *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=self.directory,
            env={**self.environment, "TERM": "xterm", **environment},
        ) as process:
            os.close(slave)
            with contextlib.suppress(OSError):  # how a terminal says that nobody writes any more
                while part := os.read(terminal, 65_536):
                    written.append(part)
            process.wait(60)
        os.close(terminal)
        return b"".join(written).decode().replace("\r\n", "\n")
