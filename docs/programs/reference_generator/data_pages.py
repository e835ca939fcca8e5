"""The pages of result classes and input dicts."""

import sys
from collections.abc import Callable, Iterator
from typing import Any, Literal, get_args, get_origin, is_typeddict

import followup
from followup._core import api_rules
from followup._core.api_rules import IdPrefix
from followup._core.results import Model
from followup.resources import all_groups

from .entries import PythonNames, class_section
from .markdown import page, section, table

RESULTS, INPUTS = "results", "inputs"

_RESULTS_INTRODUCTION = """\
The operations return these classes, and `followup` exports them. Besides its fields, every result has
[`last_response`](lists.md#responseinfo) (status, headers and request id of the response) and `extra` (fields that this
version does not know, by the names that the API uses). Two methods export it, with its personal data: `to_dict()`
returns a dict with snake_case keys and Python values, and `to_json()` JSON text with the names of the API. `repr` shows
no personal data. The names of ids and enumerations are [type aliases](#ids-and-enumerations), which `followup` does
not export.
"""

_INPUTS_INTRODUCTION = """\
Inputs are plain dicts with these keys, and `followup` exports their types. All keys are optional, except those of an
event that are marked. A key whose value is None is omitted.
"""

_TYPES_INTRODUCTION = """\
An enumeration value that this version does not know is returned as a plain string.
"""


def pages() -> Iterator[tuple[str, str]]:
    """Iterate over the pages: the path of each without its suffix, and its text."""
    results = [class_section(each, each.__name__, RESULTS) for each in _classes(_is_result)]
    types = table(["Name", "Values"], _enumeration_rows())
    yield (
        RESULTS,
        page(
            "Results",
            _RESULTS_INTRODUCTION,
            *results,
            section(2, "Ids and enumerations", f"Ids have prefixes: {_prefixes()}.", _TYPES_INTRODUCTION, types),
        ),
    )
    inputs = [class_section(each, each.__name__, INPUTS) for each in _classes(is_typeddict)]
    yield INPUTS, page("Inputs", _INPUTS_INTRODUCTION, *inputs)


def homes() -> Iterator[tuple[str, str]]:
    """Iterate over the classes: name and page."""
    return ((name, path) for path, name, _, _ in python_names())


def python_names() -> PythonNames:
    """Iterate over the classes."""
    for path, accepts in ((RESULTS, _is_result), (INPUTS, is_typeddict)):
        for each in _classes(accepts):
            yield path, each.__name__, f"followup.{each.__name__}", "class"


def _is_result(cls: type[Any]) -> bool:
    return issubclass(cls, Model) and cls is not followup.WebhookEvent  # which is on the page about webhooks


def _classes(accepts: Callable[[type[Any]], bool]) -> list[type[Any]]:
    values = (getattr(followup, name) for name in dir(followup))
    return [value for value in values if isinstance(value, type) and accepts(value)]


def enumerations() -> dict[str, tuple[str, ...]]:
    """Return the values of each enumeration, by the name of its type alias."""
    return {
        name: get_args(value)
        for group in all_groups()
        for name, value in vars(sys.modules[group.__module__]).items()
        if get_origin(value) is Literal and not name.startswith("_")
    }


def _enumeration_rows() -> Iterator[tuple[str, str]]:
    for name, values in enumerations().items():
        yield f"`{name}`", ", ".join(f"`{each}`" for each in values)


def _prefixes() -> str:
    """Return the prefix of each type of id, as a list."""
    return ", ".join(
        f"`{each.prefix}` for `{name}`"
        for name, value in vars(api_rules).items()
        for each in getattr(value, "__metadata__", ())
        if isinstance(each, IdPrefix)
    )
