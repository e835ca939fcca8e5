"""The base class of both programs: how help is formatted, how errors are reported, and with which status they exit."""

import io
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from followup._redaction import visible
from followup.cli.exits import FAILURE, INTERRUPTED, USAGE, CommandFailed, UsageError
from followup.cli.lines import flush


def _without_types_of_flags(parameters: list[Any]) -> list[Any]:
    """Remove the ``<bool>`` that Typer writes after a flag, as if a value had to follow; an empty metavar hides it."""
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

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands, each with the whole first sentence of its help; Typer would cut it at the line's end."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, _summary(command.help)) for name, command in commands if command])


def _summary(text: str | None) -> str:
    return " ".join((text or "").partition("\n\n")[0].split())


class Application(typer.Typer):
    """A program, or a group of commands. Takes the options of ``typer.Typer``.

    Help is plain text: the boxes that Typer draws with rich cut option names and defaults on a narrow terminal.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(
            cls=_Group, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None, **options
        )

    def command(self, name: str | None = None, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:  # type: ignore[override]
        """Add the decorated function as a command. Takes the options of ``typer.Typer.command``."""
        return super().command(name, cls=_Command, **options)

    def run(self, arguments: Sequence[str] | None = None) -> NoReturn:
        """Run a command and exit the process with its status; an error is one line on standard error.

        Args:
            arguments: the command line; by default that of the process.
        """
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")  # a terminal that cannot write all characters
        message = ""
        try:
            status = self(arguments, prog_name=self.info.name, standalone_mode=False)
            flush()
        except typer.Abort:  # Ctrl-C, with older versions of Typer
            status = INTERRUPTED
        except UsageError as error:
            message, status = error.format_message(), USAGE  # the message is empty if the error has printed the help
        except CommandFailed as error:
            message, status = str(error), error.status
        except Exception as error:  # noqa: BLE001 - a user gets no traceback, whatever the error is
            message, status = _internal(error), FAILURE
        if message:
            sys.stderr.write(f"{self.info.name}: {visible(message)}\n")
        sys.exit(status)


def _internal(error: Exception) -> str:
    """Describe a bug by its type and place; the text of the error may contain a patient's data."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"internal error, please report it: {type(error).__name__} at {Path(place.filename).name}:{place.lineno}"
