"""The output of commands: tables on a terminal, JSON Lines with ``--json`` or in a pipe."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from followup._codec.encode import encode
from followup._redaction import visible
from followup._results.results import Model
from followup.cli.lines import json_line, write_line


def say(text: str) -> None:
    """Print a line."""
    write_line(visible(text))


def remark(text: str) -> None:
    """Print a hint for a person: on standard error, and only if that is a terminal."""
    if sys.stderr.isatty():
        warn(text)


def warn(text: str) -> None:
    """Print what a reader of the output has to know, on standard error."""
    sys.stderr.write(visible(text) + "\n")


def show_one(result: Model, *, as_json: bool) -> None:
    """Print an object."""
    if as_json or not sys.stdout.isatty():
        write_line(json_line(encode(result)))
        return
    from followup.cli.tables import print_one  # imported late, because a pipe and a help page need no tables

    print_one(result)


def show_many(results: Iterable[Model], *, as_json: bool, columns: Sequence[str] | None = None) -> None:
    """Print objects: as JSON Lines one by one, or as a table once all have arrived.

    Args:
        results: the objects.
        as_json: whether to print JSON on a terminal, too.
        columns: the fields to print; None: all in JSON, and the most important ones in a table.
    """
    if as_json or not sys.stdout.isatty():
        for result in results:
            write_line(json_line(limited_to(columns, encode(result))))
        return
    from followup.cli.tables import print_many

    print_many([*results], columns)


def show_rows(rows: Sequence[Mapping[str, Any]], *, as_json: bool) -> None:
    """Print rows that have the same keys: as JSON Lines, or as a table."""
    if as_json or not sys.stdout.isatty():
        for row in rows:
            write_line(json_line(row))
        return
    from rich.console import Console

    from followup.cli.tables import table_of

    if rows:
        Console().print(table_of(rows, [*rows[0]]))
    else:
        say("None.")


def limited_to(names: Iterable[str] | None, row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return only these fields of an object, in this order, with null for one that it lacks; None: all fields."""
    return row if names is None else {name: row.get(name) for name in names}
