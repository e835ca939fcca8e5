"""The option ``--columns`` of lists: the fields to show, in their order."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import typer

from followup._codec.names import wire_fields
from followup.cli.exits import reject
from followup.cli.values import parts_of

Columns = Annotated[
    list[str] | None,
    typer.Option(
        metavar="LIST",
        help="Fields to show, in this order, separated by commas, such as id,external-id. Ids are then whole. JSON is "
        "limited to them, too.",
    ),
]
"""The option ``--columns``."""


def chosen_columns(texts: Iterable[str], kind: type[Any]) -> list[str]:
    """Return the names in the values of ``--columns``, as in JSON.

    Args:
        texts: the values. ``external-id``, ``external_id`` and ``externalId`` are the same field.
        kind: the class of the objects, whose fields can be columns.

    Raises:
        UsageError: there is no such field, or none is named.
    """
    known = [*wire_fields(kind).values()]
    spellings = {_spelling(name): name for name in known}
    names = parts_of(texts)
    unknown = [name for name in names if _spelling(name) not in spellings]
    if unknown or not names:
        problem = f"there is no column {unknown[0]}" if unknown else "it names no column"
        reject(f"--columns: {problem}; the columns are {', '.join(known)}")
    return list(dict.fromkeys(spellings[_spelling(name)] for name in names))


def limited_to(names: Iterable[str] | None, row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return only these fields of an object, in this order, with null for one that it lacks; None: all fields."""
    return row if names is None else {name: row.get(name) for name in names}


def _spelling(name: str) -> str:
    return name.replace("-", "").replace("_", "").lower()
