"""Options of commands, generated from the functions of the control API and from the options of a mock.

A parameter that is added to one of these functions, or an option that is added to ``MockOptions``, becomes an option of
its command, with the description in its docstring as the help.
"""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, get_origin

import typer

from followup import NOT_GIVEN
from followup._for_mockserver import annotations_of
from followup.cli.exits import reject
from followup.cli.help_texts import sentence
from followup.cli.options import arms, kebab, keyword, parse_json, with_values
from followup_mockserver.options import MockOptions, Options, meanings

LONG_POLLING = ("wait", "seen")
"""Parameters of the control API that have no use on the command line."""

_ACCEPT = {"refuse_unknown_fields": "--accept-unknown-fields"}
"""Flags that turn an option off, where ``--no-...`` would be less clear."""


def options_of_mock() -> list[inspect.Parameter]:
    """Return the options of a mock as parameters of a command."""
    texts = meanings()
    defaults = Options()
    return [
        _option(name, annotation, sentence(texts[name]), getattr(defaults, name))
        for name, annotation in annotations_of(MockOptions).items()
    ]


def mock_options(values: Mapping[str, Any]) -> Any:
    """Convert the values of options to the keyword arguments of a mock.

    Raises:
        UsageError: an option that takes numbers contains something else.
    """
    annotations = annotations_of(MockOptions)
    return {name: _value(name, annotation, values[name]) for name, annotation in annotations.items()}


def options_of(
    function: Callable[..., Any], *, argument: str | None = None, defaults: Mapping[str, Any] | None = None
) -> list[inspect.Parameter]:
    """Return the parameters of a function of the control API as those of a command.

    Args:
        function: the function.
        argument: name of the parameter that becomes an optional argument of the command.
        defaults: defaults that replace those of the function.
    """
    texts = _descriptions(function)
    found = []
    for parameter, annotation in _parameters(function):
        text = sentence(texts.get(parameter.name, ""))
        default = {parameter.name: parameter.default, **(defaults or {})}[parameter.name]
        if parameter.name == argument:
            found.append(keyword(parameter.name, _argument(annotation, text), None))
        else:
            found.append(_option(parameter.name, annotation, text, None if default is NOT_GIVEN else default))
    return found


def arguments_of(function: Callable[..., Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the values of options to keyword arguments of the function, without those of omitted options.

    Raises:
        UsageError: the value of an option that takes JSON is not JSON.
    """
    arguments = {
        parameter.name: _value(parameter.name, annotation, values[parameter.name])
        for parameter, annotation in _parameters(function)
    }
    return {name: value for name, value in arguments.items() if value is not None}


def _parameters(function: Callable[..., Any]) -> Iterator[tuple[inspect.Parameter, Any]]:
    annotations = annotations_of(function)
    _controls, *parameters = inspect.signature(function).parameters.values()
    for parameter in parameters:
        if parameter.kind is not inspect.Parameter.POSITIONAL_ONLY and parameter.name not in LONG_POLLING:
            yield parameter, annotations[parameter.name]


def _descriptions(function: Callable[..., Any]) -> dict[str, str]:
    """Return the descriptions of the arguments in the docstring of a function."""
    _, _, section = (inspect.getdoc(function) or "").partition("\nArgs:\n")
    found = re.findall(r"^    (\w+): (.+(?:\n {8}.+)*)", section.partition("\n\n")[0], re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in found}


def _argument(annotation: Any, text: str) -> Any:
    return Annotated[str | None, typer.Argument(help=with_values(text, annotation), show_default=False)]


def _option(name: str, annotation: Any, text: str, default: Any) -> inspect.Parameter:
    kind = _kind(annotation)
    text = with_values(text, annotation)
    if kind is list:
        option = typer.Option(help=f"{text} Separated by commas.", metavar="LIST")
        shown = default if default is inspect.Parameter.empty else ",".join(map(_text, default or ()))
        return keyword(name, Annotated[str, option], shown)
    if kind is dict:
        return keyword(name, Annotated[str | None, typer.Option(help=text, metavar="JSON")], default)
    flag = f"--{kebab(name)}"
    flags = [] if kind is not bool else [f"{flag}/{_ACCEPT.get(name, f'--no-{kebab(name)}')}"] if default else [flag]
    if default is None:
        kind = kind | None
    return keyword(name, Annotated[kind, typer.Option(*flags, help=text)], default)


def _kind(annotation: Any) -> Any:
    """Return the type of an option: a scalar type, ``list``, or ``dict`` for JSON."""
    allowed = arms(annotation)
    origins = [origin for arm in allowed if isinstance(origin := get_origin(arm), type)]
    if any(issubclass(origin, Mapping) for origin in origins):
        return dict
    if any(issubclass(origin, Sequence) for origin in origins):
        return list
    return next((kind for kind in (bool, int, float) if kind in allowed), str)


def _value(name: str, annotation: Any, value: Any) -> Any:
    kind = _kind(annotation)
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


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
