"""Keeps personal data and secrets out of the local variables of frames that an error leaves behind.

A traceback keeps the frames it passed through, with their local variables, and error reporters send these: Sentry by
default, pytest with ``--showlocals``. They would hold API keys, signing secrets, phones and names.

So each public function is a boundary: decorate it with ``clears_frames``, or its class with ``clears_frames_of``. When
an error leaves the function, the frames below it are cleared: ours, and those of the HTTP libraries. The frames of the
user are kept, those of an event hook or a transport included. Nothing happens on success.

A private function that is called from outside any boundary is decorated too: one that runs later, such as the body of a
coroutine or generator that a public function returns, and one that a thread runs.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncGenerator, Callable, Generator
from types import FrameType, FunctionType

# Not imported from `typing`, whose import takes longer than all that verifies a webhook.
TYPE_CHECKING = bool()  # noqa: UP018 - jedi skips what depends on the literal False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    F = TypeVar("F", bound=Callable[..., Any])
    C = TypeVar("C", bound=type)

_CLEARED = frozenset({"followup", "httpx", "httpcore", "h11", "sqlalchemy", "psycopg", "django"})
"""The packages whose frames are cleared: ours, and the libraries that hold the request, with the API key, or the rows
and the password of a database in frames."""

# The flags of code as in ``inspect``, whose import takes longer than that of everything that verifies a webhook.
_TAKES_OPTIONS = 0x08
_IS_GENERATOR = 0x20
_IS_COROUTINE = 0x80
_IS_ASYNC_GENERATOR = 0x200


def clears_frames(function: F) -> F:
    """Decorate a function whose errors leave no values behind in local variables of ours.

    Args:
        function: a function, method, coroutine function, generator function or asynchronous generator function. The
            wrapper is of the same kind.
    """
    flags = function.__code__.co_flags if hasattr(function, "__code__") else 0
    if flags & _IS_COROUTINE:
        make: Callable[[Any], Any] = _coroutine_function
    elif flags & _IS_GENERATOR:
        make = _generator_function
    else:
        make = _async_generator_function if flags & _IS_ASYNC_GENERATOR else _plain_function
    wrapper: Any = functools.wraps(function)(make(function))
    return wrapper  # type: ignore[no-any-return]


def clears_frames_of(cls: C) -> C:
    """Decorate a class as ``clears_frames`` would its constructor and its public methods that take arguments.

    Inherited methods are decorated too. Properties are not: they take no values.
    """
    for name in dir(cls):
        if name.startswith("_") and name != "__init__":
            continue
        found = next(vars(each)[name] for each in cls.__mro__ if name in vars(each))
        method = found.__func__ if isinstance(found, classmethod) else found
        if not isinstance(method, FunctionType) or hasattr(method, "__wrapped__"):
            continue
        code = method.__code__
        if code.co_argcount > 1 or code.co_kwonlyargcount or code.co_flags & _TAKES_OPTIONS:
            clearing = clears_frames(method)
            setattr(cls, name, classmethod(clearing) if isinstance(found, classmethod) else clearing)
    return cls


def clear_frames(error: BaseException, *, of_user: bool = False) -> None:
    """Clear the finished frames of an error and of the errors it is chained to, those of the user only ``of_user``.

    The caller's own frame is still running: it has to delete its local variables itself.
    """
    left: list[BaseException | None] = [error]
    seen: set[int] = set()
    while left:
        each = left.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        left += [each.__cause__, each.__context__]
        if isinstance(each, BaseExceptionGroup):
            left += each.exceptions
        trace = each.__traceback__
        while trace is not None:
            _clear(trace.tb_frame, of_user=of_user)
            trace = trace.tb_next


def _clear(frame: FrameType, *, of_user: bool) -> None:
    name = frame.f_globals.get("__name__")
    if of_user or (isinstance(name, str) and name.partition(".")[0] in _CLEARED):
        try:  # noqa: SIM105 - `contextlib` is imported by nothing else here
            frame.clear()
        except RuntimeError:  # it is still running
            pass


def _plain_function(function: Callable[..., Any]) -> Callable[..., Any]:
    def clearing(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True  # in pytest's reports of what the function itself raises
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            del args, kwargs
            clear_frames(error)
            raise

    return clearing


def _coroutine_function(function: Callable[..., Any]) -> Callable[..., Any]:
    async def clearing(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        try:
            return await function(*args, **kwargs)
        except BaseException as error:
            del args, kwargs
            clear_frames(error)
            raise

    return clearing


def _generator_function(function: Callable[..., Any]) -> Callable[..., Any]:
    def clearing(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        __tracebackhide__ = True
        try:
            return (yield from function(*args, **kwargs))
        except BaseException as error:
            del args, kwargs
            clear_frames(error)
            raise

    return clearing


def _async_generator_function(function: Callable[..., Any]) -> Callable[..., Any]:
    async def clearing(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, None]:
        __tracebackhide__ = True
        items = function(*args, **kwargs)
        try:
            async for item in items:
                yield item
        except BaseException as error:
            del args, kwargs
            clear_frames(error)
            raise
        finally:
            await items.aclose()

    return clearing
