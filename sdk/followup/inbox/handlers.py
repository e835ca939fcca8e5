"""Handlers: the user's functions that do the work of events, by type of event."""

import difflib
import inspect
from collections.abc import Callable
from typing import TypeVar, get_args

import attrs
from sqlalchemy import Connection

from followup._annotations import OutboundEventType
from followup._webhook_event import WebhookEvent

EVENT_TYPES: tuple[str, ...] = tuple(each for arm in get_args(OutboundEventType) for each in get_args(arm) or (arm,))


@attrs.frozen
class Received:
    """An event to handle.

    Attributes:
        event: the event.
        connection: a SQLAlchemy connection in a transaction. What the handler writes here commits together with the
            mark that the event is done, or not at all. The handler neither commits nor rolls back itself.
        is_stale: whether a newer event about the same ``ref`` has been handled already.
        attempt: number of this attempt, from 1.
    """

    event: WebhookEvent
    connection: Connection = attrs.field(repr=False)
    is_stale: bool
    attempt: int


Handler = Callable[[Received], None]
H = TypeVar("H", bound=Handler)


class Handlers:
    """The handlers of an inbox."""

    def __init__(self) -> None:
        self._by_type: dict[str, Handler] = {}
        self._otherwise: Handler | None = None

    def add(self, handler: Handler, types: tuple[str, ...]) -> None:
        """Add the handler of these types of events.

        Raises:
            ValueError: a type does not exist, or has a handler already.
            TypeError: the handler is not a function that can be called directly.
        """
        _check_callable(handler)
        for each in types:
            if each in self._by_type:
                raise ValueError(f"{each} has a handler already, {_name(self._by_type[each])}")
        self._by_type.update(dict.fromkeys(types, handler))

    def set_otherwise(self, handler: Handler) -> None:
        """Set the handler of all other types.

        Raises:
            ValueError: there is one already.
            TypeError: the handler is not a function that can be called directly.
        """
        _check_callable(handler)
        if self._otherwise is not None:
            raise ValueError(f"there is an otherwise handler already, {_name(self._otherwise)}")
        self._otherwise = handler

    def find(self, type: str) -> Handler | None:
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


def _check_callable(handler: object) -> None:
    if not callable(handler):
        raise TypeError("a handler must be a function")
    if inspect.iscoroutinefunction(handler):
        raise TypeError(f"handler {_name(handler)} is a coroutine function; handlers are synchronous functions")


def _name(handler: object) -> str:
    return str(getattr(handler, "__qualname__", type(handler).__qualname__))
