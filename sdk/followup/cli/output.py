"""What a command writes, and how it ends: its exit status, and one line on standard error if it failed.

Needs neither Typer nor click, and imports late what a help page does not need. A closed pipe is no error.
"""

import errno
import io
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from followup import APIStatusError, FollowUp


def write_line(text: str, *, end: str = "\n") -> None:
    """Write a line, or a part of one. The text must not contain control characters."""
    try:
        sys.stdout.write(text + end)
    except OSError as error:
        _end_if_closed(error)


def flush() -> None:
    """Flush standard output."""
    try:
        sys.stdout.flush()
    except OSError as error:
        _end_if_closed(error)


def _end_if_closed(error: OSError) -> NoReturn:
    if not isinstance(error, BrokenPipeError) and error.errno != errno.EINVAL:  # which Windows has for a closed pipe
        raise error
    end_quietly()


def end_quietly() -> NoReturn:
    """Exit with success after the reader closed the pipe, as ``head`` does once it has enough lines.

    The error is caught here because Typer would exit with status 1.
    """
    discard_output()
    sys.exit(0)


def discard_output() -> None:
    """Discard what is in the buffer of standard output; otherwise Python would write it at its end, and fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def json_line(value: Any) -> str:
    """Encode the value as one line of JSON without control characters; decoding it returns the same value."""
    # Imported late, because help pages need neither.
    import json

    from followup._core.privacy.redaction import visible

    text = json.dumps(value, ensure_ascii=False)
    if visible(text) != text:
        text = "".join(each if visible(each) == each else json.dumps(each)[1:-1] for each in text)
    try:
        text.encode(sys.stdout.encoding)
    except UnicodeEncodeError:  # standard output is not UTF-8
        return json.dumps(value)
    return text


def write_private_file(path: Path, text: str, *, keeps_mode: bool = False) -> None:
    """Write a file atomically; only its owner, who stays the same, can read it.

    A process that waits for the file sees all of it or none. A symbolic link is followed.

    Args:
        path: path of the file.
        text: its text.
        keeps_mode: whether a file that exists keeps its mode.

    Raises:
        OSError: the file cannot be written, or the path is not a regular file.
    """
    import tempfile

    target = Path(os.path.realpath(path))
    _check_replaceable(target)
    # mkstemp, because its file is readable by its owner alone from the start.
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as stream:  # shells read it on Windows too
            stream.write(text)
        before = target.stat() if target.exists() else temporary.stat()
        if before.st_uid != temporary.stat().st_uid:  # root writes the file of another user
            os.chown(temporary, before.st_uid, before.st_gid)
        if keeps_mode:
            temporary.chmod(before.st_mode)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _check_replaceable(target: Path) -> None:
    # Before anything is opened, because opening a FIFO blocks until its other end is opened.
    if target.is_symlink() or (target.exists() and not target.is_file()):  # a link to itself is still one
        raise OSError(errno.EINVAL, "it is not a regular file")
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "permission denied")


def say(text: str) -> None:
    """Print a line."""
    from followup._core.privacy.redaction import visible
    from followup.cli.texts import with_verdict

    write_line(with_verdict(visible(text)))


def say_wrapped(head: str, *sentences: str, between: str = " ") -> None:
    """Print sentences after a head: on a terminal each from a new line on, in lines that fit; else in one line.

    Args:
        head: what the first line begins with. The others are indented by its length.
        sentences: the sentences.
        between: what separates them in one line.
    """
    if not sys.stdout.isatty():
        say(head + between.join(sentences))
        return
    for sentence in sentences:
        for line in fitting(sentence, terminal_width() - len(head)):
            say(head + line)
            head = " " * len(head)


def terminal_width() -> int:
    """Return the number of columns of the terminal."""
    import shutil

    return shutil.get_terminal_size().columns


def fitting(text: str, width: int, indent: str = "") -> list[str]:
    """Return a text as lines of at most this width, broken between words; all but the first are indented."""
    import textwrap

    return textwrap.wrap(text, max(width, 20), subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def remark(text: str) -> None:
    """Print a hint for a person: on standard error, and only if that is a terminal."""
    if sys.stderr.isatty():
        warn(text)


def warn(text: str) -> None:
    """Print what a reader of the output has to know, on standard error; on a terminal in lines that fit."""
    from followup._core.privacy.redaction import visible

    lines = fitting(visible(text), terminal_width()) if sys.stderr.isatty() else [visible(text)]
    sys.stderr.write("\n".join(lines) + "\n")


def show_one(fields: Mapping[str, Any], *, as_json: bool) -> None:
    """Print an object: on a terminal one line for each field, else JSON."""
    if as_json or not sys.stdout.isatty():
        write_line(json_line(fields))
        return
    from followup.cli.tables import print_one  # imported late, because rich is slow to import

    print_one(fields)


def limited_to(names: Iterable[str] | None, row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return only these fields of an object, in this order, with null for one that it lacks; None: all fields."""
    return row if names is None else {name: row.get(name) for name in names}


FAILURE = 1
USAGE = 2
INTERRUPTED = 130

EXIT_STATUS = "Exit status: 0 OK, 1 failed, 2 invalid arguments (nothing sent), 130 Ctrl-C."
"""The end of the help of a program."""


class CommandFailed(Exception):
    """The command failed; the text is what its user reads.

    Attributes:
        status: the exit status.
        code: the code of the error response; empty if there was none.
    """

    def __init__(self, message: str, status: int = FAILURE, code: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.code = code


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
        foreign = error.type is None and error.code is None and error.status_code < 500
        hint = '. This may be no response of the service: "followup doctor" finds out what is at FOLLOWUP_BASE_URL.'
        fail(_with_option(error, options or {}) + (hint if foreign else ""))
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
        warn(f"{name}: {message}")
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
