"""The command line of ``serve``, parsed without Typer.

Importing Typer, and with its newer versions pydantic, takes as long as importing the mock itself, and a CI job or a
test run waits for the mock. So a command line that consists of known options with plain values is parsed here. Typer
parses every other one. It prints the help and all errors, so this module has no messages of its own.
"""

import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from followup._for_mockserver import annotations_of
from followup.cli.exits import UsageError
from followup.cli.values import flags_of, kebab, kind_of_option, value_of_option
from followup_mockserver.cli.remote import DEFAULT_HOST, DEFAULT_PORT, MAX_PORT
from followup_mockserver.settings.options import MockOptions, Options

_PLAIN_VALUES = {
    int: re.compile(r"[0-9]{1,9}"),
    float: re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?"),
    # No character that Typer expands in an argument on Windows: a home folder, a variable, a pattern of file names.
    str: re.compile(r"[\w/\\:.,@+][\w/\\:.,@+ =&-]*"),
}
"""The values of each type that every version of Typer accepts and converts in the same way."""


def plain_serve(arguments: Sequence[str]) -> Callable[[], None] | None:
    """Return the function that serves with these arguments, or None if Typer has to parse them.

    Args:
        arguments: the command line after ``serve``.
    """
    options = plain_options(arguments)
    if options is None:
        return None
    from followup_mockserver.cli.serving import serve_until_stopped  # imported late: for a help page it is not needed

    return functools.partial(serve_until_stopped, **options)


def plain_options(arguments: Sequence[str]) -> dict[str, Any] | None:
    """Return the arguments of ``serve_until_stopped`` for a command line, or None if Typer has to parse it.

    Args:
        arguments: the command line after ``serve``.
    """
    annotations = {"host": str, "port": int, "env_file": str, "quiet": bool, **annotations_of(MockOptions)}
    options: dict[str, Any] = {"host": DEFAULT_HOST, "port": DEFAULT_PORT, "env_file": None, "quiet": False}
    try:
        for name, value in _parsed(arguments, annotations):
            converted = value_of_option(name, annotations[name], value)
            options[name] = options.get(name, []) + converted if isinstance(converted, list) else converted
    except (_NotPlain, UsageError):
        return None
    if options["port"] > MAX_PORT:
        return None
    if options["env_file"] is not None:
        options["env_file"] = Path(options["env_file"])
    return options


class _NotPlain(Exception):
    """Typer has to parse this command line."""


def _parsed(arguments: Sequence[str], annotations: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Iterate over the options of a command line: the name of each, and its value.

    Raises:
        _NotPlain: Typer has to parse the command line.
    """
    kinds = {name: kind_of_option(annotation) for name, annotation in annotations.items()}
    defaults = Options()
    flags = {
        flag: (name, value)
        for name, kind in kinds.items()
        if kind is bool
        for flag, value in flags_of(name, getattr(defaults, name, False)).items()
    }
    with_value = {f"--{kebab(name)}": name for name, kind in kinds.items() if kind is not bool}
    remaining = iter(arguments)
    for argument in remaining:
        option, equals, value = argument.partition("=")
        if argument in flags:
            yield flags[argument]
        elif option in with_value:
            name = with_value[option]
            yield name, _converted(kinds[name], value if equals else next(remaining, ""))
        else:
            raise _NotPlain


def _converted(kind: Any, text: str) -> Any:
    kind = kind if kind in _PLAIN_VALUES else str
    if not _PLAIN_VALUES[kind].fullmatch(text):
        raise _NotPlain
    return kind(text)
