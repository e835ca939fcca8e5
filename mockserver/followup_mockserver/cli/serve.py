"""``followup-mock serve``, which runs a mock until it is stopped."""

import inspect
from pathlib import Path
from typing import Annotated, Any

import typer

from followup.cli.application import Application
from followup.cli.options import keyword
from followup_mockserver.cli.defaults import DEFAULT_HOST, DEFAULT_PORT, MAX_PORT
from followup_mockserver.cli.generated import options_of_mock
from followup_mockserver.cli.values import mock_options

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
