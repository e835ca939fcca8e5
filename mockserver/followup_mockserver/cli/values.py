"""The values of options of ``followup-mock``, by the annotations of their parameters. Needs neither Typer nor click."""

from collections.abc import Mapping, Sequence
from typing import Any, get_origin

from followup._for_mockserver import annotations_of
from followup.cli.exits import reject
from followup.cli.values import arms, kebab, parse_json
from followup_mockserver.options import MockOptions

_ACCEPT = {"refuse_unknown_fields": "--accept-unknown-fields"}
"""Flags that turn an option off, where ``--no-...`` would be less clear."""


def flags_of(name: str, default: bool | None) -> dict[str, bool]:
    """Return the flags of an option, with the value that each sets. Without a default there is nothing to turn off."""
    on, off = f"--{kebab(name)}", _ACCEPT.get(name, f"--no-{kebab(name)}")
    return {on: True, off: False} if default else {on: True}


def mock_options(values: Mapping[str, Any]) -> Any:
    """Convert the values of options to the keyword arguments of a mock.

    Raises:
        UsageError: an option that takes numbers contains something else.
    """
    annotations = annotations_of(MockOptions)
    return {name: value_of_option(name, annotation, values[name]) for name, annotation in annotations.items()}


def kind_of_option(annotation: Any) -> Any:
    """Return the type of an option: a scalar type, ``list``, or ``dict`` for JSON."""
    allowed = arms(annotation)
    origins = [origin for arm in allowed if isinstance(origin := get_origin(arm), type)]
    if any(issubclass(origin, Mapping) for origin in origins):
        return dict
    if any(issubclass(origin, Sequence) for origin in origins):
        return list
    return next((kind for kind in (bool, int, float) if kind in allowed), str)


def value_of_option(name: str, annotation: Any, value: Any) -> Any:
    """Convert the value of an option to the value of its parameter; a list is separated by commas.

    Args:
        name: name of the parameter.
        annotation: its annotation.
        value: the value, already an int, a float or a bool if the option takes one; None for an omitted option.

    Raises:
        UsageError: a list of numbers contains something else, or the value of an option that takes JSON is not JSON.
    """
    kind = kind_of_option(annotation)
    if kind is dict and value is not None:
        return parse_json(value, f"--{kebab(name)}")
    if kind is list and value is not None:
        parts = parts_of(value)
        return [_number(part, name) for part in parts] if _has_numbers(annotation) else parts
    return value


def _has_numbers(annotation: Any) -> bool:
    return any(float in getattr(arm, "__args__", ()) for arm in arms(annotation))


def _number(text: str, name: str) -> float:
    try:
        return float(text)
    except ValueError:
        reject(f"--{kebab(name)} must be numbers separated by commas, such as 24,3")


def parts_of(text: str) -> list[str]:
    """Return the items of a list whose items are separated by commas."""
    return [part.strip() for part in text.split(",") if part.strip()]
