"""The base of the commands: how help looks, how a mistake is reported, and how a command ends."""

import io
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from followup._redaction import visible
from followup.cli.lines import flush

_UsageError: Any = typer.BadParameter.__base__
"""What every mistake on the command line is. Typer has it from click, or from its own copy of click: newer versions."""

_USAGE = 2
"""Exit status, as of other commands."""


def _without_types_of_flags(parameters: list[Any]) -> list[Any]:
    """Typer writes ``<bool>`` after a flag, as if a value had to follow it; an empty metavar shows nothing."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False) and parameter.metavar is None:
            parameter.metavar = ""
    return parameters


class _Command(TyperCommand):
    def get_params(self, ctx: Any) -> list[Any]:
        return _without_types_of_flags(super().get_params(ctx))


class _Group(TyperGroup):
    def get_params(self, ctx: Any) -> list[Any]:
        return _without_types_of_flags(super().get_params(ctx))


class Application(typer.Typer):
    """A command, or a group of commands. Takes the options of ``typer.Typer``."""

    def __init__(self, **options: Any) -> None:
        super().__init__(cls=_Group, add_completion=False, pretty_exceptions_enable=False, **options)

    def command(self, name: str | None = None, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:  # type: ignore[override]
        """Add the decorated function as a command. Takes the options of ``typer.Typer.command``."""
        return super().command(name, cls=_Command, **options)

    def run(self) -> NoReturn:
        """Run the command that the arguments of the process name, and end the process with its status.

        A mistake on the command line is one clear line on standard error.
        """
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")  # a terminal that cannot write all characters
        try:
            status = self(standalone_mode=False)
            flush()
        except typer.Abort:  # Ctrl-C
            status = 1
        except _UsageError as mistake:
            if text := mistake.format_message():  # the one without a text has printed the help
                sys.stderr.write(f"{self.info.name}: {visible(text)}\n")
            status = _USAGE
        sys.exit(status)
