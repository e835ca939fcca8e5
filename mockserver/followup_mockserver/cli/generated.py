"""Commands that call the control API of a running mock, and options that are generated from its functions.

A parameter that is added to one of these functions, or an option that is added to ``MockOptions``, becomes an option of
its command, with the description in its docstring as the help.
"""

import difflib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer

from followup import NOT_GIVEN
from followup._for_mockserver import annotations_of, camel, descriptions_in, kinds_of
from followup.cli.application import Application
from followup.cli.options import argument as argument_option
from followup.cli.options import keyword, option, own_parameters, sentence
from followup.cli.output import reject
from followup.cli.values import kebab, value_of_option
from followup_mockserver.cli.remote import DEFAULT_URL, TOKEN_VARIABLE, Remote
from followup_mockserver.world.settings import MockOptions, Options, meanings

Url = Annotated[str, typer.Option("--url", envvar="FOLLOWUP_BASE_URL", help="Base URL of the mock.")]
"""The option ``--url``."""

_KEY = typer.Option("--api-key", envvar="FOLLOWUP_API_KEY", help="API key of the organization to act on.")
_TOKEN = typer.Option("--token", envvar=TOKEN_VARIABLE, help="Token that the mock printed when it started, if any.")

_WHICH_MOCK = [
    keyword("url", Url, DEFAULT_URL),
    keyword("api_key", Annotated[str | None, _KEY], None),
    keyword("token", Annotated[str | None, _TOKEN], None),
]


def control(
    application: Application,
    function: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    argument: str | None = None,
    defaults: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the decorated function, which takes a ``Remote``, as a command of an application.

    The command has the options that select the mock, and those that ``options_of`` generates.

    Args:
        application: the program or the group that gets the command.
        function: a function of the control API. Its parameters become options of the command, whose values the
            decorated function takes as a mapping, its second argument.
        name: name of the command; default: that of the decorated function.
        argument: name of the parameter that becomes an argument of the command instead of an option.
        defaults: defaults that replace those of ``function``.
        settings: the options of ``typer.Typer.command``.
    """

    def add(command: Callable[..., None]) -> Callable[..., None]:
        written = own_parameters(command, 1 if function is None else 2)

        def run(*, url: str, api_key: str | None, token: str | None, **values: Any) -> None:
            options = {} if function is None else names_in_errors(function, argument=argument)
            passed = [] if function is None else [arguments_of(function, values, argument=argument)]
            own = {each.name: values[each.name] for each in written}
            command(Remote(url, api_key, token, options), *passed, **own)

        generated = [] if function is None else options_of(function, argument=argument, defaults=defaults)
        run.__signature__ = inspect.Signature(generated + written + _WHICH_MOCK)  # type: ignore[attr-defined]
        application.command(name or command.__name__.replace("_", "-"), help=inspect.getdoc(command), **settings)(run)
        return command

    return add


LONG_POLLING = ("wait", "seen")
"""Parameters of the control API that have no use on the command line."""


def options_of_mock() -> list[inspect.Parameter]:
    """Return the options of a mock as parameters of a command."""
    texts = meanings()
    defaults = Options()
    return [
        option(name, annotation, sentence(texts[name]), getattr(defaults, name, None))
        for name, annotation in annotations_of(MockOptions).items()
    ]


def mock_options(values: Mapping[str, Any]) -> Any:
    """Convert the values of options to the keyword arguments of a mock.

    Raises:
        CommandFailed: an option that takes numbers contains something else.
    """
    annotations = annotations_of(MockOptions)
    return {name: value_of_option(name, annotation, values[name]) for name, annotation in annotations.items()}


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
        text = sentence(texts.get(parameter.name, ""), kinds_of(annotation).values)
        default = {parameter.name: parameter.default, **(defaults or {})}[parameter.name]
        if parameter.name == argument:
            found.append(keyword(parameter.name, argument_option(annotation, text), None))
        else:
            found.append(option(parameter.name, annotation, text, None if default is NOT_GIVEN else default))
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
        CommandFailed: the value of an option that takes JSON is not JSON, or one that takes certain words is another.
    """
    arguments = {}
    for parameter, annotation in _parameters(function):
        name = parameter.name
        value = value_of_option(name, annotation, values[name])
        if value is None:
            continue
        if isinstance(value, str) and (allowed := kinds_of(annotation).values):
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
        CommandFailed: the value is not one of these; the message suggests the most similar one.
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
