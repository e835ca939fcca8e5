"""The output of commands: tables on a terminal, JSON Lines with ``--json`` or in a pipe; a closed pipe is no error.

What encodes objects and draws tables is imported late: a help page needs neither, and a pipe no tables.
"""

import errno
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from followup._results.results import Model


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


def write_private_file(path: Path, text: str) -> None:
    """Write a file atomically; only its owner can read it.

    A process that waits for the file sees all of it or none. A symbolic link is followed.

    Args:
        path: path of the file.
        text: its text.

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
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
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
    from followup._redaction import visible

    write_line(visible(text))


def say_wrapped(head: str, *sentences: str, between: str = " ") -> None:
    """Print sentences after a head: on a terminal each from a new line on, in lines that fit; else in one line.

    Args:
        head: what the first line begins with. The others are indented by its length.
        sentences: the sentences.
        between: what separates them in one line.
    """
    import shutil
    import textwrap

    if not sys.stdout.isatty():
        say(head + between.join(sentences))
        return
    width = max(shutil.get_terminal_size().columns - len(head), 20)
    for sentence in sentences:
        for line in textwrap.wrap(sentence, width, break_long_words=False, break_on_hyphens=False):
            say(head + line)
            head = " " * len(head)


def remark(text: str) -> None:
    """Print a hint for a person: on standard error, and only if that is a terminal."""
    if sys.stderr.isatty():
        warn(text)


def warn(text: str) -> None:
    """Print what a reader of the output has to know, on standard error."""
    from followup._redaction import visible

    sys.stderr.write(visible(text) + "\n")


def show_one(result: "Model", *, as_json: bool) -> None:
    """Print an object."""
    from followup._codec.encode import encode

    if as_json or not sys.stdout.isatty():
        write_line(json_line(encode(result)))
        return
    from followup.cli.tables import print_one

    print_one(result)


def show_many(results: "Iterable[Model]", *, as_json: bool, columns: Sequence[str] | None = None) -> None:
    """Print objects: as JSON Lines one by one, or as a table once all have arrived.

    Args:
        results: the objects.
        as_json: whether to print JSON on a terminal, too.
        columns: the fields to print; None: all in JSON, and the most important ones in a table.
    """
    from followup._codec.encode import encode

    if as_json or not sys.stdout.isatty():
        for result in results:
            write_line(json_line(limited_to(columns, encode(result))))
        return
    from followup.cli.tables import print_many

    print_many([*results], columns)


def show_rows(
    rows: Sequence[Mapping[str, Any]],
    as_json: bool,
    *,
    columns: Sequence[str] | None = None,
    chosen: Sequence[str] | None = None,
    wrap: bool = False,
    wrapped: str | None = None,
    whole: object = None,
    title: str | None = None,
    nothing: str = "No results.",
) -> None:
    """Print rows as a table, with times as they are, or as JSON Lines.

    Args:
        rows: the rows.
        as_json: whether to print JSON on a terminal, too.
        columns: the columns of the table, the most important first; by default all. Those without a value in any row
            are omitted.
        chosen: the fields to print instead, in a table and in JSON.
        wrap: whether long cells are wrapped; by default, only the columns that fit side by side are shown.
        wrapped: the only column whose cells are wrapped, among those that fit.
        whole: the value to print as one line of JSON instead of the rows.
        title: a line above the table.
        nothing: the line that is printed if there are no rows; may be empty.
    """
    if as_json or not sys.stdout.isatty():
        for value in (limited_to(chosen, row) for row in rows) if whole is None else (whole,):
            write_line(json_line(value))
        return
    from followup.cli.tables import print_rows

    if title is not None:
        say(title)
    if not rows:
        if nothing:
            say(nothing)
        return
    filled = [name for name in columns or list(rows[0]) if any(row.get(name) for row in rows)]
    print_rows(rows, chosen or filled, all_of_them=chosen is not None or wrap, wrapped=wrapped)


def limited_to(names: Iterable[str] | None, row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return only these fields of an object, in this order, with null for one that it lacks; None: all fields."""
    return row if names is None else {name: row.get(name) for name in names}
