"""The ``followup`` command: in this process, in one of its own with pipes, or on a terminal of a certain width."""

import contextlib
import importlib
import io
import json
import logging
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from support.terminal import Terminal

COMMAND = [sys.executable, "-c", "from followup.cli import main; main()"]
COMMAND_OF_MOCK = [sys.executable, "-m", "followup_mockserver"]
_LOGGERS = ("followup", "followup.outbox", "followup.inbox", "followup_mockserver")
_STYLE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
_OUTPUT_VARIABLES = re.compile("COLUMNS|LINES|TZ|LANG|LC_ALL|LC_CTYPE|NO_COLOR|FORCE_COLOR|PYTHONIOENCODING")
"""Variables that would change the output; the tests set them themselves."""


def clean_environment() -> dict[str, str]:
    """Return the environment without the variables that change how a command formats its output."""
    kept = {name: value for name, value in os.environ.items() if not _OUTPUT_VARIABLES.fullmatch(name)}
    return {**kept, "TZ": "UTC", "LC_ALL": "C.UTF-8"}


def _renew_time_zone() -> None:
    if hasattr(time, "tzset"):  # not on Windows
        time.tzset()


class _Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


def run_here(
    program: str,
    *arguments: str,
    stdin: bytes = b"",
    environment: Mapping[str, str] | None = None,
    directory: Path | None = None,
    on_a_terminal: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end in this process, which is many times faster than in one of its own.

    Args:
        program: ``followup`` or ``followup-mock``.
        arguments: the command line.
        stdin: its standard input.
        environment: its whole environment; by default that of this process.
        directory: its directory; by default that of this process.
        on_a_terminal: whether standard output and standard error are one terminal, whose width is ``COLUMNS``.
    """
    package = {"followup": "followup.cli", "followup-mock": "followup_mockserver.cli"}[program]
    kind = _Terminal if on_a_terminal else io.TextIOWrapper
    out, err = (kind(io.BytesIO(), "utf-8", newline="\n", write_through=True) for _ in range(2))
    # This terminal knows escape sequences, wherever it is; rich would ask the console of Windows, which is another one.
    knows = mock.patch("rich.console.detect_legacy_windows", return_value=False)
    with _restored(directory), knows if on_a_terminal else contextlib.nullcontext():
        sys.argv = [program, *arguments]
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(stdin)), "utf-8")
        sys.stdout, sys.stderr = out, out if on_a_terminal else err
        if environment is not None:
            os.environ.clear()
            os.environ.update(environment)
        _renew_time_zone()
        os.chdir(directory or Path.cwd())
        try:
            importlib.import_module(package).main()
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else ended.code is not None
        except KeyboardInterrupt:
            status = 130
    written = [each.buffer.getvalue().decode() for each in (out, err)]  # type: ignore[attr-defined]
    return subprocess.CompletedProcess(arguments, int(status), *written)


@contextlib.contextmanager
def _restored(folder: Path | None) -> Iterator[None]:
    """Give a command the log of a new process, and restore afterwards what it changes in its process."""
    streams = sys.argv, sys.stdin, sys.stdout, sys.stderr
    environment, directory, path, modules = dict(os.environ), Path.cwd(), [*sys.path], {*sys.modules}
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    root, loggers = logging.getLogger(), [logging.getLogger(each) for each in _LOGGERS]
    handlers_of_log, levels = root.handlers[:], [(each, each.level) for each in (root, *loggers)]
    root.handlers.clear()
    try:
        yield
    finally:
        sys.argv, sys.stdin, sys.stdout, sys.stderr = streams
        sys.path[:] = path
        for name in {*sys.modules} - modules:
            if folder and str(getattr(sys.modules[name], "__file__", "")).startswith(str(folder)):
                del sys.modules[name]
        root.handlers[:] = handlers_of_log
        for logger, level in levels:
            logger.setLevel(level)
        os.environ.clear()
        os.environ.update(environment)
        _renew_time_zone()
        os.chdir(directory)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(-1)


class Shell:
    """Runs a command against a server, in a directory of its own."""

    def __init__(self, url: str, api_key: str, directory: Path, command: Sequence[str] = COMMAND) -> None:
        self.command = command
        self.directory = directory
        self._program = "followup" if command is COMMAND else None
        if list(command) == COMMAND_OF_MOCK:
            self._program = "followup-mock"
        self.environment = {**clean_environment(), "FOLLOWUP_BASE_URL": url, "FOLLOWUP_API_KEY": api_key}

    def run(
        self, *arguments: str, stdin: str | bytes | None = None, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Run the command to its end, with pipes: in this process, unless the process itself matters."""
        content = stdin.encode() if isinstance(stdin, str) else stdin
        if self._program is not None and not {"PYTHONIOENCODING", "LC_ALL"} & environment.keys():
            return run_here(
                self._program,
                *arguments,
                stdin=content or b"",
                environment={**self.environment, "COLUMNS": "200", **environment},
                directory=self.directory,
            )
        result = subprocess.run(
            [*self.command, *arguments],
            input=b"" if content is None else content,
            capture_output=True,
            check=False,
            timeout=60,
            cwd=self.directory,
            env={**self.environment, "COLUMNS": "200", **environment},
        )
        ends = "\n" if "--csv" in arguments else os.linesep  # CSV has the same ends of lines everywhere
        written = [each.decode().replace(ends, "\n") for each in (result.stdout, result.stderr)]
        return subprocess.CompletedProcess(result.args, result.returncode, *written)

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
        """Run a command that fails, and return the line of its error; Typer writes three lines above one of its own."""
        result = self.run(*arguments, stdin=stdin, **environment)
        assert result.returncode != 0
        assert "Traceback" not in result.stderr
        *usage, line = result.stderr.splitlines()
        assert len(usage) == (3 if line.startswith("Error: ") else 0)
        return f"{line}\n"

    def on_a_terminal(self, width: int, *arguments: str, **environment: str) -> str:
        """Run the command on a terminal of this width, and return its output without styles."""
        return _STYLE.sub("", self.raw_on_a_terminal(width, *arguments, **environment))

    def raw_on_a_terminal(self, width: int, *arguments: str, **environment: str) -> str:
        """Run the command on a terminal of this width, and return its output with the escape sequences."""
        if self._program is not None:
            columns = {"TERM": "xterm", "COLUMNS": str(width)}
            return run_here(
                self._program,
                *arguments,
                environment={**self.environment, **columns, **environment},
                directory=self.directory,
                on_a_terminal=True,
            ).stdout
        variables = {**self.environment, "TERM": "xterm", **environment}
        with Terminal([*self.command, *arguments], variables, cwd=self.directory, width=width) as terminal:
            terminal.end()
            return terminal.output
