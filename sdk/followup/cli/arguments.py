"""The values of options, converted to the arguments of an operation, before anything is sent."""

from collections.abc import Iterable, Iterator
from typing import Any, get_args, get_origin

from followup._declarations import Parameter
from followup.cli.json_keys import with_argument_names
from followup.cli.output import warn
from followup.cli.times import bound_of, date_of, takes_date, takes_time, time_of
from followup.cli.values import STANDARD_INPUT, arms, kebab, parse_json, parts_of


def argument_of(parameter: Parameter, typed: Any) -> Any:
    """Convert the value of an option, or of the argument that is the body, to the argument of the operation.

    Raises:
        UsageError: the value is invalid; the message names the option.
    """
    kind = kind_of_option(parameter)
    if parameter.place == "whole_body":
        parsed = parse_json(typed, parameter.name, lines=True)
        return with_argument_names(parsed, parameter.annotation, parameter.name)
    option = f"--{kebab(parameter.name)}"
    if kind is list:
        return [*_items(parameter, typed, option)]
    if kind is dict:
        return _input_dict(parameter, typed, option)
    if takes_time(parameter.annotation):
        return _time(parameter, typed, option)
    return date_of(typed, option) if takes_date(parameter.annotation) else typed


def kind_of_option(parameter: Parameter) -> type:
    """Return the type of an option: ``str``, ``int``, ``bool``, ``list``, or ``dict`` for a nested input."""
    allowed = arms(parameter.annotation)
    if any(isinstance(get_origin(arm), type) and issubclass(get_origin(arm), Iterable) for arm in allowed):
        return list
    if any(hasattr(arm, "__required_keys__") for arm in allowed):
        return dict
    return next((kind for kind in (bool, int) if kind in allowed), str)


def has_input_dicts(parameter: Parameter) -> bool:
    """Return whether the items of a list are nested inputs."""
    items = (item for arm in arms(parameter.annotation) for item in get_args(arm))
    return any(hasattr(arm, "__required_keys__") for item in items for arm in arms(item))


def may_be_id(parameter: Parameter) -> bool:
    """Return whether an option takes an id as well as a nested input."""
    return str in arms(parameter.annotation)


def _items(parameter: Parameter, typed: Iterable[str], option: str) -> Iterator[Any]:
    if not has_input_dicts(parameter):
        yield from parts_of(typed)
        return
    for each in typed:
        parsed = with_argument_names(parse_json(each, option), parameter.annotation, option)
        yield from parsed if isinstance(parsed, list) else [parsed]


def _input_dict(parameter: Parameter, typed: str, option: str) -> Any:
    if may_be_id(parameter) and typed != STANDARD_INPUT and not typed.lstrip().startswith("{"):
        return typed
    parsed = parse_json(typed, option)
    if may_be_id(parameter) and isinstance(parsed, dict) and "object" in parsed and isinstance(parsed.get("id"), str):
        return parsed["id"]  # an object that a command has printed
    return with_argument_names(parsed, parameter.annotation, option)


def _time(parameter: Parameter, typed: str, option: str) -> str:
    if parameter.place != "query":
        return time_of(typed, option)
    time, note = bound_of(typed, option)
    if note:
        warn(note)
    return time
