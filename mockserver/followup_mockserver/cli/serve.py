"""``followup-mock serve``, which runs a mock until it is stopped, and ``wait``, which waits until it is ready."""

import gc
import inspect
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from followup.cli.application import Application
from followup.cli.options import own_parameters
from followup.cli.output import fail, file_errors, reject, write_private_file
from followup_mockserver.cli.generated import Url, mock_options, options_of_mock
from followup_mockserver.cli.remote import DEFAULT_HOST, DEFAULT_PORT, DEFAULT_URL, NO_URL, shown_url

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
    gc.disable()  # what an import allocates stays, so a search for garbage only takes time
    from followup_mockserver.cli.serving import serve_until_stopped  # imported late: a help page needs no mock

    gc.freeze()
    gc.enable()

    # Only those that are passed take precedence over the options in a snapshot or a settings file.
    sources = {name: context.get_parameter_source(name) for name in values}
    passed = {name for name, source in sources.items() if source is not None and source.name != "DEFAULT"}
    options = {name: value for name, value in mock_options(values).items() if name in passed}
    serve_until_stopped(host, port, env_file, snapshot, quiet=quiet, **options)


serve.__signature__ = inspect.Signature([*own_parameters(serve), *options_of_mock()])  # type: ignore[attr-defined]
commands.command()(serve)


@commands.command()
def wait(
    context: typer.Context,
    url: Url = DEFAULT_URL,
    env_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File with FOLLOWUP_BASE_URL and FOLLOWUP_API_KEY, which is read or written. It has the form that "
            "shells, docker --env-file and GITHUB_ENV take.",
        ),
    ] = None,
    timeout: Annotated[float, typer.Option(help="Maximum number of seconds to wait.", min=0, max=86_400)] = 30,
) -> None:
    """Wait until the mock server is ready; for CI jobs.

    If FILE has a base URL, as "serve --env-file" writes it, it waits for that mock. Otherwise it waits for the one at
    --url and adds the variables to FILE, whose other lines stay. A FILE that does not exist may be one that "serve" is
    about to write, so that it is awaited for 5 seconds, unless --url is passed.
    """
    import httpx  # imported late, because a help page needs neither client nor mock

    from followup_mockserver.world.state.clock import RealTime

    if not timeout >= 0:
        reject("--timeout must be a number of seconds")
    is_asked = env_file is None or getattr(context.get_parameter_source("url"), "name", "") == "COMMANDLINE"
    begins = RealTime.monotonic()
    with httpx.Client(trust_env=False) as client:
        while True:
            passed = RealTime.monotonic() - begins
            named = None if is_asked else _url_in(env_file)
            may_write = is_asked or passed >= min(_FOR_THE_FILE, timeout / 2) or (env_file and env_file.exists())
            place = f"FOLLOWUP_BASE_URL in {env_file}" if named else "--url"
            if _is_healthy(client, named or (url if may_write else None), place, timeout - passed):
                break
            if RealTime.monotonic() - begins >= timeout:
                found = f"no mock responded at {shown_url(named or url)} within {timeout:g} s"
                fail(found if is_asked else f"{found}; {env_file} names {'it' if named else 'none'}")
            threading.Event().wait(_BETWEEN_TRIES)
    if env_file is not None and named is None:
        _add_variables(env_file, url)


_FOR_THE_FILE = 5.0
"""Seconds that a file has the precedence over a mock at the default address, which may be another one."""


def _url_in(env_file: Path | None) -> str | None:
    """Return the base URL in the file that ``serve`` writes; None as long as there is none."""
    try:
        lines = _lines_of(env_file) if env_file else []
    except (OSError, UnicodeDecodeError):
        return None
    return next((_value(line) for line in lines if line.startswith("FOLLOWUP_BASE_URL=")), None) or None


def _value(line: str) -> str:
    return line.partition("=")[2].strip().strip("'\"")


def _lines_of(env_file: Path) -> list[str]:
    return env_file.read_bytes().decode().splitlines(keepends=True) if env_file.is_file() else []


def _add_variables(env_file: Path, url: str) -> None:
    from followup_mockserver.world.state.registry import DEFAULT_KEY

    ours = {"FOLLOWUP_BASE_URL": url, "FOLLOWUP_API_KEY": DEFAULT_KEY}
    with file_errors(f"write --env-file {env_file}"):
        try:
            lines = _lines_of(env_file)
        except UnicodeDecodeError:
            fail(f"{env_file} is not UTF-8")
        if any(each.startswith("FOLLOWUP_API_KEY=") and _value(each) != DEFAULT_KEY for each in lines):
            fail(f"{env_file} has another FOLLOWUP_API_KEY: choose another file, or remove the line")
        end = "\r\n" if "\r\n" in "".join(lines) else "\n"
        kept = [each.rstrip("\r\n") for each in lines if each.partition("=")[0] not in ours]
        text = "".join(f"{each}{end}" for each in [*kept, *(f"{name}={value}" for name, value in ours.items())])
        write_private_file(env_file, text, keeps_mode=True)


_BETWEEN_TRIES = 0.05
_SHORTEST_TRY = 0.5
"""Seconds."""


def _is_healthy(client: "httpx.Client", url: str | None, place: str, seconds: float) -> bool:
    import httpx

    from followup._for_mockserver import result_within
    from followup_mockserver.web.control_routes import PREFIX

    if url is None:
        return False
    timeout = max(seconds, _SHORTEST_TRY)
    health = f"{url.rstrip('/')}{PREFIX}/health"
    try:
        return result_within(timeout, lambda: client.get(health, timeout=timeout)).status_code == httpx.codes.OK
    except (httpx.InvalidURL, httpx.UnsupportedProtocol):
        reject(NO_URL.replace("--url", place))
    except (httpx.HTTPError, TimeoutError):
        return False
