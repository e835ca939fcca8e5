"""The option ``--clear FIELD`` of updates, which sets a field to null. No value of the field's own option can do so."""

from collections.abc import Collection, Iterable, Mapping
from types import NoneType
from typing import Annotated, Any, get_args

import typer

from followup._declarations import Declaration, Parameter
from followup.cli.exits import reject
from followup.cli.values import kebab, parts_of


def clear_option(declaration: Declaration) -> Any:
    """Return the annotation of ``--clear``; None for an operation without a field that can be cleared."""
    names = _clearable(declaration)
    if not names:
        return None
    text = f"Fields to clear, of {', '.join(map(kebab, names))}. Separated by commas; the option can be repeated."
    return Annotated[list[str] | None, typer.Option(metavar="FIELD", help=text)]


def cleared(declaration: Declaration, fields: Iterable[str], changed: Collection[str]) -> Mapping[str, None]:
    """Return the arguments that clear these fields.

    Args:
        declaration: the operation.
        fields: the values of ``--clear``, spelled as the option, the argument or the field in JSON.
        changed: names of the arguments that the command sets.

    Raises:
        UsageError: a field cannot be cleared, or is also set.
    """
    clearable = _clearable(declaration)
    spellings = {
        spelling: name for name, parameter in clearable.items() for spelling in (name, kebab(name), parameter.wire_name)
    }
    found: dict[str, None] = {}
    for field in parts_of(fields):
        name = spellings.get(field)
        if name is None:
            reject(f"--clear {field}: only these fields can be cleared: {', '.join(map(kebab, clearable))}")
        if name in changed:
            reject(f"--clear {field} and --{kebab(name)} cannot be combined")
        found[name] = None
    return found


def _clearable(declaration: Declaration) -> dict[str, Parameter]:
    """Return the fields that an update may set to null (specification, section 4), by the names of their arguments."""
    if declaration.method != "PATCH":
        return {}
    return {each.name: each for each in declaration.parameters if NoneType in get_args(each.annotation)}
