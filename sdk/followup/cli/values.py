"""The values that an option takes, according to the annotation of its parameter. Needs neither Typer nor click."""

import itertools
import json
from typing import Any, Literal, get_args, get_origin

from followup import NotGiven
from followup._codec.names import bare, is_union
from followup.cli.exits import reject


def kebab(name: str) -> str:
    """Return a name as the command line spells it: ``start_at_gte`` becomes ``start-at-gte``."""
    return name.replace("_", "-")


def arms(annotation: Any) -> list[Any]:
    """Return the types that an annotation allows, except None and the type of an omitted argument."""
    annotation = bare(annotation)
    if not is_union(annotation):
        return [annotation]
    found = itertools.chain.from_iterable(arms(arm) for arm in get_args(annotation))
    return [arm for arm in found if arm not in (NotGiven, type(None))]


def literals(annotation: Any) -> list[str]:
    """Return the values that an annotation allows, if it enumerates them."""
    values = (get_args(arm) for arm in arms(annotation) if get_origin(arm) is Literal)
    return list(itertools.chain.from_iterable(values))


def parse_json(text: str | bytes, where: str) -> Any:
    """Parse JSON from the command line or from standard input.

    Args:
        text: the JSON.
        where: the option or argument, for the error.

    Raises:
        UsageError: it is not JSON.
    """
    try:
        return json.loads(text)
    except RecursionError:
        reject(f"{where} is nested too deeply")
    except ValueError as error:
        reject(f"{where} is not JSON: {error}")
