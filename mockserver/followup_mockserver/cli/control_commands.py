"""Commands that call the control API of a running mock, with options generated from its functions."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from followup.cli.application import Application
from followup.cli.options import keyword
from followup_mockserver.cli.defaults import DEFAULT_URL
from followup_mockserver.cli.generated import arguments_of, names_in_errors, options_of
from followup_mockserver.cli.remote import Remote
from followup_mockserver.cli.urls import Key, Token, Url

_WHICH_MOCK = [keyword("url", Url, DEFAULT_URL), keyword("api_key", Key, None), keyword("token", Token, None)]


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
        def run(*, url: str, api_key: str | None, token: str | None, **values: Any) -> None:
            remote = Remote(url, api_key, token, options)
            own = {each.name: values[each.name] for each in written}
            if function is None:
                command(remote, **own)
            else:
                command(remote, arguments_of(function, values, argument=argument), **own)

        options = {} if function is None else names_in_errors(function, argument=argument)
        generated = [] if function is None else options_of(function, argument=argument, defaults=defaults)
        first = 1 if function is None else 2
        written = [
            each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for each in [*inspect.signature(command).parameters.values()][first:]
        ]
        run.__signature__ = inspect.Signature(generated + written + _WHICH_MOCK)  # type: ignore[attr-defined]
        application.command(name or command.__name__, help=inspect.getdoc(command), **settings)(run)
        return command

    return add
