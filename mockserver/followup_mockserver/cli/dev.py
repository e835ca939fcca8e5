"""``followup-mock dev``: a mock and the program that uses it, which start and end together."""

import math
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Annotated

import typer

from followup.cli.application import Application
from followup.cli.output import fail, flush, reject, write_line
from followup_mockserver.cli.remote import DEFAULT_HOST, DEFAULT_PORT

if TYPE_CHECKING:
    from followup_mockserver.service.server import MockServer

commands: Application = Application()

_PATIENCE = 10.0
"""Seconds that a program has to end after SIGTERM."""

_BETWEEN_LOOKS = 0.05
"""Seconds after which it looks again whether the program has ended."""


@commands.command(context_settings={"allow_interspersed_args": False})
def dev(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="-- COMMAND...", help="Your program with its arguments. Without it, the mock runs until Ctrl-C."
        ),
    ] = None,
    receiver: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Send all webhooks to this URL: https, or http to a loopback address."),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(help="Port of the mock.", min=0, max=65535, show_default=f"{DEFAULT_PORT}, or else a free one"),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but what your program prints.")] = False,
) -> None:
    """Run your program with a mock; both end together.

    Exports FOLLOWUP_BASE_URL, FOLLOWUP_API_KEY and FOLLOWUP_WEBHOOK_SECRET, the signing secret of the receiver, to the
    program and prints them. A line for each API call and webhook attempt follows: on standard error if there is a
    program. A reset of the mock keeps the receiver.

    The exit status is that of the program; 127 if it is not found, 126 if it cannot run. Ctrl-C reaches the program and
    all that it has started. So does SIGTERM, except in a terminal and on Windows, where it reaches only the program.
    The program has 10 seconds to end after SIGTERM.
    """
    from followup_mockserver.cli.following import secret_of  # imported late, because a help page needs no mock
    from followup_mockserver.cli.serve_log import ServeLog
    from followup_mockserver.cli.serving import listen_for_signals
    from followup_mockserver.control import access_to
    from followup_mockserver.web.control_routes import PREFIX, add_webhook_endpoint
    from followup_mockserver.world.schema.formats import is_webhook_target

    if receiver is not None and not is_webhook_target(receiver):
        reject("--receiver must be an https URL, or an http URL of a loopback address such as http://127.0.0.1:8000")
    signalled, _waker = listen_for_signals()
    with ExitStack() as running:
        server = running.enter_context(_server(port))
        secret = secret_of(receiver or server.url)
        if receiver is not None:
            add_webhook_endpoint(server, url=receiver, secret=secret)
            registry = access_to(server).registry
            registry.start_from(registry.copy())  # so that a reset keeps the endpoint
        variables = {
            "FOLLOWUP_BASE_URL": server.url,
            "FOLLOWUP_API_KEY": server.api_key,
            "FOLLOWUP_WEBHOOK_SECRET": secret,
        }
        if not quiet:
            for name, value in variables.items():
                write_line(f"{name}={value}")
            write_line(f"dashboard  {server.url}{PREFIX}/")
            flush()
            running.enter_context(ServeLog(sys.stderr if command else sys.stdout))
        if command:
            raise typer.Exit(_run(command, variables, signalled))
        signalled.recv(1)


def _server(port: int | None) -> "MockServer":
    from followup_mockserver.service.server import MockServer

    with suppress(OSError):
        return MockServer(port=DEFAULT_PORT if port is None else port, allow_http_webhooks=True)
    if port is not None:
        fail(f"cannot listen on {DEFAULT_HOST}:{port}: --port 0 picks a free port")
    return MockServer(allow_http_webhooks=True)


def _run(command: Sequence[str], variables: Mapping[str, str], signalled: socket.socket) -> int:
    """Run a program until it ends, pass signals on to it, and return its exit status.

    Args:
        command: the program and its arguments.
        variables: what its environment has in addition.
        signalled: receives the number of each signal to this process.
    """
    # A terminal itself sends Ctrl-C to the program, which could not read from it in a group of its own.
    has_group = hasattr(os, "killpg") and not sys.stdin.isatty()
    program = shutil.which(command[0]) if sys.platform == "win32" else None  # finds npm.cmd, too
    try:
        process = subprocess.Popen(  # noqa: S603 - the program of the user
            [program or command[0], *command[1:]],
            env={**os.environ, **variables},
            process_group=0 if has_group else None,
        )
    except OSError as error:
        fail(f"cannot start {command[0]}: {error.strerror}", 127 if isinstance(error, FileNotFoundError) else 126)
    signalled.settimeout(_BETWEEN_LOOKS)
    killed_at = math.inf
    while process.poll() is None and time.monotonic() < killed_at:
        with suppress(OSError):  # no signal has come, or the program has just ended
            number = signalled.recv(1)[0]
            if number == signal.SIGTERM:
                killed_at = time.monotonic() + _PATIENCE
            if has_group:
                os.killpg(process.pid, number)
            elif number == signal.SIGTERM:
                process.terminate()
    process.kill()
    if has_group:
        with suppress(OSError):  # it has left nothing running
            os.killpg(process.pid, signal.SIGTERM)
    status = process.wait()
    return status if status >= 0 else 128 - status
