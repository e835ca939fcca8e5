"""The ``followup`` command in a process of its own: with pipes, or on a terminal of a certain width."""

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
_OUTPUT_VARIABLES = (
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
"""Variables that would change the output; the tests set them themselves."""


def clean_environment() -> dict[str, str]:
    """Return the environment without the variables that change how a command formats its output."""
    kept = {name: value for name, value in os.environ.items() if name not in _OUTPUT_VARIABLES}
    return {**kept, "TZ": "UTC", "LC_ALL": "C.UTF-8"}


class Shell:
    """Runs a command against a server, in a directory of its own."""

    def __init__(self, url: str, api_key: str, directory: Path, command: Sequence[str] = COMMAND) -> None:
        self.command = command
        self.directory = directory
        self.environment = {**clean_environment(), "FOLLOWUP_BASE_URL": url, "FOLLOWUP_API_KEY": api_key}

    def run(
        self, *arguments: str, stdin: str | bytes | None = None, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run the command to its end, with pipes."""
        content = stdin.encode() if isinstance(stdin, str) else stdin
        result = subprocess.run(
            [*self.command, *arguments],
            input=b"" if content is None else content,
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
        """Start the command, and do not wait for its end."""
        return subprocess.Popen(
            [*self.command, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.directory,
            env=self.environment,
        )

    def json(self, *arguments: str) -> list[Any]:
        """Run a command that succeeds, and return the objects of its JSON Lines."""
        result = self.run(*arguments)
        assert result.returncode == 0, result.stderr
        return [json.loads(line) for line in result.stdout.splitlines()]

    def error(self, *arguments: str, stdin: str | bytes | None = None, **environment: str) -> str:
        """Run a command that fails, and return the one line of its error."""
        result = self.run(*arguments, stdin=stdin, **environment)
        assert result.returncode != 0
        assert "Traceback" not in result.stderr
        assert len(result.stderr.strip().splitlines()) == 1
        return result.stderr

    def on_a_terminal(self, width: int, *arguments: str, **environment: str) -> str:
        """Run the command on a terminal of this width, and return its output without styles."""
        return _STYLE.sub("", self.raw_on_a_terminal(width, *arguments, **environment))

    def raw_on_a_terminal(self, width: int, *arguments: str, **environment: str) -> str:
        """Run the command on a terminal of this width, and return its output with the escape sequences."""
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
            with contextlib.suppress(OSError):  # a read fails once the command has closed the terminal
                while part := os.read(terminal, 65_536):
                    written.append(part)
            process.wait(60)
        os.close(terminal)
        return b"".join(written).decode().replace("\r\n", "\n")
