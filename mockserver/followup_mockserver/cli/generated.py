"""Options of commands, generated from the functions of the control API and from the options of a mock.

A parameter that is added to one of these functions, or an option that is added to ``MockOptions``, becomes an option of
its command, with the description in its docstring as the help.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any

import typer

from followup import NOT_GIVEN
from followup._for_mockserver import annotations_of, descriptions_in
from followup.cli.help_texts import sentence
from followup.cli.options import keyword, with_values
from followup_mockserver.cli.values import flags_of, kind_of_option, value_of_option
from followup_mockserver.options import MockOptions, Options, meanings

LONG_POLLING = ("wait", "seen")
"""Parameters of the control API that have no use on the command line."""


def options_of_mock() -> list[inspect.Parameter]:
    """Return the options of a mock as parameters of a command."""
    texts = meanings()
    defaults = Options()
    return [
        _option(name, annotation, sentence(texts[name]), getattr(defaults, name))
        for name, annotation in annotations_of(MockOptions).items()
    ]


def options_of(
    function: Callable[..., Any], *, argument: str | None = None, defaults: Mapping[str, Any] | None = None
) -> list[inspect.Parameter]:
    """Return the parameters of a function of the control API as those of a command.

    Args:
        function: the function.
        argument: name of the parameter that becomes an optional argument of the command.
        defaults: defaults that replace those of the function.
    """
    texts = descriptions_in(function)
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
        parameter.name: value_of_option(parameter.name, annotation, values[parameter.name])
        for parameter, annotation in _parameters(function)
    }
    return {name: value for name, value in arguments.items() if value is not None}


def _parameters(function: Callable[..., Any]) -> Iterator[tuple[inspect.Parameter, Any]]:
    annotations = annotations_of(function)
    _controls, *parameters = inspect.signature(function).parameters.values()
    for parameter in parameters:
        if parameter.kind is not inspect.Parameter.POSITIONAL_ONLY and parameter.name not in LONG_POLLING:
            yield parameter, annotations[parameter.name]


def _argument(annotation: Any, text: str) -> Any:
    return Annotated[str | None, typer.Argument(help=with_values(text, annotation), show_default=False)]


def _option(name: str, annotation: Any, text: str, default: Any) -> inspect.Parameter:
    kind = kind_of_option(annotation)
    text = with_values(text, annotation)
    if kind is list:
        option = typer.Option(help=f"{text} Separated by commas.", metavar="LIST")
        shown = default if default is inspect.Parameter.empty else ",".join(map(_text, default or ()))
        return keyword(name, Annotated[str, option], shown)
    if kind is dict:
        return keyword(name, Annotated[str | None, typer.Option(help=text, metavar="JSON")], default)
    flags = ["/".join(flags_of(name, default))] if kind is bool else []
    if default is None:
        kind = kind | None
    return keyword(name, Annotated[kind, typer.Option(*flags, help=text)], default)


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
