"""``--clear FIELD``: how an update empties a field. No value of the field's own option means that."""

from collections.abc import Collection, Iterable, Mapping
from types import NoneType
from typing import Annotated, Any, get_args

import typer

from followup._declarations import Declaration, Parameter
from followup.cli.output import fail


def clear_option(declaration: Declaration) -> Any:
    """The annotation of ``--clear``; None for an operation that can clear nothing."""
    names = _clearable(declaration)
    if not names:
        return None
    text = f"Empty this field, one of {', '.join(map(_kebab, names))}. Repeat it for several."
    return Annotated[list[str] | None, typer.Option(metavar="FIELD", help=text)]


def cleared(declaration: Declaration, fields: Iterable[str], changed: Collection[str]) -> Mapping[str, None]:
    """The arguments that clear these fields.

    Args:
        declaration: the operation.
        fields: what was typed after ``--clear``, spelled as the option, the argument or the field on the wire.
        changed: names of the arguments that the command sets.
    """
    clearable = _clearable(declaration)
    spellings = {
        spelling: name
        for name, parameter in clearable.items()
        for spelling in (name, _kebab(name), parameter.wire_name)
    }
    found: dict[str, None] = {}
    for field in fields:
        name = spellings.get(field)
        if name is None:
            fail(f"--clear {field}: what can be cleared is {', '.join(map(_kebab, clearable))}")
        if name in changed:
            fail(f"--clear {field} and --{_kebab(name)} exclude each other")
        found[name] = None
    return found


def _clearable(declaration: Declaration) -> dict[str, Parameter]:
    """The fields that an update may set to null (specification, section 4), by the names of their arguments."""
    if declaration.method != "PATCH":
        return {}
    return {each.name: each for each in declaration.parameters if NoneType in get_args(each.annotation)}


def _kebab(name: str) -> str:
    return name.replace("_", "-")
