"""Lines on standard output. Control characters in them are escaped, and a reader who leaves is no error."""

import json
import os
import sys
from typing import Any, NoReturn

from followup._redaction import visible


def write_line(text: str) -> None:
    """Write a line, whose text must be harmless already."""
    try:
        sys.stdout.write(text + "\n")
    except BrokenPipeError:
        end_quietly()


def flush() -> None:
    """Write what is still in the buffer of standard output."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        end_quietly()


def end_quietly() -> NoReturn:
    """End the command with success, for whoever stopped reading, as ``head`` does, has what they wanted.

    Caught here, since Typer ends a command with status 1 for this.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(0)


def json_line(value: Any) -> str:
    """Return the value as JSON on one line that holds no control character and reads back as the same value."""
    text = json.dumps(value, ensure_ascii=False)
    if visible(text) != text:
        text = "".join(each if visible(each) == each else json.dumps(each)[1:-1] for each in text)
    try:
        text.encode(sys.stdout.encoding)
    except UnicodeEncodeError:  # standard output is not UTF-8
        return json.dumps(value)
    return text
