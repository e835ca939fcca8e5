"""``followup-mock serve``, which runs a mock until it is stopped, and ``wait``, which waits until it is ready."""

import inspect
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from followup.cli.application import Application
from followup.cli.exits import fail, reject
from followup.cli.options import keyword
from followup_mockserver.cli.generated import Url, mock_options, options_of_mock
from followup_mockserver.cli.remote import DEFAULT_HOST, DEFAULT_PORT, DEFAULT_URL, MAX_PORT

if TYPE_CHECKING:
    import httpx

commands = Application()


def serve(
    *,
    context: typer.Context,
    host: str,
    port: int,
    env_file: Path | None,
    snapshot: Path | None,
    quiet: bool,
    **values: Any,
) -> None:
    """Start the mock server.

    It keeps all data in memory, prints its URL and an API key, and then a line for each API call and each attempt to
    deliver a webhook. It runs until it is stopped with Ctrl-C or SIGTERM; its exit status is then 0.
    """
    from followup_mockserver.cli.serving import serve_until_stopped  # imported late, because a help page needs no mock

    # Only those that are passed take precedence over the options in a snapshot or a settings file.
    options = {name: value for name, value in mock_options(values).items() if _is_passed(context, name)}
    serve_until_stopped(host, port, env_file, snapshot, quiet=quiet, **options)


def _is_passed(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


_HOST = Annotated[str, typer.Option(help="Address to listen on.")]
_PORT = Annotated[int, typer.Option(help="Port to listen on; 0 picks a free one.", min=0, max=MAX_PORT)]
_ENV_FILE = Annotated[
    Path | None, typer.Option(help="Write FOLLOWUP_BASE_URL and FOLLOWUP_API_KEY to this file once ready.")
]
_QUIET = Annotated[
    bool, typer.Option("--quiet", help="Print no hints at the start, and no line for each call and attempt.")
]
_SNAPSHOT = Annotated[
    Path | None,
    typer.Option(
        "--from",
        help="Start from a snapshot in this file; - reads standard input. The options are then as in the snapshot, "
        "except those that are passed, and POST /_mock/reset returns to it.",
    ),
]
serve.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [
        keyword("context", typer.Context, inspect.Parameter.empty),
        keyword("host", _HOST, DEFAULT_HOST),
        keyword("port", _PORT, DEFAULT_PORT),
        keyword("env_file", _ENV_FILE, None),
        keyword("snapshot", _SNAPSHOT, None),
        keyword("quiet", _QUIET, default=False),
        *options_of_mock(),
    ]
)
commands.command()(serve)


@commands.command()
def wait(
    url: Url = DEFAULT_URL,
    env_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Read the base URL from the file that 'serve --env-file' writes."),
    ] = None,
    timeout: Annotated[float, typer.Option(help="Maximum number of seconds to wait.", min=0)] = 30,
) -> None:
    """Wait until the mock server is ready; for CI jobs."""
    if env_file is None:
        _wait_for_health(lambda: url, timeout, f"no mock responded at {url}")
    else:
        nobody = f"{env_file} named no mock that responded"
        _wait_for_health(lambda: _url_in(env_file), timeout, nobody)


def _url_in(env_file: Path) -> str | None:
    """Return the base URL in the file that ``serve`` writes; None as long as there is none."""
    try:
        lines = env_file.read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    return next((line.partition("=")[2] for line in lines if line.startswith("FOLLOWUP_BASE_URL=")), None)


_BETWEEN_TRIES = 0.05
_SHORTEST_TRY = 0.5
"""Seconds."""


def _wait_for_health(url_of: Callable[[], str | None], timeout: float, problem: str) -> None:
    """Wait until a mock is ready.

    Args:
        url_of: returns the base URL of the mock; None as long as it is not known.
        timeout: seconds.
        problem: what is wrong if it is not ready in time.

    Raises:
        CommandFailed: it is not ready in time.
    """
    import httpx  # imported late, because a help page needs neither client nor mock

    from followup_mockserver.state.clock import RealTime

    ends = RealTime.monotonic() + timeout
    pause = threading.Event()
    with httpx.Client(trust_env=False) as client:
        while not _is_healthy(client, url_of(), max(ends - RealTime.monotonic(), _SHORTEST_TRY)):
            if RealTime.monotonic() >= ends:
                fail(f"{problem} within {timeout:g} s")
            pause.wait(_BETWEEN_TRIES)


def _is_healthy(client: "httpx.Client", url: str | None, timeout: float) -> bool:
    import httpx

    from followup._for_mockserver import result_within
    from followup_mockserver.http.control_routes import PREFIX

    if url is None:
        return False
    health = f"{url.rstrip('/')}{PREFIX}/health"
    try:
        return result_within(timeout, lambda: client.get(health, timeout=timeout)).status_code == httpx.codes.OK
    except (httpx.InvalidURL, httpx.UnsupportedProtocol):
        reject("--url must be the base URL of a mock, such as http://127.0.0.1:4210")
    except (httpx.HTTPError, TimeoutError):
        return False
