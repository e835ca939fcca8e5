"""What a command writes, and how it ends: its exit status, and one line on standard error if it failed.

Needs neither Typer nor click, and imports late what a help page does not need. A closed pipe is no error.
"""

import errno
import io
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from datetime import datetime

    from followup import APIStatusError, FollowUp


def write_line(text: str, *, end: str = "\n") -> None:
    """Write a line, or a part of one. The text must not contain control characters."""
    with _quiet_end():
        sys.stdout.write(text + end)


def flush() -> None:
    """Flush standard output."""
    with _quiet_end():
        sys.stdout.flush()


@contextmanager
def _quiet_end() -> Iterator[None]:
    """Exit with success if the reader has closed the pipe, as ``head`` does once it has enough lines.

    The error is caught here because Typer would exit with status 1.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.EINVAL):  # Windows has the second one for a closed pipe
            raise
        _discard_output()
        sys.exit(0)


def _discard_output() -> None:
    """Discard what is in the buffer of standard output; otherwise Python would write it at its end, and fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def json_line(value: Any) -> str:
    """Encode the value as one line of JSON without control characters; decoding it returns the same value."""
    import json  # imported late, as the next ones, because help pages need none of them
    import locale

    from followup._core.redaction import visible

    text = json.dumps(value, ensure_ascii=False)
    encodings = {sys.stdout.encoding.lower()}
    if not sys.stdout.isatty():  # PowerShell decodes what is in a pipe, with an encoding that is not UTF-8
        encodings.add(locale.getencoding().lower())
    if visible(text) == text and encodings <= {"utf-8", "utf8"}:
        return text
    return json.dumps(value).replace("\x7f", "\\u007f")  # which JSON allows


def write_private_file(path: Path, text: str) -> None:
    """Write a file atomically, which only its owner can read.

    A process that waits for the file sees all of it or none. A symbolic link is followed.

    Args:
        path: path of the file.
        text: its text.

    Raises:
        OSError: the file cannot be written, or the path is not a regular file.
    """
    import tempfile

    target = Path(os.path.realpath(path))
    if target.is_symlink() or (target.exists() and not target.is_file()):  # a link to itself is still one
        raise OSError(errno.EINVAL, "it is not a regular file")
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "permission denied")
    # mkstemp, because its file is readable by its owner alone from the start.
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as stream:  # shells read it on Windows too
            stream.write(text)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def say(text: str) -> None:
    """Print a line."""
    from followup._core.redaction import visible

    write_line(_with_verdict(visible(text)))


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
    from followup._core.redaction import visible

    lines = fitting(visible(text), terminal_width()) if sys.stderr.isatty() else [visible(text)]
    sys.stderr.write("\n".join(lines) + "\n")


_ID = r"\b([a-z]+_(?=[a-z]*[A-Z0-9])[A-Za-z0-9]{4})[A-Za-z0-9]{4,}([A-Za-z0-9]{4})\b"
"""An id, and its parts that are shown where there is little room. in_conversation is a stage, not an id."""

_TIMESTAMP = r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"

_VERDICT = "[A-Z]{2,}( [A-Z]{2,})?"

_STYLES = {
    **dict.fromkeys(("OK", "PASS", "succeeded", "processed", "delivered", "done", "enabled"), "green"),
    **dict.fromkeys(("WARN", "NOT SEEN", "pending", "duplicate", "held", "stopped", "mock differs"), "yellow"),
    **dict.fromkeys(("FAIL", "failed", "failing", "dead", "invalid", "disabled", "breaking", "---"), "red"),
    "muted": "dim",
}
"""The styles of states and verdicts, by the names that rich has for them."""

_CODES = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33}


def style_of(state: str) -> str:
    """Return the style of a state, a verdict or an HTTP status; empty for any other text."""
    if re.fullmatch("[1-5][0-9][0-9]", state):
        return "green" if state < "300" else "yellow" if state < "500" else "red"
    return _STYLES.get(state.strip(), "")


def painted(text: str, style: str) -> str:
    """Return a text in a style for standard output, if that shows styles: see no-color.org and force-color.org."""
    if os.environ.get("NO_COLOR") or not (text and style):
        return text
    is_smart = sys.stdout.isatty() and os.environ.get("TERM", "").lower() not in ("dumb", "unknown")
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if is_smart or os.environ.get("FORCE_COLOR") else text


def _with_verdict(line: str) -> str:
    """Return a line with the verdict that it begins with, such as ``NOT SEEN``, in its style."""
    found = re.match(_VERDICT, line)
    return painted(found[0], style_of(found[0])) + line[found.end() :] if found else line


def short_ids(text: str) -> str:
    """Return a text with its ids shortened, such as ``pat_3fKq…9XbA``."""
    return re.sub(_ID, r"\1…\2", text)


def zone_at(text: str) -> str | None:
    """Return the name of the local time zone at a timestamp of the API; None for any other text."""
    return zone_of(_local(text)) if re.fullmatch(_TIMESTAMP, text) else None


def _local(text: str) -> "datetime":
    from followup._core.codec.wire import parse_timestamp

    return local_time(parse_timestamp(text))


def local_time(time: "datetime") -> "datetime":
    """Return an aware time in the local time zone; unchanged where the system cannot convert it."""
    from followup._core.package_data import zone_of as zone_named

    zone = None
    with suppress(KeyError, ValueError, OSError):  # the C library of Windows does not know the zone that TZ names
        zone = zone_named(os.environ["TZ"].lstrip(":"))
    try:
        return time.astimezone(zone)
    except (OverflowError, ValueError, OSError):  # at either end of the calendar; on Windows, also before 1970
        return time


def with_local_times(text: str, zone: str | None = None, *, live: bool = False) -> str:
    """Return a text with its times in the local time zone.

    Args:
        text: the text, with timestamps of the API.
        zone: the name of the time zone that the reader assumes. A time at which another one applies, such as after a
            change of the clocks, names its own.
        live: whether the text tells what has just happened: then times are to the second, else to the minute.
    """
    shape = "%Y-%m-%d %H:%M:%S" if live else "%Y-%m-%d %H:%M"

    def local(found: re.Match[str]) -> str:
        time = _local(found[0])
        own = zone_of(time)
        return time.strftime(shape) + ("" if own == zone else f" {own}")

    return re.sub(_TIMESTAMP, local, text)


def zone_of(time: "datetime") -> str:
    """Return the name of the time zone of an aware time, such as CET, or UTC-3 for a zone without a short name."""
    name = time.tzname() or ""
    if name.isalpha():  # Windows has long ones, such as Argentina Standard Time
        return name
    minutes = round((time.utcoffset() or time - time).total_seconds() / 60)
    hours, rest = divmod(abs(minutes), 60)
    return f"UTC{'-' if minutes < 0 else '+'}{hours}" + (f":{rest:02}" if rest else "")


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


def interrupt_on_signals() -> None:
    """Let each signal that asks this process to end raise ``KeyboardInterrupt``, so that a command cleans up."""
    import signal

    from followup._core.threads import stop_signals

    for number in stop_signals():
        signal.signal(number, signal.default_int_handler)


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

    # In this order: a ConfigurationError is a ValueError, too, and 401 and 403 are an APIStatusError.
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
        # The service's own errors have a type or a code (section 7); those of a web server in its place have neither.
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
        command: the command; returns the exit status, or exits with it.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # UTF-8 for other programs, as everywhere since Python 3.15
            is_chosen = stream.isatty() or "PYTHONIOENCODING" in os.environ
            stream.reconfigure(encoding=None if is_chosen else "utf-8", errors="backslashreplace")
    try:
        try:
            status = command()
        except SystemExit as ended:
            status = ended.code
        flush()  # here, because a full disk at the end of Python is a traceback
        sys.exit(status)
    except CommandFailed as error:
        message, status = str(error), error.status
    except Exception as error:  # noqa: BLE001 - a user gets no traceback, whatever the error is
        message, status = _internal(error), FAILURE
        if isinstance(error, OSError) and error.errno == errno.ENOSPC and error.filename is None:
            _discard_output()
            message = f"cannot write the output: {error.strerror}"
    if message:
        warn(f"{name}: {message}")
    sys.exit(status)


def _internal(error: Exception) -> str:
    """Describe a bug by its type and place; the text of the error may contain a patient's data."""
    import traceback

    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"internal error, please report it: {type(error).__name__} at {Path(place.filename).name}:{place.lineno}"
