"""``followup-mock wait``, which waits for a mock to be ready."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from followup._for_mockserver import result_within
from followup.cli.application import Application
from followup.cli.exits import fail, reject
from followup_mockserver.cli.defaults import DEFAULT_URL
from followup_mockserver.cli.urls import Url
from followup_mockserver.http.control_routes import PREFIX
from followup_mockserver.state.clock import RealTime

if TYPE_CHECKING:
    import httpx

commands = Application()


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
        wait_for_health(lambda: url, timeout, f"no mock responded at {url}")
    else:
        nobody = f"{env_file} named no mock that responded"
        wait_for_health(lambda: _url_in(env_file), timeout, nobody)


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


def wait_for_health(url_of: Callable[[], str | None], timeout: float, problem: str) -> None:
    """Wait until a mock is ready.

    Args:
        url_of: returns the base URL of the mock; None as long as it is not known.
        timeout: seconds.
        problem: what is wrong if it is not ready in time.

    Raises:
        CommandFailed: it is not ready in time.
    """
    import httpx  # imported late, because a help page needs no client

    ends = RealTime.monotonic() + timeout
    pause = threading.Event()
    with httpx.Client(trust_env=False) as client:
        while not _is_healthy(client, url_of(), max(ends - RealTime.monotonic(), _SHORTEST_TRY)):
            if RealTime.monotonic() >= ends:
                fail(f"{problem} within {timeout:g} s")
            pause.wait(_BETWEEN_TRIES)


def _is_healthy(client: "httpx.Client", url: str | None, timeout: float) -> bool:
    import httpx

    if url is None:
        return False
    health = f"{url.rstrip('/')}{PREFIX}/health"
    try:
        return result_within(timeout, lambda: client.get(health, timeout=timeout)).status_code == httpx.codes.OK
    except (httpx.InvalidURL, httpx.UnsupportedProtocol):
        reject("--url must be the base URL of a mock, such as http://127.0.0.1:4210")
    except (httpx.HTTPError, TimeoutError):
        return False
