"""Handlers: the user's functions that do the work of events, by type of event."""

import difflib
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Literal, TypeVar, get_args

import attrs

from followup._annotations import OutboundEventType
from followup.inbox.received import Received

EVENT_TYPES: tuple[str, ...] = tuple(each for arm in get_args(OutboundEventType) for each in get_args(arm) or (arm,))


Handler = Callable[[Received], None]
H = TypeVar("H", bound=Handler)

TransactionKind = Literal["inbox", "own"]

_SYNCHRONOUS = "handlers are synchronous functions"


@attrs.frozen
class Registration:
    """A handler.

    Attributes:
        function: the function of the user.
        has_own_transaction: whether it opens its transaction itself.
    """

    function: Handler
    has_own_transaction: bool


class Handlers:
    """The handlers of an inbox."""

    def __init__(self) -> None:
        self._by_type: dict[str, Registration] = {}
        self._otherwise: Registration | None = None

    def add(self, handler: Handler, types: tuple[str, ...], transaction: TransactionKind) -> None:
        """Add the handler of these types of events.

        Raises:
            ValueError: a type does not exist, or has a handler already; or the kind of transaction does not exist.
            TypeError: the handler is not a function that can be called directly.
        """
        registration = _registration(handler, transaction)
        for each in types:
            if each in self._by_type:
                raise ValueError(f"{each} has a handler already, {_name(self._by_type[each].function)}")
        self._by_type.update(dict.fromkeys(types, registration))

    def set_otherwise(self, handler: Handler, transaction: TransactionKind) -> None:
        """Set the handler of all other types.

        Raises:
            ValueError: there is one already, or the kind of transaction does not exist.
            TypeError: the handler is not a function that can be called directly.
        """
        registration = _registration(handler, transaction)
        if self._otherwise is not None:
            raise ValueError(f"there is an otherwise handler already, {_name(self._otherwise.function)}")
        self._otherwise = registration

    def find(self, type: str) -> Registration | None:
        """Return the handler of a type, or None."""
        return self._by_type.get(type, self._otherwise)


def checked_types(types: tuple[object, ...]) -> tuple[str, ...]:
    """Check the types of events that a handler is for.

    Raises:
        ValueError: there is none, or one that does not exist.
    """
    if not types:
        raise ValueError('on() needs at least one event type, such as "appointment.created"; or use otherwise')
    for each in types:
        if each not in EVENT_TYPES:
            if callable(each):
                raise ValueError('on() needs event types, such as @inbox.on("appointment.created")')
            close = difflib.get_close_matches(str(each), EVENT_TYPES, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"it must be one of {', '.join(EVENT_TYPES)}"
            raise ValueError(f"{each!r} is not an event type: {hint}")
    return tuple(str(each) for each in types)


def check_result(result: object) -> None:
    """Check that a handler has done its work, and not returned something that would do it.

    Raises:
        TypeError: it returned an awaitable such as a coroutine, a lazy iterator such as a generator, or a Future.
    """
    is_future = hasattr(type(result), "add_done_callback")  # that of concurrent.futures is no awaitable
    # Other iterators have done theirs: a result of SQLAlchemy, a cursor, a file.
    is_lazy = isinstance(result, Iterator) and type(result).__module__ in ("builtins", "itertools")
    if is_future or is_lazy or inspect.isawaitable(result) or inspect.isasyncgen(result):
        if inspect.iscoroutine(result) or inspect.isgenerator(result):
            result.close()
        raise TypeError(
            f"the handler returned an object of type {type(result).__name__}, whose work is perhaps not done; "
            f"{_SYNCHRONOUS}"
        )


def _registration(handler: Handler, transaction: object) -> Registration:
    if transaction not in get_args(TransactionKind):
        raise ValueError('transaction must be "inbox" or "own"')
    if not callable(handler):
        raise TypeError("a handler must be a function")
    function: object = handler
    while isinstance(function, (functools.partial, staticmethod)):
        function = function.func if isinstance(function, functools.partial) else function.__func__
    for each in (function, getattr(function, "__call__", None)):  # noqa: B004 - the method of a callable object
        if inspect.iscoroutinefunction(each) or inspect.isasyncgenfunction(each):
            raise TypeError(f"handler {_name(handler)} is a coroutine function; {_SYNCHRONOUS}")
        if inspect.isgeneratorfunction(each):
            raise TypeError(f"handler {_name(handler)} is a generator function, whose code would not run")
    return Registration(handler, transaction == "own")


def _name(handler: object) -> str:
    return str(getattr(handler, "__qualname__", type(handler).__qualname__))
