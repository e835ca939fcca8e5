"""Keeps personal data and secrets out of an error that leaves us: its frames, and the errors that it is chained to.

A traceback keeps the frames it passed through, with their local variables, and error reporters send these: Sentry by
default, pytest with ``--showlocals``. They would hold API keys, signing secrets, phones and names. The errors that led
to an error, its cause and its context, are printed and sent with it, and their texts quote what was sent or stored.

So each public function is a boundary: decorate it with ``clears_frames``, or its class with ``clears_frames_of``. When
an error leaves the function,

- every frame below it is cleared, whichever library it is of, or leaves the traceback if it still runs in another
  thread. Only the frames of the user's own code are kept, such as those of a transport, an event hook, a handler or an
  iterable (``_is_of_user``).
- it is no longer chained to errors from below, so that code may raise in an ``except`` block. It stays chained to the
  user's: the one that the caller was handling, and those of the user's own code.
- errors of databases and encodings, which are raised as they are, lose the values in their texts.

Nothing happens on success. A private function that is called from outside any boundary is decorated too: one that runs
later, such as the body of a coroutine or generator that a public function returns, and one that a thread runs.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import AsyncGenerator, Callable, Generator
from types import FrameType, FunctionType

from followup._core.plain import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any, TypeVar

    F = TypeVar("F", bound=Callable[..., Any])
    C = TypeVar("C", bound=type)

_packages: set[str] = set()
"""The packages that have boundaries, which are ours."""

_OF_DATABASES = frozenset({"DatabaseError", "InterfaceError", "StatementError"})
"""Classes of errors that each driver has (PEP 249), SQLAlchemy and Django too."""

# The flags of code as in ``inspect``, whose import takes longer than that of everything that verifies a webhook.
_IS_GENERATOR = 0x20
_IS_COROUTINE = 0x80
_IS_ASYNC_GENERATOR = 0x200


def clears_frames(function: F) -> F:
    """Decorate a function whose errors leave no values behind.

    Args:
        function: a function, method, coroutine function, generator function or asynchronous generator function. The
            wrapper is of the same kind.
    """
    _packages.add(function.__module__.partition(".")[0])
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
    """Decorate a class as ``clears_frames`` would its constructor and its public methods, the inherited ones too.

    Properties are not decorated: they take no values.
    """
    for name in dir(cls):
        if name.startswith("_") and name != "__init__":
            continue
        # Not getattr, which would bind class methods.
        found = next(vars(each)[name] for each in cls.__mro__ if name in vars(each))
        method = found.__func__ if isinstance(found, classmethod) else found
        if isinstance(method, FunctionType) and not hasattr(method, "__wrapped__"):
            clearing = clears_frames(method)
            setattr(cls, name, classmethod(clearing) if isinstance(found, classmethod) else clearing)
    return cls


def clear_frames(error: BaseException) -> None:
    """Clear the finished frames of an error and of the errors it is chained to, those of the user too.

    The caller's own frame is still running: it has to delete its local variables itself.
    """
    left, seen = [error], set[int]()
    while left:
        each = left.pop()
        if id(each) not in seen:
            seen.add(id(each))
            left += [*_linked(each), *_members(each)]
            for frame in _frames(each):
                _is_cleared(frame)


def _clean(error: BaseException) -> None:
    """Clean an error that leaves the function whose wrapper calls this, and the errors that it is chained to."""
    # A frame of a caller still runs, and an error that was being handled there is the user's.
    wrapper = caller = sys._getframe(1)
    callers = set[FrameType]()
    while caller.f_back is not None:
        caller = caller.f_back
        callers.add(caller)
    outer: BaseException | None = None
    left, seen = [(error, False)], set[int]()
    while left:
        each, is_of_user = left.pop()
        seen.add(id(each))
        by_frame: dict[FrameType | None, bool] = {}  # whether the user's code, or what it called, was running
        for frame in [*_frames(each)]:
            is_kept = _is_of_user(frame)
            is_of_user = by_frame[frame] = is_of_user or is_kept
            if not is_kept and frame is not wrapper and not _is_cleared(frame):
                _remove(each, frame)  # it still runs in another thread
        by_frame[None] = is_of_user  # for an error that was never raised
        _remove_values(each, is_of_user=is_of_user)
        for linked in _linked(each):
            handled_in = next(_frames(linked), None)
            if handled_in in callers:
                outer = outer or linked  # the caller was handling it
                continue
            is_users = by_frame.get(handled_in, False)
            if not is_users and not any(map(_is_of_user, _frames(linked))):
                _unchain(each, linked)
            if id(linked) not in seen:
                left.append((linked, is_users))
        left += [(member, is_of_user) for member in _members(each) if id(member) not in seen]
    # Python would have chained it itself, but an error of ours had come in between, and was removed.
    if outer is not error and error.__context__ is None:
        error.__context__ = outer


def _linked(error: BaseException) -> list[BaseException]:
    return [each for each in (error.__cause__, error.__context__) if each is not None]


def _members(error: BaseException) -> tuple[BaseException, ...]:
    return error.exceptions if isinstance(error, BaseExceptionGroup) else ()


def _frames(error: BaseException) -> Generator[FrameType, None, None]:
    trace = error.__traceback__
    while trace is not None:
        yield trace.tb_frame
        trace = trace.tb_next


def _is_cleared(frame: FrameType) -> bool:
    """Clear a frame; return whether that was possible, because it no longer runs."""
    try:
        frame.clear()
    except RuntimeError:
        return False
    return True


def _remove(error: BaseException, frame: FrameType) -> None:
    before, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame is not frame:
            before = trace
        elif before is None:
            error.__traceback__ = trace.tb_next
        else:
            before.tb_next = trace.tb_next
        trace = trace.tb_next


def _unchain(error: BaseException, linked: BaseException) -> None:
    if error.__cause__ is linked:
        error.__cause__ = None
    if error.__context__ is linked:
        error.__context__ = None


def _remove_values(error: Any, *, is_of_user: bool) -> None:
    """Remove from an error what was sent or stored; from one of the user's own code only parameters of statements."""
    if hasattr(error, "hide_parameters"):  # an error of SQLAlchemy
        error.hide_parameters = True  # its text is made when it is asked for
    if is_of_user:
        return
    if _OF_DATABASES.intersection(each.__name__ for each in type(error).__mro__):
        # The lines after the first one quote the row, or the statement.
        error.args = tuple(each.partition("\n")[0] if isinstance(each, str) else each for each in error.args)
        if hasattr(error, "params"):
            error.params = None
    for name in ("object", "doc") if isinstance(error, ValueError) else ():  # what was encoded, decoded or parsed
        value = getattr(error, name, None)
        if isinstance(value, (str, bytes)):
            setattr(error, name, value[:0])  # an empty one of the same type: UnicodeError checks it
            error.args = tuple(each[:0] if each is value else each for each in error.args)


def _is_of_user(frame: FrameType) -> bool:
    """Return whether a frame is of the user's own code, and not of ours, of a library or of Python.

    Code is the user's if it is imported from a folder into which nothing is installed. Where that is not certain, as in
    a program that is installed itself, or frozen into one file, it is none.
    """
    name = frame.f_globals.get("__name__")
    if name == "__main__":
        return True
    if not isinstance(name, str) or name.partition(".")[0] in _packages:
        return False
    return _is_in_folder_without_packages(frame.f_code.co_filename, name.count("."))


@functools.cache
def _is_in_folder_without_packages(file: str, depth: int) -> bool:
    try:
        from pathlib import Path  # imported late, as few errors need it

        path = Path(file)
        if not path.is_absolute():  # code that a library generated has no file
            return False
        folder = path.parents[depth + (path.stem == "__init__")]
        is_of_python = folder == Path(os.__file__).parent or folder.name.endswith("-packages")
        return not is_of_python and not any(each.suffix == ".dist-info" for each in folder.iterdir())
    except (OSError, IndexError, ImportError):  # it is in a zip file, for example; or the interpreter shuts down
        return False


# `del` in each of these: their own frames run until the error has left them, and would keep the arguments.


def _plain_function(function: Callable[..., Any]) -> Callable[..., Any]:
    def clearing(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True  # in pytest's reports of what the function itself raises
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            del args, kwargs
            _clean(error)
            raise

    return clearing


def _coroutine_function(function: Callable[..., Any]) -> Callable[..., Any]:
    async def clearing(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        try:
            return await function(*args, **kwargs)
        except BaseException as error:
            del args, kwargs
            _clean(error)
            raise

    return clearing


def _generator_function(function: Callable[..., Any]) -> Callable[..., Any]:
    def clearing(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        __tracebackhide__ = True
        try:
            return (yield from function(*args, **kwargs))
        except GeneratorExit:  # which nobody sees; at the end of the process this module may be gone
            raise
        except BaseException as error:
            del args, kwargs
            _clean(error)
            raise

    return clearing


def _async_generator_function(function: Callable[..., Any]) -> Callable[..., Any]:
    async def clearing(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, None]:
        __tracebackhide__ = True
        items = function(*args, **kwargs)
        try:
            async for item in items:
                yield item
        except GeneratorExit:
            raise
        except BaseException as error:
            del args, kwargs
            _clean(error)
            raise
        finally:
            await items.aclose()  # `async for` does not close what it leaves early

    return clearing
