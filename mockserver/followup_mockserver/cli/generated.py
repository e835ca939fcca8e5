"""Options of commands, generated from the functions of the control API and from the options of a mock.

A parameter that is added to one of these functions, or an option that is added to ``MockOptions``, becomes an option of
its command, with the description in its docstring as the help.
"""

import difflib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from followup import NOT_GIVEN
from followup._for_mockserver import annotations_of, camel, descriptions_in
from followup.cli.exits import reject
from followup.cli.help_pages import sentence
from followup.cli.options import completing, keyword, placeholder, with_values
from followup.cli.values import kebab, literals
from followup_mockserver.cli.values import flags_of, kind_of_option, may_be_id, takes_input_dict, value_of_option
from followup_mockserver.settings.options import MockOptions, Options, meanings

LONG_POLLING = ("wait", "seen")
"""Parameters of the control API that have no use on the command line."""


def options_of_mock() -> list[inspect.Parameter]:
    """Return the options of a mock as parameters of a command."""
    texts = meanings()
    defaults = Options()
    return [
        _option(name, annotation, sentence(texts[name]), getattr(defaults, name, None))
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
        text = sentence(texts.get(parameter.name, ""), literals(annotation))
        default = {parameter.name: parameter.default, **(defaults or {})}[parameter.name]
        if parameter.name == argument:
            found.append(keyword(parameter.name, _argument(annotation, text), None))
        else:
            found.append(_option(parameter.name, annotation, text, None if default is NOT_GIVEN else default))
    return found


def arguments_of(
    function: Callable[..., Any], values: Mapping[str, Any], *, argument: str | None = None
) -> dict[str, Any]:
    """Convert the values of options to keyword arguments of the function, without those of omitted options.

    Args:
        function: the function.
        values: the values of the options, by the name of the parameter.
        argument: name of the parameter that is an argument of the command instead of an option.

    Raises:
        UsageError: the value of an option that takes JSON is not JSON, or one that takes certain words is another.
    """
    arguments = {}
    for parameter, annotation in _parameters(function):
        name = parameter.name
        value = value_of_option(name, annotation, values[name])
        if value is None:
            continue
        if isinstance(value, str) and (allowed := literals(annotation)):
            shown = name.upper() if name == argument else f"--{kebab(name)}"
            value = next((each for each in allowed if kebab(each) == kebab(value)), value)
            reject_unless_one_of(shown, value, allowed, f"one of {', '.join(allowed)}")
        arguments[name] = value
    return arguments


def names_in_errors(function: Callable[..., Any], *, argument: str | None = None) -> dict[str, str]:
    """Return the option, or the argument, of each parameter of the function, by the name of the parameter in JSON.

    Args:
        function: the function.
        argument: name of the parameter that is an argument of the command instead of an option.
    """
    names = [parameter.name for parameter, _ in _parameters(function)]
    return {camel(name): name.upper() if name == argument else f"--{kebab(name)}" for name in names}


def reject_unless_one_of(name: str, value: str, allowed: Sequence[str], expected: str) -> None:
    """Check a value, before anything is sent.

    Args:
        name: the option or argument, for the error.
        value: its value.
        allowed: the valid values.
        expected: a description of the valid values.

    Raises:
        UsageError: the value is not one of these; the message suggests the most similar one.
    """
    if value not in allowed:
        similar = difflib.get_close_matches(value, allowed, n=1)
        reject(f"{name} must be {expected}" + (f"; did you mean {similar[0]}?" if similar else ""))


def _parameters(function: Callable[..., Any]) -> Iterator[tuple[inspect.Parameter, Any]]:
    annotations = annotations_of(function)
    _controls, *parameters = inspect.signature(function).parameters.values()
    for parameter in parameters:
        if parameter.kind is not inspect.Parameter.POSITIONAL_ONLY and parameter.name not in LONG_POLLING:
            yield parameter, annotations[parameter.name]


def _argument(annotation: Any, text: str) -> Any:
    argument = typer.Argument(
        help=with_values(text, annotation), show_default=False, autocompletion=completing(annotation)
    )
    return Annotated[str | None, argument]


def _option(name: str, annotation: Any, text: str, default: Any) -> inspect.Parameter:
    kind = kind_of_option(annotation)
    text = with_values(text, annotation)
    if kind is list:
        option = typer.Option(help=f"{text} Separated by commas; the option can be repeated.", metavar="LIST")
        if default is None:
            return keyword(name, Annotated[list[str] | None, option], None)
        shown = default if default is inspect.Parameter.empty else [",".join(map(_text, default or ()))]
        return keyword(name, Annotated[list[str], option], shown)
    if takes_input_dict(annotation):
        text = f"{text} As JSON, - for standard input{', or an id' * may_be_id(annotation)}."
    if kind is dict:
        return keyword(name, Annotated[str | None, typer.Option(help=text, metavar="JSON")], default)
    if kind is Path:
        text = f"{text} - reads standard input."
    flags = ["/".join(flags_of(name, default))] if kind is bool else []
    if default is None:
        kind = kind | None
    shown_as = None if flags else placeholder(name, annotation)
    option = typer.Option(*flags, help=text, metavar=shown_as, autocompletion=completing(annotation))
    return keyword(name, Annotated[kind, option], default)


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
