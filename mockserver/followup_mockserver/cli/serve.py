"""Run a mock until it is told to stop, and wait for one that somebody else runs."""

import errno
import logging
import signal
import socket
import sys
import threading
from pathlib import Path
from typing import Unpack

import httpx

from followup_mockserver.cli.env_file import write_env_file
from followup_mockserver.cli.remote import fail
from followup_mockserver.http.app import CONTRACT_PATH
from followup_mockserver.http.control import PREFIX
from followup_mockserver.options import MockOptions
from followup_mockserver.schema.errors import InvalidArgument
from followup_mockserver.server import MockServer
from followup_mockserver.state.clock import RealTime


def serve_until_stopped(host: str, port: int, env_file: Path | None, **options: Unpack[MockOptions]) -> None:
    """Serve until SIGTERM or Ctrl-C, then end with what is being answered."""
    # It warns of requests that wait for a thread, or are cut off at the end, in words that tell a user nothing.
    logging.getLogger("waitress").setLevel(logging.ERROR)
    signalled = _listen_for_signals()
    try:
        server = MockServer(host=host, port=port, **options)
    except InvalidArgument as error:
        fail(f"--{error.argument.replace('_', '-')} must be {error.expected}")
    except OSError as error:
        problem = "the port is taken" if error.errno == errno.EADDRINUSE else error.strerror or str(error)
        fail(f"cannot listen on {host}:{port}: {problem}")
    with server:
        _announce(server, env_file)
        signalled.recv(1)


def _listen_for_signals() -> socket.socket:
    """A socket from which something can be read once the process is told to stop.

    Not an event that a handler sets: a signal may reach another thread than the one that waits, and a Python handler
    runs only when the main thread does, which then nothing wakes.
    """
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(writer.detach())
    return reader


def _announce(server: MockServer, env_file: Path | None) -> None:
    token = server.token
    lines = [
        f"base URL   {server.url}",
        f"API key    {server.api_key}",
        f"dashboard  {server.url}{PREFIX}/{'' if token is None else f'#token={token}'}",
        f"contract   {server.url}{CONTRACT_PATH}",
    ]
    if token is not None:
        lines.append(f"token      {token}")
    if env_file is not None:
        try:
            write_env_file(env_file, {"FOLLOWUP_BASE_URL": server.url, "FOLLOWUP_API_KEY": server.api_key})
        except OSError as error:
            fail(f"cannot write --env-file {env_file}: {error.strerror}")
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


_BETWEEN_TRIES = 0.05
_SHORTEST_TRY = 0.5
"""Seconds."""


def wait_for_health(url: str, timeout: float) -> None:
    """Return when a mock answers at this URL; end the command if none does in time."""
    ends = RealTime.monotonic() + timeout
    pause = threading.Event()
    with httpx.Client(trust_env=False) as client:
        while not _is_healthy(client, url, max(ends - RealTime.monotonic(), _SHORTEST_TRY)):
            if RealTime.monotonic() >= ends:
                fail(f"no mock answered at {url} within {timeout:g} s")
            pause.wait(_BETWEEN_TRIES)


def _is_healthy(client: httpx.Client, url: str, timeout: float) -> bool:
    try:
        return client.get(f"{url.rstrip('/')}{PREFIX}/health", timeout=timeout).status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False
    except httpx.InvalidURL:
        fail("--url must be the base URL of a mock, such as http://127.0.0.1:4210")
