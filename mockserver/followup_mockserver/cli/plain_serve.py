"""The command line of ``serve``, parsed without Typer.

Importing Typer takes a tenth of the start of a mock, and a CI job or a test run waits for the mock. So a command line
that consists of the options below with plain values is parsed here. Typer parses every other one. It prints the help
and all errors, so this module has no messages of its own.
"""

import functools
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from followup_mockserver.cli.remote import DEFAULT_HOST, DEFAULT_PORT

_NUMBER = re.compile(r"[0-9]{1,4}")
# No character that Typer expands in an argument on Windows: a home folder, a variable, a pattern of file names.
_TEXT = re.compile(r"[\w/\\:.,@+][\w/\\:.,@+ =&-]*")

_OPTIONS: dict[str, tuple[str, re.Pattern[str], Callable[[str], Any]]] = {
    "--host": ("host", _TEXT, str),
    "--port": ("port", re.compile(r"[0-9]{1,4}|[1-5][0-9]{4}"), int),
    "--env-file": ("env_file", _TEXT, Path),
    "--rate-limit": ("rate_limit", _NUMBER, int),
    "--seed": ("seed", _NUMBER, int),
}
"""Options with a value: the parameter, the texts that every version of Typer accepts, and their conversion."""

_FLAGS = {"--quiet": "quiet", "--allow-http-webhooks": "allow_http_webhooks"}


def plain_serve(arguments: Sequence[str]) -> Callable[[], None] | None:
    """Return the function that serves with these arguments, or None if Typer has to parse them.

    Args:
        arguments: the command line after ``serve``.
    """
    options: dict[str, Any] = {"host": DEFAULT_HOST, "port": DEFAULT_PORT, "env_file": None}
    remaining = iter(arguments)
    for argument in remaining:
        if argument in _FLAGS:
            options[_FLAGS[argument]] = True
            continue
        name, pattern, convert = _OPTIONS.get(argument, ("", _NUMBER, str))
        value = next(remaining, "")
        if not name or not pattern.fullmatch(value):
            return None
        options[name] = convert(value)
    from followup_mockserver.cli.serving import serve_until_stopped  # imported late: for a help page it is not needed

    return functools.partial(serve_until_stopped, **options)
