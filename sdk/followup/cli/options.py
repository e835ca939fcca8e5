"""Options of a command, generated from annotated parameters, and their values."""

import inspect
from typing import Annotated, Any

import typer

from followup.cli.values import literals

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on a terminal, too.")]
"""The option ``--json``. A pipe gets JSON without it."""


def keyword(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    """Return a parameter of a generated command; without a default it is required."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def with_values(text: str, annotation: Any) -> str:
    """Return the help of an option, with the values that its annotation enumerates, unless the help names them."""
    values = literals(annotation)
    if all(value in text.lower() for value in values):
        return text
    return f"{text} One of {', '.join(values)}.".strip()
