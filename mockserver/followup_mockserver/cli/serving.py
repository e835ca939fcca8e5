"""Serves a mock until it is stopped, and logs each API call, webhook attempt and test control in a line with columns.

The time at the beginning of a line is the real one. That of the mock's clock is named as such, or relative. Needs
neither Typer nor click.
"""

import atexit
import contextlib
import errno
import logging
import os
import queue
import re
import shlex
import signal
import socket
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Self, TextIO, Unpack

from followup import __version__
from followup._for_mockserver import stop_signals, visible
from followup.cli.options import kebab
from followup.cli.output import fail, file_errors, painted, reject, style_of, terminal_width, write_private_file
from followup_mockserver.cli.remote import TOKEN_VARIABLE
from followup_mockserver.control.log_lines import columns_of
from followup_mockserver.service.server import MockServer
from followup_mockserver.web.app import CONTRACT_PATH
from followup_mockserver.web.control_routes import PREFIX
from followup_mockserver.world.schema.errors import InvalidArgument, SnapshotError
from followup_mockserver.world.settings import MockOptions, SettingsFileError
from followup_mockserver.world.state.journal import OBSERVERS, Ended, EndedAttempt
from followup_mockserver.world.state.snapshots import content_of


def serve_until_stopped(
    host: str,
    port: int,
    env_file: Path | None,
    snapshot: Path | None = None,
    *,
    quiet: bool = False,
    **options: Unpack[MockOptions],
) -> None:
    """Serve until SIGTERM or Ctrl-C; requests in progress are completed.

    Args:
        host: the address to listen on.
        port: the port to listen on; 0 picks a free one.
        env_file: a file to write the base URL and the API key to.
        snapshot: a file with the state to start from.
        quiet: whether to print the addresses and the key only: no hints, and no line for each call and attempt.
        options: the options of the mock; with a snapshot, those that replace its own.

    Raises:
        CommandFailed: the port cannot be bound, a file cannot be read or written, or an option is invalid.
    """
    token = _token()
    try:
        if snapshot is None:
            server = MockServer(host=host, port=port, **options)
        else:
            with file_errors(f"read {snapshot}"):
                content = content_of(snapshot)
            server = MockServer.load(content, host=host, port=port, **options)
    except SnapshotError as error:
        fail(f"cannot load {snapshot}: {error}")
    except SettingsFileError as error:
        reject(f"--settings {error}")
    except InvalidArgument as error:
        reject(f"--{kebab(error.argument)} must be {error.expected}")
    except OSError as error:
        if error.filename is not None:
            reject(f"cannot read --settings {error.filename}: {error.strerror}")
        problem = error.strerror or str(error)
        if error.errno == errno.EADDRINUSE:
            problem = "the port is in use; --port 0 picks a free one"
        fail(f"cannot listen on {host}:{port}: {problem}")
    if token is not None:
        server._use_token(token)
    # What the mock logs stands on standard error, without the names of loggers.
    logging.basicConfig(format="%(message)s")
    signalled, _waker = listen_for_signals()
    with contextlib.ExitStack() as running:
        if not quiet:
            running.enter_context(ServeLog(sys.stdout))
        running.enter_context(server)
        # Only now: who reads the file or these lines calls the mock at once.
        _announce(server, env_file, quiet=quiet)
        signalled.recv(1)


_SHORTEST_TOKEN = 16
"""Characters; too many to guess, if they are random."""


def _token() -> str | None:
    """Return the token in the environment, which containers that start together share; None if there is none."""
    token = os.environ.get(TOKEN_VARIABLE)
    if not token:
        return None
    if len(token) < _SHORTEST_TOKEN or not re.fullmatch("[!-~]+", token):
        reject(f"{TOKEN_VARIABLE} must be {_SHORTEST_TOKEN} or more printable ASCII characters, without spaces")
    return token


def listen_for_signals() -> tuple[socket.socket, socket.socket]:
    """Return a socket that receives the number of each signal to stop, and the other end, which must stay open.

    An event that a signal handler sets would not do: the operating system may deliver the signal to another thread,
    and Python runs handlers in the main thread only, which would still be waiting for the event.
    """
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    for number in stop_signals():
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(writer.fileno())
    atexit.register(reader.close)
    atexit.register(writer.close)
    atexit.register(signal.set_wakeup_fd, -1)  # which runs first
    return reader, writer


def _announce(server: MockServer, env_file: Path | None, *, quiet: bool) -> None:
    token = server.token
    values = {"FOLLOWUP_BASE_URL": server.url, "FOLLOWUP_API_KEY": server.api_key}
    lines = [
        f"base URL   {server.url}",
        f"API key    {server.api_key}",
        f"dashboard  {server.url}{PREFIX}/{'' if token is None else f'#token={token}'}",
        f"contract   {server.url}{CONTRACT_PATH}",
    ]
    if token is not None:
        lines.append(f"token      {token}")
    if env_file is not None:
        with file_errors(f"write --env-file {env_file}"):
            write_private_file(env_file, "".join(f"{name}={value}\n" for name, value in values.items()))
    if not quiet:
        lines += _hints(values | ({} if token is None else {TOKEN_VARIABLE: token}))
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


def _hints(values: Mapping[str, str]) -> list[str]:
    settings = "export " + " ".join(f"{name}={shlex.quote(value)}" for name, value in values.items())
    if "PSModulePath" in os.environ and "SHELL" not in os.environ:  # PowerShell
        settings = "; ".join(f"$env:{name} = '{value}'" for name, value in values.items())
    return [
        "",
        "Paste this into another shell, to use the mock there:",
        f"  {settings}",
        "  followup doctor",
        "  followup-mock listen --forward-to http://127.0.0.1:8000/webhooks",
        "",
        f"followup-mock {__version__}; Ctrl-C stops it. Lines for calls, webhooks (>) and test controls follow.",
    ]


_LONGEST_QUEUE = 10_000
"""Lines that wait for the reader of the output; further ones are dropped."""

_BETWEEN_WRITES = 0.05
"""Seconds. A thread that woke up for each line would delay each call, because Python runs one thread at a time."""

_LAST_LINES = 0.5
"""Seconds that the end waits for the lines that are still in the queue."""


class ServeLog:
    """Writes a line for each call, attempt and test control of the mocks in this process; a context manager.

    A reader that has stopped reading must not stop the mock: a thread of its own writes the lines, and drops some when
    it is too far behind.

    Args:
        output: where it writes them.
    """

    def __init__(self, output: TextIO) -> None:
        self._queue: queue.SimpleQueue[tuple[str, Ended] | None] = queue.SimpleQueue()
        self._dropped = 0
        self._ends = threading.Event()
        self._width = terminal_width() if output.isatty() else None
        self._output = output.fileno()
        self._encoding = output.encoding or "utf-8"
        # A daemon, because it may be blocked by a pipe that nobody reads.
        self._thread = threading.Thread(target=self._write_all, name="followup-mock log", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        OBSERVERS.append(self._take)
        return self

    def __exit__(self, *_: object) -> None:
        OBSERVERS.remove(self._take)
        self._queue.put(None)
        self._ends.set()
        self._thread.join(_LAST_LINES)

    def _take(self, event: Ended) -> None:
        # Called by the thread of the call, which must not wait.
        if self._queue.qsize() < _LONGEST_QUEUE:
            self._queue.put((time.strftime("%H:%M:%S"), event))
        else:
            self._dropped += 1

    def _write_all(self) -> None:
        with contextlib.suppress(OSError):  # the reader has closed the pipe
            while (item := self._queue.get()) is not None:
                self._ends.wait(_BETWEEN_WRITES)
                waiting = [item, *(self._queue.get() for _ in range(self._queue.qsize()))]
                taken = (each for each in waiting if each is not None)
                lines = [f"{at}  {line}\n" for at, event in taken if (line := _line_of(event, self._width))]
                if self._dropped:
                    dropped, self._dropped = self._dropped, 0
                    lines.append(f"{item[0]}  {dropped} lines were dropped, because the output was not read\n")
                self._write("".join(lines))
                if waiting[-1] is None:
                    break

    def _write(self, lines: str) -> None:
        # Not through sys.stdout, whose lock a blocked thread would hold when the process ends.
        rest = lines.encode(self._encoding, "backslashreplace")
        while rest:
            rest = rest[os.write(self._output, rest) :]


_TIME = len("00:00:00  ")
_TITLE = len("webhook_deliveries.retrieve")
_ABOUT = len("apt_LtcE")
"""The width of a column on a terminal. So much of an id is enough for the commands that take one."""


def _line_of(event: Ended, width: int | None) -> str:
    """Return the line of what has ended, after the time; empty if it has none.

    Args:
        event: what has ended.
        width: the columns of the terminal, which cut the line; None for another output, which gets all of it.
    """
    status, title, about, remarks = columns_of(event)
    if not title:
        return ""
    shown = about if width is None else f"{about[:_ABOUT]:{_ABOUT}}"
    line = visible("  ".join([f"{status:3}", f"{title:{_TITLE}}", shown, *filter(None, remarks)]).rstrip())
    if width is not None and len(line) > width - _TIME:
        line = f"{line[: width - _TIME - 1]}…"
    if isinstance(event, EndedAttempt) and event.attempt.number > 1:
        return painted(line, "dim")
    return painted(status, style_of(status)) + line[len(status) :]
