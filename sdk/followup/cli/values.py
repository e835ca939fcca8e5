"""The values that an option takes, according to the annotation of its parameter. Needs neither Typer nor click."""

import itertools
import json
import sys
from collections.abc import Iterable
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


def parts_of(texts: str | Iterable[str]) -> list[str]:
    """Return the items of a list: they are separated by commas, and the option can be repeated.

    Args:
        texts: the value of the option, or its values.
    """
    joined = texts if isinstance(texts, str) else ",".join(texts)
    return [part.strip() for part in joined.split(",") if part.strip()]


STANDARD_INPUT = STANDARD_OUTPUT = "-"


def read_standard_input(where: str) -> bytes:
    """Read standard input to its end.

    Args:
        where: the option or argument that reads it, for the error.

    Raises:
        UsageError: it is empty, or another option has read it.
    """
    content = sys.stdin.buffer.read()
    if not content:
        reject(f"{where}: standard input is empty, or another option has read it")
    return content


def parse_json(text: str, where: str, *, lines: bool = False) -> Any:
    """Parse JSON from the command line or from standard input.

    Args:
        text: the JSON; ``-`` reads it from standard input.
        where: the option or argument, for the error.
        lines: whether JSON Lines are accepted, too; they are a list.

    Raises:
        UsageError: it is not JSON.
    """
    content = read_standard_input(where) if text == STANDARD_INPUT else text.encode("utf-8", "surrogatepass")
    try:
        try:
            return json.loads(content)
        except ValueError:
            values = [json.loads(line) for line in content.splitlines() if line.strip()] if lines else []
            if len(values) < 2:  # the error of the whole text is clearer than that of a line
                raise
            return values
    except RecursionError:
        reject(f"{where} is nested too deeply")
    except ValueError as error:
        reject(f"{where} is not JSON: {error}")
