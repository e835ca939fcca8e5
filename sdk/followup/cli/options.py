"""Options of a command, generated from annotated parameters, and their values."""

import inspect
import itertools
import json
from typing import Annotated, Any, Literal, get_args, get_origin

import typer

from followup import NotGiven
from followup._codec.names import bare, is_union
from followup.cli.exits import reject

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on a terminal, too.")]
"""The option ``--json``. A pipe gets JSON without it."""


def kebab(name: str) -> str:
    """Return a name as the command line spells it: ``start_at_gte`` becomes ``start-at-gte``."""
    return name.replace("_", "-")


def keyword(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    """Return a parameter of a generated command; without a default it is required."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


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


def with_values(text: str, annotation: Any) -> str:
    """Return the help of an option, with the values that its annotation enumerates, unless the help names them."""
    values = literals(annotation)
    if all(value in text.lower() for value in values):
        return text
    return f"{text} One of {', '.join(values)}.".strip()


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
