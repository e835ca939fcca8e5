"""``followup-mock serve``, which runs a mock until it is stopped, and ``wait``, which waits for one to be ready."""

import errno
import logging
import signal
import socket
import sys
import threading
from pathlib import Path
from typing import Unpack

import httpx

from followup.cli.exits import fail, reject
from followup.cli.options import kebab
from followup_mockserver.cli.env_file import write_env_file
from followup_mockserver.http.app import CONTRACT_PATH
from followup_mockserver.http.control import PREFIX
from followup_mockserver.options import MockOptions
from followup_mockserver.schema.errors import InvalidArgument
from followup_mockserver.server import MockServer
from followup_mockserver.state.clock import RealTime


def serve_until_stopped(host: str, port: int, env_file: Path | None, **options: Unpack[MockOptions]) -> None:
    """Serve until SIGTERM or Ctrl-C; requests in progress are completed.

    Args:
        host: the address to listen on.
        port: the port to listen on; 0 picks a free one.
        env_file: a file to write the base URL and the API key to.
        options: the options of the mock.

    Raises:
        CommandFailed: the port cannot be bound, or the file cannot be written.
        UsageError: an option is invalid.
    """
    # waitress warns about queued requests, and about those that a stop cuts off; neither helps a user.
    logging.getLogger("waitress").setLevel(logging.ERROR)
    signalled = _listen_for_signals()
    try:
        server = MockServer(host=host, port=port, **options)
    except InvalidArgument as error:
        reject(f"--{kebab(error.argument)} must be {error.expected}")
    except OSError as error:
        problem = "the port is in use" if error.errno == errno.EADDRINUSE else error.strerror or str(error)
        fail(f"cannot listen on {host}:{port}: {problem}")
    with server:
        _announce(server, env_file)
        signalled.recv(1)


def _listen_for_signals() -> socket.socket:
    """Return a socket that becomes readable when the process is asked to stop.

    An event that a signal handler sets would not do: the operating system may deliver the signal to another thread,
    and Python runs handlers in the main thread only, which would still be waiting for the event.
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
    """Wait until the mock at this URL is ready.

    Args:
        url: the base URL of the mock.
        timeout: seconds.

    Raises:
        CommandFailed: it is not ready in time.
    """
    ends = RealTime.monotonic() + timeout
    pause = threading.Event()
    with httpx.Client(trust_env=False) as client:
        while not _is_healthy(client, url, max(ends - RealTime.monotonic(), _SHORTEST_TRY)):
            if RealTime.monotonic() >= ends:
                fail(f"no mock responded at {url} within {timeout:g} s")
            pause.wait(_BETWEEN_TRIES)


def _is_healthy(client: httpx.Client, url: str, timeout: float) -> bool:
    try:
        return client.get(f"{url.rstrip('/')}{PREFIX}/health", timeout=timeout).status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False
    except httpx.InvalidURL:
        reject("--url must be the base URL of a mock, such as http://127.0.0.1:4210")
