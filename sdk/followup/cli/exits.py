"""How a command ends: its exit status, and one line on standard error if it failed. Needs neither Typer nor click."""

import io
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from followup.cli.lines import flush

FAILURE = 1
USAGE = 2
INTERRUPTED = 130

EXIT_STATUS = (
    "Exit status: 0 on success, 1 if the command failed, 2 if its arguments are invalid (nothing was sent), "
    "130 if it was interrupted with Ctrl-C."
)
"""The end of the help of a program."""


class CommandFailed(Exception):
    """The command failed; the text is what its user reads.

    Attributes:
        status: the exit status.
    """

    def __init__(self, message: str, status: int = FAILURE) -> None:
        super().__init__(message)
        self.status = status


class UsageError(CommandFailed):
    """The arguments of the command are invalid; nothing was sent."""

    def __init__(self, message: str) -> None:
        super().__init__(message, USAGE)


def fail(message: str, status: int = FAILURE) -> NoReturn:
    """End the command with a line on standard error.

    Raises:
        CommandFailed: always.
    """
    raise CommandFailed(message, status)


def reject(message: str) -> NoReturn:
    """End the command because its arguments are invalid, before anything is sent.

    Raises:
        UsageError: always.
    """
    raise UsageError(message)


def run_program(name: str, command: Callable[[], Any]) -> NoReturn:
    """Run a command and exit the process with its status; an error is one line on standard error.

    Args:
        name: the name of the program, which the line begins with.
        command: the command; returns the exit status, or None for success.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal that cannot write all characters
    message = ""
    try:
        status = command()
        flush()
    except CommandFailed as error:
        message, status = str(error), error.status
    except Exception as error:  # noqa: BLE001 - a user gets no traceback, whatever the error is
        message, status = _internal(error), FAILURE
    if message:
        from followup._redaction import visible  # imported late, as most commands need no message

        sys.stderr.write(f"{name}: {visible(message)}\n")
    sys.exit(status)


def _internal(error: Exception) -> str:
    """Describe a bug by its type and place; the text of the error may contain a patient's data."""
    import traceback
    from pathlib import Path

    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"internal error, please report it: {type(error).__name__} at {Path(place.filename).name}:{place.lineno}"
