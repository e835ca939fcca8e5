"""Errors for arguments that a function does not take. They name its keywords, and the function as its caller knows it.

Python's own error does not say what to pass instead of a positional argument. For a function that is wrapped, or
inherited from a private class, it shows an internal name.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, cast, get_args, get_origin

from followup._frames import clear_frames, clears_frames

if TYPE_CHECKING:
    import inspect  # imported late below: verifying a webhook does not need it

F = TypeVar("F", bound=Callable[..., Any])

_TAKES_OPTIONS = 0x08
"""The flag of code that takes ``**options``, ``inspect.CO_VARKEYWORDS``."""

_IS_COROUTINE = 0x80
"""The flag of the code of an ``async def``, ``inspect.CO_COROUTINE``."""


def explain_argument_errors(name: str) -> Callable[[F], F]:
    """Return a decorator of functions, for the argument errors of this module. It also clears frames (``_frames``).

    Args:
        name: the function as its caller knows it, such as ``events.send_all``.
    """
    return lambda function: _explaining(function, lambda _: name)


def explain_argument_errors_of(cls: type) -> None:
    """Let the constructor and the public methods of a class raise the argument errors of this module.

    This changes the class instead of decorating its methods, so that type checkers and editors see these as they are.
    It also clears the frames below them (``_frames``).

    Args:
        cls: the class. Methods that take arguments are replaced in it, inherited ones included.
    """
    for name in dir(cls):
        if name.startswith("_") and name != "__init__":
            continue
        found = next(vars(each)[name] for each in cls.__mro__ if name in vars(each))
        method = found.__func__ if isinstance(found, classmethod) else found
        if not isinstance(method, FunctionType) or hasattr(method, "__wrapped__"):
            continue
        code = method.__code__
        if code.co_kwonlyargcount or code.co_flags & _TAKES_OPTIONS:
            replaced = _explaining(method, _name_of_method(name))
        elif code.co_argcount > 1:
            replaced = clears_frames(method)
        else:
            continue
        setattr(cls, name, classmethod(replaced) if isinstance(found, classmethod) else replaced)


def argument_error(
    name: str, function: Callable[..., Any], args: Sequence[object], kwargs: Mapping[str, object]
) -> TypeError | None:
    """Return the error of a call whose arguments do not fit the function; None if they do.

    Args:
        name: the function as its caller knows it.
        function: the function.
        args: the positional arguments, ``self`` or ``cls`` included.
        kwargs: the keyword arguments.
    """
    import inspect

    parameters = list(inspect.signature(function).parameters.values())
    if parameters and parameters[0].name in ("self", "cls"):
        parameters, args = parameters[1:], args[1:]
    problem = _problem(parameters, args, kwargs)
    return None if problem is None else TypeError(f"{name}() {problem}")


def _explaining(function: F, name_of: Callable[[Sequence[Any]], str]) -> F:
    @functools.wraps(function)
    def explaining(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True  # in pytest's reports of what the function itself raises
        try:
            return function(*args, **kwargs)
        except BaseException as failure:
            error = argument_error(name_of(args), function, args, kwargs) if isinstance(failure, TypeError) else None
            del args, kwargs
            clear_frames(failure)
            if error is None:
                raise
        try:
            raise error
        finally:
            del error  # the error refers to this frame, and the frame must not refer back

    if not isinstance(function, FunctionType) or not function.__code__.co_flags & _IS_COROUTINE:
        return cast("F", explaining)

    @functools.wraps(function)
    async def explaining_async(*args: Any, **kwargs: Any) -> Any:  # frameworks ask whether it is a coroutine function
        return await explaining(*args, **kwargs)

    return cast("F", clears_frames(explaining_async))


def _name_of_method(method: str) -> Callable[[Sequence[Any]], str]:
    def name(args: Sequence[Any]) -> str:
        cls = args[0] if isinstance(args[0], type) else type(args[0])
        return cls.__name__ if method == "__init__" else f"{cls.__name__}.{method}"

    return name


def _problem(
    parameters: "Sequence[inspect.Parameter]", args: Sequence[object], kwargs: Mapping[str, object]
) -> str | None:
    in_place = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    by_name = [each for each in parameters if each.kind is each.KEYWORD_ONLY]
    options = _options_of(parameters)
    names = [each.name for each in by_name] + list(options or ())
    if len(args) > len(in_place):
        return _too_many(in_place, len(args), names)
    accepted = [each.name for each in in_place if each.kind is not each.POSITIONAL_ONLY] + names
    if options is not None and (unknown := next((each for each in kwargs if each not in accepted), None)):
        return f"got an unexpected keyword argument {unknown!r}. {_accepted(unknown, accepted)}"
    if twice := next((each.name for each in in_place[: len(args)] if each.name in kwargs), None):
        return f"got multiple values for argument {twice!r}"
    required = [each for each in (*in_place[len(args) :], *by_name) if each.default is each.empty]
    missing = [f"{each.name}=..." if each in by_name else each.name for each in required if each.name not in kwargs]
    if not missing:
        return None
    return f"is missing {'a required argument' if len(missing) == 1 else 'required arguments'}: {', '.join(missing)}"


def _options_of(parameters: "Sequence[inspect.Parameter]") -> Sequence[str] | None:
    """Return the keywords of ``**options: Unpack[SomeTypedDict]``; none without ``**``, and None if any is accepted."""
    for each in parameters:
        if each.kind is each.VAR_KEYWORD:
            typed = get_args(each.annotation)[0] if get_origin(each.annotation) is Unpack else None
            return None if typed is None else list(typed.__annotations__)
    return ()


def _too_many(in_place: "Sequence[inspect.Parameter]", given: int, names: Sequence[str]) -> str:
    taken = f"{len(in_place)} positional argument{'' if len(in_place) == 1 else 's'}"
    listed = f" ({', '.join(each.name for each in in_place)})" if in_place else ""
    advice = f"; pass by name: {', '.join(f'{each}=...' for each in names)}" if names else ""
    return f"takes {taken}{listed} but {given} {'was' if given == 1 else 'were'} given{advice}"


def _accepted(unknown: str, accepted: Sequence[str]) -> str:
    import difflib
    import re

    in_snake_case = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", unknown).lower()
    close = difflib.get_close_matches(in_snake_case, accepted, n=1)
    suggestion = f"Did you mean {close[0]!r}? " if close else ""
    return f"{suggestion}It takes {', '.join(accepted)}" if accepted else "It takes no keyword arguments"
