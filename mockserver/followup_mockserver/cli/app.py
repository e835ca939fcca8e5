"""``followup-mock``: the commands ``serve`` and ``wait``, and those of ``controls``."""

import inspect
from pathlib import Path
from typing import Annotated, Any

import typer

from followup import __version__
from followup.cli.application import Application
from followup.cli.exits import EXIT_STATUS
from followup.cli.options import keyword
from followup_mockserver.cli.controls import DEFAULT_PORT, DEFAULT_URL, Url, add_controls
from followup_mockserver.cli.generated import mock_options, options_of_mock
from followup_mockserver.cli.serve import serve_until_stopped, wait_for_health

app = Application(name="followup-mock", no_args_is_help=True, epilog=EXIT_STATUS)


@app.callback(invoke_without_command=True)
def options(
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """Run a mock of the patient follow-up service, and control it.

    "serve" starts the mock server. The other commands control a running one: its clock, its faults and its webhooks.
    """
    if version:
        typer.echo(f"followup-mock {__version__}")
        raise typer.Exit


def serve(*, host: str, port: int, env_file: Path | None, **values: Any) -> None:
    """Start the mock server.

    It keeps all data in memory, prints its URL and an API key, and runs until it is stopped with Ctrl-C or SIGTERM;
    its exit status is then 0.
    """
    serve_until_stopped(host, port, env_file, **mock_options(values))


_HOST = Annotated[str, typer.Option(help="Address to listen on.")]
_PORT = Annotated[int, typer.Option(help="Port to listen on; 0 picks a free one.", min=0, max=65535)]
_ENV_FILE = Annotated[
    Path | None, typer.Option(help="Write FOLLOWUP_BASE_URL and FOLLOWUP_API_KEY to this file once ready.")
]
serve.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [
        keyword("host", _HOST, "127.0.0.1"),
        keyword("port", _PORT, DEFAULT_PORT),
        keyword("env_file", _ENV_FILE, None),
        *options_of_mock(),
    ]
)
app.command()(serve)


@app.command()
def wait(
    url: Url = DEFAULT_URL,
    timeout: Annotated[float, typer.Option(help="Maximum number of seconds to wait.", min=0)] = 30,
) -> None:
    """Wait until the mock server is ready; for CI jobs."""
    wait_for_health(url, timeout)


add_controls(app)
