"""The values of options of ``followup-mock``, by the annotations of their parameters. Needs neither Typer nor click."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args, get_origin, is_typeddict

from followup._for_mockserver import annotations_of, camel
from followup.cli.exits import reject
from followup.cli.values import STANDARD_INPUT, arms, kebab, parse_json, parts_of, renamed, takes_time, time_of
from followup_mockserver.settings.options import MockOptions

_ACCEPT = {"refuse_unknown_fields": "--accept-unknown-fields"}
"""Flags that turn an option off, where ``--no-...`` would be less clear."""


def flags_of(name: str, default: bool | None) -> dict[str, bool]:
    """Return the flags of an option, with the value that each sets. Where it is off by default, none turns it off."""
    on, off = f"--{kebab(name)}", _ACCEPT.get(name, f"--no-{kebab(name)}")
    return {on: True} if default is False else {on: True, off: False}


def mock_options(values: Mapping[str, Any]) -> Any:
    """Convert the values of options to the keyword arguments of a mock.

    Raises:
        UsageError: an option that takes numbers contains something else.
    """
    annotations = annotations_of(MockOptions)
    return {name: value_of_option(name, annotation, values[name]) for name, annotation in annotations.items()}


def kind_of_option(annotation: Any) -> Any:
    """Return the type of an option: a scalar type, ``Path``, ``list``, or ``dict`` for JSON."""
    if takes_input_dict(annotation):
        return dict
    allowed = arms(annotation)
    origins = [origin for arm in allowed if isinstance(origin := get_origin(arm), type)]
    if any(issubclass(origin, Mapping) for origin in origins):
        return dict
    if any(issubclass(origin, Sequence) for origin in origins):
        return list
    if os.PathLike in origins:
        return Path
    return next((kind for kind in (bool, int, float) if kind in allowed), str)


def value_of_option(name: str, annotation: Any, value: Any) -> Any:
    """Convert the value of an option to the value of its parameter; the items of a list are separated by commas.

    Args:
        name: name of the parameter.
        annotation: its annotation.
        value: the value, already an int, a float or a bool if the option takes one; the values of an option that can
            be repeated; None for an omitted option.

    Raises:
        UsageError: a list of numbers contains something else, JSON or a time is invalid.
    """
    kind = kind_of_option(annotation)
    if kind is dict and value is not None:
        if may_be_id(annotation) and value != STANDARD_INPUT and not value.lstrip().startswith("{"):
            return value
        option = f"--{kebab(name)}"
        parsed = parse_json(value, option)
        return renamed(parsed, camel, option) if takes_input_dict(annotation) else parsed
    if kind is list and value is not None:
        parts = parts_of(value)
        return [_number(part, name) for part in parts] if _has_numbers(annotation) else parts
    if isinstance(value, str) and takes_time(annotation):
        return time_of(value, f"--{kebab(name)}")
    return value


def takes_input_dict(annotation: Any) -> bool:
    """Return whether an option takes an input dict of the SDK, such as ``PatientInput``, or a list of them."""
    allowed = arms(annotation)
    return any(is_typeddict(each) for each in (*allowed, *(item for arm in allowed for item in get_args(arm))))


def may_be_id(annotation: Any) -> bool:
    """Return whether an option takes an id as well as an input dict."""
    return takes_input_dict(annotation) and str in arms(annotation)


def _has_numbers(annotation: Any) -> bool:
    return any(float in getattr(arm, "__args__", ()) for arm in arms(annotation))


def _number(text: str, name: str) -> float:
    try:
        return float(text)
    except ValueError:
        reject(f"--{kebab(name)} must be numbers separated by commas, such as 24,3")
