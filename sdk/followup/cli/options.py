"""Options of commands: those that many share, and those that are generated from annotated parameters."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime
from typing import Annotated, Any, get_args

import typer

from followup._annotations import IdPrefix
from followup._codec.names import bare, is_union, wire_fields
from followup.cli.exits import reject
from followup.cli.values import arms, kebab, literals, parts_of

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on a terminal, too.")]
"""The option ``--json``. A pipe gets JSON without it."""

Columns = Annotated[
    list[str] | None,
    typer.Option(
        metavar="LIST",
        help="Fields to show, in this order, separated by commas, such as id,external-id. Ids are then whole. JSON is "
        "limited to them, too.",
    ),
]
"""The option ``--columns``."""


def keyword(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    """Return a parameter of a generated command; without a default it is required."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


_LONGEST_LIST = 32
"""Characters of the values that stand for themselves in the help; for more of them, the name of the option does."""


def placeholder(name: str, annotation: Any) -> str | None:
    """Return what stands for the value of an option in its help, such as ID, TIME or ``api|pms``.

    Args:
        name: name of the parameter.
        annotation: its annotation.

    Returns:
        The placeholder; None if the type of the value says enough.
    """
    allowed = arms(annotation)
    if values := literals(annotation):
        listed = "|".join(values)
        return listed if len(listed) <= _LONGEST_LIST else name.rpartition("_")[2].upper()
    if _is_id(annotation):
        return "ID"
    if datetime in allowed:
        return "TIME"
    return "DATE" if date in allowed else None


def completing(annotation: Any) -> Callable[[str], list[str]] | None:
    """Return the function that completes the value of an option in a shell; None if its values are not enumerated."""
    values = literals(annotation)
    if not values:
        return None

    def complete(incomplete: str) -> list[str]:
        return [value for value in values if value.startswith(incomplete)]

    return complete


def _is_id(annotation: Any) -> bool:
    if any(isinstance(each, IdPrefix) for each in getattr(annotation, "__metadata__", ())):
        return True
    annotation = bare(annotation)
    return is_union(annotation) and any(map(_is_id, get_args(annotation)))


def with_values(text: str, annotation: Any) -> str:
    """Return the help of an option, with the values that its annotation enumerates, unless the help names them."""
    values = literals(annotation)
    for value in values:
        text = text.replace(kebab(value), value)  # wrong_signature in a docstring is no name of an option
    if all(value in text.lower() for value in values):
        return text
    return f"{text} One of {', '.join(values)}.".strip()


def chosen_columns(texts: Iterable[str], kind: type[Any], extra: Sequence[str] = ()) -> list[str]:
    """Return the names in the values of ``--columns``, as in JSON.

    Args:
        texts: the values. ``external-id``, ``external_id`` and ``externalId`` are the same field.
        kind: the class of the objects, whose fields can be columns.
        extra: further columns.

    Raises:
        UsageError: there is no such field, or none is named.
    """
    known = [*wire_fields(kind).values(), *extra]
    spellings = {_spelling(name): name for name in known}
    names = parts_of(texts)
    unknown = [name for name in names if _spelling(name) not in spellings]
    if unknown or not names:
        problem = f"there is no column {unknown[0]}" if unknown else "it names no column"
        reject(f"--columns: {problem}; the columns are {', '.join(known)}")
    return list(dict.fromkeys(spellings[_spelling(name)] for name in names))


def _spelling(name: str) -> str:
    return name.replace("-", "").replace("_", "").lower()
