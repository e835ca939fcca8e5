"""How a command ends: its exit status, and one line on standard error if it failed."""

from typing import Any, NoReturn

import typer

FAILURE = 1
USAGE = 2
INTERRUPTED = 130

EXIT_STATUS = (
    "Exit status: 0 on success, 1 if the command failed, 2 if its arguments are invalid (nothing was sent), "
    "130 if it was interrupted with Ctrl-C."
)
"""The end of the help of a program."""

UsageError: Any = typer.BadParameter.__base__
"""The base class of every error in the arguments. Newer versions of Typer bring their own copy of click, which it
comes from."""


class CommandFailed(Exception):
    """The command failed; the text is what its user reads.

    Attributes:
        status: the exit status.
    """

    def __init__(self, message: str, status: int = FAILURE) -> None:
        super().__init__(message)
        self.status = status


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
