"""``followup-mock wait``, which waits for a mock to be ready."""

import threading
from typing import TYPE_CHECKING, Annotated

import typer

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
    timeout: Annotated[float, typer.Option(help="Maximum number of seconds to wait.", min=0)] = 30,
) -> None:
    """Wait until the mock server is ready; for CI jobs."""
    wait_for_health(url, timeout)


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
    import httpx  # imported late, because a help page needs no client

    ends = RealTime.monotonic() + timeout
    pause = threading.Event()
    with httpx.Client(trust_env=False) as client:
        while not _is_healthy(client, url, max(ends - RealTime.monotonic(), _SHORTEST_TRY)):
            if RealTime.monotonic() >= ends:
                fail(f"no mock responded at {url} within {timeout:g} s")
            pause.wait(_BETWEEN_TRIES)


def _is_healthy(client: "httpx.Client", url: str, timeout: float) -> bool:
    import httpx

    try:
        return client.get(f"{url.rstrip('/')}{PREFIX}/health", timeout=timeout).status_code == httpx.codes.OK
    except (httpx.InvalidURL, httpx.UnsupportedProtocol):
        reject("--url must be the base URL of a mock, such as http://127.0.0.1:4210")
    except httpx.HTTPError:
        return False
