"""``followup-mock serve``, ``wait``, which waits until it is ready, and ``dev``, which also runs a program with it."""

import inspect
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
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from followup.cli.application import Application
from followup.cli.options import own_parameters
from followup.cli.output import fail, file_errors, flush, reject, write_line
from followup_mockserver.cli import remote

if TYPE_CHECKING:
    import httpx

    from followup_mockserver.service.server import MockServer

commands: Application = Application()


def serve(
    context: typer.Context,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = remote.DEFAULT_HOST,
    port: Annotated[
        int, typer.Option(help="Port to listen on; 0 picks a free one.", min=0, max=65535)
    ] = remote.DEFAULT_PORT,
    env_file: Annotated[
        Path | None, typer.Option(help="Write FOLLOWUP_BASE_URL and FOLLOWUP_API_KEY to this file once ready.")
    ] = None,
    snapshot: Annotated[
        Path | None,
        typer.Option(
            "--from",
            help="Start from a snapshot in this file. The options are then as in the snapshot, "
            "except those that are passed, and POST /_mock/reset returns to it.",
        ),
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Print no hints at the start, and no line for each call and attempt.")
    ] = False,
    **values: Any,
) -> None:
    """Keep all data in memory, and print the URL, an API key, and a line for each API call and webhook attempt.

    It runs until it is stopped with Ctrl-C or SIGTERM; its exit status is then 0.
    """
    from followup_mockserver.cli.serving import serve_until_stopped  # imported late: a help page needs no mock

    # Only those that are passed take precedence over the options in a snapshot or a settings file.
    sources = {name: context.get_parameter_source(name) for name in values}
    passed = {name for name, source in sources.items() if source is not None and source.name != "DEFAULT"}
    options = {name: value for name, value in remote.mock_options(values).items() if name in passed}
    serve_until_stopped(host, port, env_file, snapshot, quiet=quiet, **options)


serve.__signature__ = inspect.Signature([*own_parameters(serve), *remote.options_of_mock()])  # type: ignore[attr-defined]
commands.command()(serve)


@commands.command()
def wait(
    context: typer.Context,
    url: remote.Url = remote.DEFAULT_URL,
    env_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File with FOLLOWUP_BASE_URL and FOLLOWUP_API_KEY, which is read or written. It has the form that "
            "shells, docker --env-file and GITHUB_ENV take.",
        ),
    ] = None,
    timeout: Annotated[float, typer.Option(help="Maximum number of seconds to wait, at most a day.")] = 30,
) -> None:
    """Read or write the variables of the mock.

    With --url, it waits for that mock, and writes its variables to FILE, whose other lines stay. Without, FILE is the
    one that "serve --env-file" writes: it waits until FILE names a mock, and that mock responds.
    """
    import httpx  # imported late, because a help page needs neither client nor mock

    if not 0 <= timeout <= 86_400:  # the limits of typer.Option let nan through
        reject("--timeout must be a number of seconds from 0 to 86400")
    # A URL in the environment does not count: it is often that of an earlier run, which FILE replaces.
    is_asked = env_file is None or getattr(context.get_parameter_source("url"), "name", "") == "COMMANDLINE"
    ends = time.monotonic() + timeout
    with httpx.Client(trust_env=False, timeout=_LONGEST_TRY) as client:
        while True:
            named = url if is_asked else _url_in(env_file)
            if named and _is_healthy(client, named, None if is_asked else env_file):
                break
            if time.monotonic() >= ends:
                missing = f"no mock responded at {remote.shown_url(named)}" if named else f"{env_file} named no mock"
                fail(f"{missing} within {timeout:g} s")
            time.sleep(_BETWEEN_TRIES)
    if env_file is not None and is_asked:
        _add_variables(env_file, url)


_BETWEEN_TRIES = 0.05
_LONGEST_TRY = 1.0
"""Seconds."""


def _url_in(env_file: Path | None) -> str | None:
    """Return the base URL in the file that ``serve`` writes; None as long as there is none."""
    found = [_value(line) for line in _lines_of(env_file) if line.startswith("FOLLOWUP_BASE_URL=")]
    return found[-1] if found else None


def _value(line: str) -> str:
    return line.partition("=")[2].strip().strip("'\"")


def _lines_of(env_file: Path | None) -> list[str]:
    if env_file is None or not env_file.is_file():
        return []
    # Editors on Windows add a byte order mark; lines of others keep their bytes, in whatever encoding.
    return env_file.read_bytes().decode("utf-8-sig", "surrogateescape").splitlines(True)


def _add_variables(env_file: Path, url: str) -> None:
    from followup_mockserver.world.state.registry import DEFAULT_KEY

    ours = {"FOLLOWUP_BASE_URL": url, "FOLLOWUP_API_KEY": DEFAULT_KEY}
    with file_errors(f"write --env-file {env_file}"):
        lines = _lines_of(env_file)
        if any(each.startswith("FOLLOWUP_API_KEY=") and _value(each) != DEFAULT_KEY for each in lines):
            fail(f"{env_file} has another FOLLOWUP_API_KEY: choose another file, or remove the line")
        kept = "".join(each for each in lines if each.partition("=")[0] not in ours)
        end = "\n" if kept and not kept.endswith("\n") else ""
        text = kept + end + "".join(f"{name}={value}\n" for name, value in ours.items())
        env_file.write_bytes(text.encode("utf-8", "surrogateescape"))  # in place: it may be the file of another user


def _is_healthy(client: "httpx.Client", url: str, env_file: Path | None) -> bool:
    import httpx

    from followup_mockserver.web.control_routes import PREFIX

    try:
        return client.get(f"{url.rstrip('/')}{PREFIX}/health").status_code == httpx.codes.OK
    except (httpx.InvalidURL, httpx.UnsupportedProtocol):
        reject(remote.NO_URL.replace("--url", f"FOLLOWUP_BASE_URL in {env_file}" if env_file else "--url"))
    except httpx.HTTPError:
        return False


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
        typer.Option(
            help="Port of the mock.", min=0, max=65535, show_default=f"{remote.DEFAULT_PORT}, or else a free one"
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but what your program prints.")] = False,
) -> None:
    """Pass your program the variables of the mock.

    Exports FOLLOWUP_BASE_URL, FOLLOWUP_API_KEY and FOLLOWUP_WEBHOOK_SECRET, the signing secret of the receiver, to the
    program and prints them. Lines for calls, webhooks and test controls follow: on standard error if there is a
    program. A reset of the mock keeps the receiver.

    The exit status is that of the program; 127 if it is not found, 126 if it cannot run. Ctrl-C reaches the program and
    all that it has started. So does SIGTERM, except in a terminal and on Windows, where it reaches only the program.
    The program has 10 seconds to end after SIGTERM.
    """
    from followup_mockserver.cli.serving import ServeLog, listen_for_signals  # imported late: a help page needs no mock
    from followup_mockserver.web.control_routes import PREFIX
    from followup_mockserver.world.schema.formats import is_webhook_target

    if receiver is not None and not is_webhook_target(receiver):
        reject("--receiver must be an https URL, or an http URL of a loopback address such as http://127.0.0.1:8000")
    signalled, _waker = listen_for_signals()
    with ExitStack() as running:
        server = running.enter_context(_server(port))
        variables = {
            "FOLLOWUP_BASE_URL": server.url,
            "FOLLOWUP_API_KEY": server.api_key,
            "FOLLOWUP_WEBHOOK_SECRET": _secret_of(server, receiver),
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


def _secret_of(server: "MockServer", receiver: str | None) -> str:
    """Register the receiver, if there is one, and return its secret."""
    from followup_mockserver.cli.look import secret_of
    from followup_mockserver.control import access_to
    from followup_mockserver.web.control_routes import add_webhook_endpoint

    secret = secret_of(receiver or server.url)
    if receiver is not None:
        add_webhook_endpoint(server, url=receiver, secret=secret)
        registry = access_to(server).registry
        registry.start_from(registry.copy())  # so that a reset keeps the endpoint
    return secret


def _server(port: int | None) -> "MockServer":
    from followup_mockserver.service.server import MockServer

    with suppress(OSError):
        return MockServer(port=remote.DEFAULT_PORT if port is None else port, allow_http_webhooks=True)
    if port is not None:
        fail(f"cannot listen on {remote.DEFAULT_HOST}:{port}: --port 0 picks a free port")
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
    program = shutil.which(command[0])  # on Windows, it finds npm.cmd too
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
