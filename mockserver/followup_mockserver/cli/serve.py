"""``followup-mock serve``, which runs a mock until it is stopped, and ``wait``, which waits until it is ready."""

import inspect
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from followup.cli.application import Application
from followup.cli.options import own_parameters
from followup.cli.output import fail, reject
from followup_mockserver.cli.generated import Url, mock_options, options_of_mock
from followup_mockserver.cli.remote import DEFAULT_HOST, DEFAULT_PORT, DEFAULT_URL, NO_URL

if TYPE_CHECKING:
    import httpx

commands: Application = Application()


def serve(
    context: typer.Context,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = DEFAULT_HOST,
    port: Annotated[int, typer.Option(help="Port to listen on; 0 picks a free one.", min=0, max=65535)] = DEFAULT_PORT,
    env_file: Annotated[
        Path | None, typer.Option(help="Write FOLLOWUP_BASE_URL and FOLLOWUP_API_KEY to this file once ready.")
    ] = None,
    snapshot: Annotated[
        Path | None,
        typer.Option(
            "--from",
            help="Start from a snapshot in this file; - reads standard input. The options are then as in the snapshot, "
            "except those that are passed, and POST /_mock/reset returns to it.",
        ),
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Print no hints at the start, and no line for each call and attempt.")
    ] = False,
    **values: Any,
) -> None:
    """Start the mock server.

    It keeps all data in memory, prints its URL and an API key, and then a line for each API call and each attempt to
    deliver a webhook. It runs until it is stopped with Ctrl-C or SIGTERM; its exit status is then 0.
    """
    from followup_mockserver.cli.serving import serve_until_stopped  # imported late, because a help page needs no mock

    # Only those that are passed take precedence over the options in a snapshot or a settings file.
    sources = {name: context.get_parameter_source(name) for name in values}
    passed = {name for name, source in sources.items() if source is not None and source.name != "DEFAULT"}
    options = {name: value for name, value in mock_options(values).items() if name in passed}
    serve_until_stopped(host, port, env_file, snapshot, quiet=quiet, **options)


serve.__signature__ = inspect.Signature([*own_parameters(serve), *options_of_mock()])  # type: ignore[attr-defined]
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
    import httpx  # imported late, because a help page needs neither client nor mock

    from followup_mockserver.state.clock import RealTime

    ends = RealTime.monotonic() + timeout
    with httpx.Client(trust_env=False) as client:
        while not _is_healthy(client, _url_in(env_file) if env_file else url, ends - RealTime.monotonic()):
            if RealTime.monotonic() >= ends:
                found = f"{env_file} named no mock that responded" if env_file else f"no mock responded at {url}"
                fail(f"{found} within {timeout:g} s")
            threading.Event().wait(_BETWEEN_TRIES)


def _url_in(env_file: Path) -> str | None:
    """Return the base URL in the file that ``serve`` writes; None as long as there is none."""
    try:
        lines = env_file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    return next((line.partition("=")[2] for line in lines if line.startswith("FOLLOWUP_BASE_URL=")), None)


_BETWEEN_TRIES = 0.05
_SHORTEST_TRY = 0.5
"""Seconds."""


def _is_healthy(client: "httpx.Client", url: str | None, seconds: float) -> bool:
    import httpx

    from followup._for_mockserver import result_within
    from followup_mockserver.http.control_routes import PREFIX

    if url is None:
        return False
    timeout = max(seconds, _SHORTEST_TRY)
    health = f"{url.rstrip('/')}{PREFIX}/health"
    try:
        return result_within(timeout, lambda: client.get(health, timeout=timeout)).status_code == httpx.codes.OK
    except (httpx.InvalidURL, httpx.UnsupportedProtocol):
        reject(NO_URL)
    except (httpx.HTTPError, TimeoutError):
        return False
