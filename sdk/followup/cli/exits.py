"""How a command ends: its exit status, and one line on standard error if it failed, which suggests what to do.

Needs neither Typer nor click.
"""

import errno
import io
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from followup.cli.output import discard_output, end_quietly, flush

if TYPE_CHECKING:
    from followup import APIStatusError, FollowUp

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


def fail(message: str, status: int = FAILURE) -> NoReturn:
    """End the command with a line on standard error.

    Raises:
        CommandFailed: always.
    """
    raise CommandFailed(message, status)


def reject(message: str) -> NoReturn:
    """End the command because its arguments are invalid, before anything is sent.

    Raises:
        CommandFailed: always.
    """
    raise CommandFailed(message, USAGE)


@contextmanager
def file_errors(doing: str) -> Iterator[None]:
    """Turn an error of a file into one line.

    Args:
        doing: what is done with the file, such as ``read events.csv``.

    Raises:
        CommandFailed: the operating system does not allow it.
    """
    try:
        yield
    except OSError as error:
        fail(f"cannot {doing}: {error.strerror}")


@contextmanager
def connected(
    *, requests_per_minute: int | None = None, options: Mapping[str, str] | None = None
) -> "Iterator[FollowUp]":
    """Create a client from the environment, and close it afterwards.

    Args:
        requests_per_minute: maximum number of requests in any 60 s; None for no limit.
        options: the options of the command, by the names of the parameters in JSON and in Python, for errors.

    Raises:
        CommandFailed: there is no key or base URL, or a call failed, or an argument is invalid; nothing was sent.
    """
    import followup  # imported late, because a help page needs no client

    try:
        with followup.FollowUp(requests_per_minute=requests_per_minute) as client:
            yield client
    except followup.ConfigurationError as error:
        fail(str(error).replace("pass api_key=..., or set", "set").replace("pass base_url=..., or set", "set"))
    except followup.AuthenticationError as error:
        fail(f"{error}. Check FOLLOWUP_API_KEY: it may be invalid, revoked, expired, or of another environment.")
    except followup.PermissionDeniedError as error:
        fail(f"{error}. Ask your organization for a key with this scope, or to enable the service line.")
    except followup.APIConnectionError as error:
        fail(f'{error}. Check FOLLOWUP_BASE_URL and the network: "followup doctor" finds out what is wrong.')
    except followup.APIStatusError as error:
        fail(_with_option(error, options or {}))
    except followup.FollowUpError as error:
        fail(str(error))
    except (ValueError, TypeError) as error:
        reject(_begun_with_option(str(error), options or {}))


def _with_option(error: "APIStatusError", options: Mapping[str, str]) -> str:
    """Return the text of an error, with the option for the invalid parameter, if the command has one."""
    param = error.param or ""
    option = options.get(re.split(r"[.\[]", param, maxsplit=1)[0])
    if option is None:
        return str(error)
    return str(error).replace(f"[param {param}]", f"[{option}]" if param.isalpha() else f"[{option}, {param}]")


def _begun_with_option(problem: str, options: Mapping[str, str]) -> str:
    """Return an error of the SDK, which begins with an argument, with the option instead."""
    problem = re.sub(r"^\w+\.\w+: (?=id )", "", problem)  # the operation, before the id in its path
    return re.sub(r"^\w+(?= )", lambda found: options.get(found[0], found[0]), problem)


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
