"""The values that an option takes, according to the annotation of its parameter: JSON, lists, times and dates.

Needs neither Typer nor click.
"""

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any

from followup._core.codec.kinds import camel, kinds_of
from followup._core.codec.wire import format_exactly, in_utc
from followup.cli.output import reject
from followup.cli.texts import zone_of

STANDARD_INPUT = STANDARD_OUTPUT = "-"

_EXAMPLE = "2030-05-17T14:30:00-03:00"


def kebab(name: str) -> str:
    """Return a name as the command line spells it: ``start_at_gte`` becomes ``start-at-gte``."""
    return name.replace("_", "-")


def parts_of(texts: str | Iterable[str]) -> list[str]:
    """Return the items of a list: they are separated by commas, and the option can be repeated.

    Args:
        texts: the value of the option, or its values.
    """
    joined = texts if isinstance(texts, str) else ",".join(texts)
    return [part.strip() for part in joined.split(",") if part.strip()]


def read_standard_input(where: str) -> bytes:
    """Read standard input to its end.

    Args:
        where: the option or argument that reads it, for the error.

    Raises:
        CommandFailed: it is empty, or another option has read it.
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
        CommandFailed: it is not JSON.
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


def argument_names(annotation: Any) -> Callable[[str], str]:
    """Return the function that renames the keys of JSON to those of the input dicts that an annotation allows."""
    names = {camel(name): name for each in kinds_of(annotation).inputs for name in each.__annotations__}
    return lambda key: names.get(key, key)


def renamed(value: Any, rename: Callable[[str], str], where: str) -> Any:
    """Return a JSON object, or an array of them, with renamed keys; any other value unchanged.

    Args:
        value: the JSON.
        rename: returns the new name of a key.
        where: the option or argument, for the error.

    Raises:
        CommandFailed: two keys of an object have the same new name.
    """
    if isinstance(value, list):
        return [renamed(each, rename, f"{where}[{number}]") for number, each in enumerate(value)]
    if not isinstance(value, Mapping):
        return value
    keys: dict[str, str] = {}
    for key in value:
        other = keys.setdefault(rename(key), key)
        if other != key:
            reject(f"{where} has both {other} and {key}, which are the same field")
    return {name: value[key] for name, key in keys.items()}


def body_of(text: str, where: str, rename: Callable[[str], str]) -> Any:
    """Return a JSON object, or several as an array or as JSON Lines, with renamed keys.

    Raises:
        CommandFailed: it is not JSON, or two keys of an object have the same new name.
    """
    return renamed(parse_json(text, where, lines=True), rename, where)


def kind_of_option(annotation: Any) -> Any:
    """Return the type of an option: a scalar type, ``Path``, ``list``, or ``dict`` for JSON."""
    allowed = kinds_of(annotation)
    forms = {each.form for each in allowed.any_of}
    if forms & {"input", "mapping"}:
        return dict
    if "list" in forms:
        return list
    if os.PathLike in allowed.types:
        return Path
    return next((kind for kind in (bool, int, float) if kind in allowed.types), str)


def may_be_id(annotation: Any) -> bool:
    """Return whether an option takes an id as well as an input dict."""
    return {"scalar", "input"} <= {each.form for each in kinds_of(annotation).any_of}


def value_of_option(name: str, annotation: Any, typed: Any, rename: Callable[[str], str] = camel) -> Any:
    """Convert what was typed for an option to the value of its parameter.

    Args:
        name: name of the parameter.
        annotation: its annotation.
        typed: the text, already an int, a float or a bool if the option takes one; the texts of an option that can be
            repeated; None for an omitted option.
        rename: returns the new name of a key of an input dict; by default the one in JSON.

    Raises:
        CommandFailed: it is invalid; the message names the option.
    """
    option, kind, allowed = f"--{kebab(name)}", kind_of_option(annotation), kinds_of(annotation)
    if typed is None:
        return None
    if kind is list and allowed.inputs:
        parsed = [renamed(parse_json(each, option), rename, option) for each in typed]
        return [item for each in parsed for item in (each if isinstance(each, list) else [each])]
    if kind is list:
        has_numbers = any(each.items and float in each.items.types for each in allowed.any_of)
        return [_number(part, option) if has_numbers else part for part in parts_of(typed)]
    if kind is dict:
        return _json_value(annotation, typed, option, rename)
    if isinstance(typed, str) and datetime in allowed.types:
        return time_of(typed, option)
    return date_of(typed, option) if date in allowed.types else typed


def _json_value(annotation: Any, typed: str, option: str, rename: Callable[[str], str]) -> Any:
    can_be_id = may_be_id(annotation)
    if can_be_id and typed != STANDARD_INPUT and not typed.lstrip().startswith("{"):
        return typed
    parsed = parse_json(typed, option)
    if can_be_id and isinstance(parsed, dict) and "object" in parsed and isinstance(parsed.get("id"), str):
        return parsed["id"]  # an object that a command has printed
    return renamed(parsed, rename, option) if kinds_of(annotation).inputs else parsed


def _number(text: str, option: str) -> float:
    try:
        return float(text)
    except ValueError:
        reject(f"{option} must be numbers separated by commas, such as 24,3")


def time_of(text: str, option: str, *, or_else: str = "") -> str:
    """Return a time as the API takes it.

    Args:
        text: the time in ISO 8601, with its offset.
        option: the option, for the error.
        or_else: what else the option takes, for the error.

    Raises:
        CommandFailed: it is no time, or it has no offset.
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.utcoffset() is None:
        reject(f"{option} must be a time with an offset, such as {_EXAMPLE} (Z means UTC){or_else}")
    try:
        return format_exactly(in_utc(time, option))
    except ValueError as error:
        reject(str(error))


def bound_of(text: str, option: str) -> tuple[str, str]:
    """Return a bound of a filter as the API takes it; a date is the beginning of this day in the local time zone.

    Args:
        text: the time in ISO 8601 with its offset, or the date.
        option: the option, for the error.

    Returns:
        The time, and a line that names the time zone in which a date was taken; empty for a time.

    Raises:
        CommandFailed: it is neither a time with an offset nor a date.
    """
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return time_of(text, option, or_else=", or a date, such as 2030-05-17"), ""
    try:
        begin = datetime(day.year, day.month, day.day).astimezone()
    except (OverflowError, ValueError):  # in the first year and the last one
        reject(f"{option} is out of range")
    shown = begin.isoformat()
    note = f"{option} is {shown}: the day begins at this time in the local time zone, {zone_of(begin)}."
    return time_of(shown, option), note


def date_of(text: str, option: str) -> str:
    """Return a date as the API takes it.

    Args:
        text: the date.
        option: the option, for the error.

    Raises:
        CommandFailed: it is no date.
    """
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        reject(f"{option} must be a date, such as 1980-02-29")
