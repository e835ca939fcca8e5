"""Lines on standard output: control characters are escaped, and a closed pipe is not an error."""

import errno
import os
import sys
from typing import Any, NoReturn


def write_line(text: str) -> None:
    """Write a line. The text must not contain control characters."""
    try:
        sys.stdout.write(text + "\n")
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

    from followup._redaction import visible

    text = json.dumps(value, ensure_ascii=False)
    if visible(text) != text:
        text = "".join(each if visible(each) == each else json.dumps(each)[1:-1] for each in text)
    try:
        text.encode(sys.stdout.encoding)
    except UnicodeEncodeError:  # standard output is not UTF-8
        return json.dumps(value)
    return text
