"""The page about the control API names every call and every field, and no others."""

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from followup_mockserver import MockService
from followup_mockserver.http.control_routes import ROUTES

PAGE = Path(__file__).parents[2] / "docs/control-api.md"

CALL = re.compile(r"`(GET|POST|PATCH|PUT|DELETE) /_mock(/[^`?]*)(?:\?([^`]*))?`")
FIELDS = re.compile(r"`\{([^}`]*)\}`")
LONG_POLLING = {"wait", "seen"}
"""Query parameters that the page describes once, below its tables."""


def rows() -> Iterator[tuple[list[tuple[str, str]], set[str]]]:
    """Yield the calls of each row of the tables, and the fields of their body or query."""
    for line in PAGE.read_text().splitlines():
        cell = line.split("|")[1] if line.startswith("| `") else ""
        calls = [(found[1], found[2]) for found in CALL.finditer(cell)]
        named = [each for found in FIELDS.finditer(cell) for each in re.findall(r'"(\w+)"', found[1])]
        queried = [each for found in CALL.finditer(cell) for each in re.findall(r"(\w+)=", found[3] or "")]
        if calls:
            yield calls, {*named, *queried}


def without_names(path: str) -> str:
    return re.sub(r"\{\w+\}|<\w+>", "{}", path)


def test_every_call_is_described_once() -> None:
    described = [(method, without_names(path)) for calls, _ in rows() for method, path in calls]
    served = {
        (method, without_names(rule.rule.removeprefix("/_mock")))
        for rule in MockService().app.url_map.iter_rules()
        if rule.endpoint.startswith("control.")
        for method in rule.methods or ()
        if method not in ("HEAD", "OPTIONS")
    }
    assert len(described) == len(set(described))
    assert set(described) == served


def test_every_field_is_described() -> None:
    functions = {(method, without_names(path)): function for method, path, function in ROUTES}
    for calls, fields in rows():
        known = [functions.get((method, without_names(path))) for method, path in calls]
        assert fields == {name for function in known if function for name in _fields_of(function)}, calls


def _fields_of(function: Callable[..., Any]) -> Iterator[str]:
    _control, *parameters = inspect.signature(function).parameters.values()
    for parameter in parameters:
        if parameter.kind is not inspect.Parameter.POSITIONAL_ONLY and parameter.name not in LONG_POLLING:
            head, *tail = parameter.name.split("_")
            yield head + "".join(part.capitalize() for part in tail)
