"""How a command ends: its exit status, and one line on standard error if it failed. Needs neither Typer nor click."""

import errno
import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from followup.cli.lines import discard_output, end_quietly, flush

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
    _replace_closed_streams()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal that cannot write all characters
    message = ""
    try:
        status = command()
        flush()
    except CommandFailed as error:
        message, status = str(error), error.status
    except BrokenPipeError:
        end_quietly()
    except OSError as error:
        message, status = _problem_of(error), FAILURE
    except Exception as error:  # noqa: BLE001 - a user gets no traceback, whatever the error is
        message, status = _internal(error), FAILURE
    if message:
        from followup._redaction import visible  # imported late, as most commands need no message

        sys.stderr.write(f"{name}: {visible(message)}\n")
    sys.exit(status)


def _replace_closed_streams() -> None:
    """Open a stream that the caller has closed, as ``command >&-`` does. Python leaves None in its place."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - it stays open


def _problem_of(error: OSError) -> str:
    """Describe an error of the operating system; without a file, it concerns standard output, whose disk is full."""
    if error.errno not in (errno.ENOSPC, errno.EIO, errno.EFBIG, errno.EDQUOT) or error.filename is not None:
        return _internal(error)
    discard_output()
    return f"cannot write the output: {error.strerror}"


def _internal(error: Exception) -> str:
    """Describe a bug by its type and place; the text of the error may contain a patient's data."""
    import traceback

    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"internal error, please report it: {type(error).__name__} at {Path(place.filename).name}:{place.lineno}"
