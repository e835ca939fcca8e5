"""Handlers: the user's functions that do the work of events, by type of event; and what each of them gets."""

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Literal, TypeVar, get_args

import attrs
from sqlalchemy import Connection
from sqlalchemy.orm import Session

from followup._core.api_rules import OutboundEventType
from followup._core.plain import Late
from followup._core.privacy.frames import clears_frames
from followup.inbox.handler_transaction import transaction_on
from followup.resources.webhook_event import WebhookEvent

if TYPE_CHECKING:
    from followup.outbox import connections
else:
    connections = Late("followup.outbox.connections")

EVENT_TYPES: tuple[str, ...] = tuple(each for arm in get_args(OutboundEventType) for each in get_args(arm) or (arm,))


@attrs.frozen
class Received:
    """An event to handle.

    Attributes:
        event: the event.
        is_stale: whether a newer event about the same ``ref`` has been handled already.
        attempt: number of this attempt, from 1.
    """

    event: WebhookEvent
    _connection: Connection | None = attrs.field(repr=False)
    is_stale: bool
    attempt: int
    _mark: "Callable[[connections.RecordingConnection], None] | None" = attrs.field(default=None, repr=False)

    @property
    def connection(self) -> Connection:
        """A SQLAlchemy connection in a transaction.

        What the handler writes here commits together with the mark that the event is done, or not at all. The handler
        neither commits nor rolls back itself.

        Raises:
            RuntimeError: the handler has ``transaction="own"``.
        """
        if self._connection is None:
            raise RuntimeError(
                'a handler with transaction="own" has no received.connection: it writes over its own connection, and '
                "calls received.done(connection) in the same transaction"
            )
        return self._connection

    def session(self) -> AbstractContextManager[Session]:
        """Open a SQLAlchemy ORM session in the transaction of ``connection``.

        It is flushed at the end of the with block, and commits together with the mark that the event is done. An
        exception that leaves the block rolls all back, also if the handler catches it; ``commit()`` is an error.

        Returns:
            A context manager, which yields the session.

        Raises:
            RuntimeError: the handler has ``transaction="own"``.
        """
        return transaction_on(self.connection).session()

    @clears_frames
    def done(self, connection: "connections.RecordingConnection") -> None:
        """Mark the event as done in a transaction of the handler's own, which has to commit before the handler returns.

        It is for handlers with ``transaction="own"``. The mark commits or rolls back with the handler's own writes. A
        handler that returns without it is called again.

        Args:
            connection: an open transaction in the database of the inbox: a SQLAlchemy ``Connection`` or ``Session``, a
                ``sqlite3.Connection``, a ``psycopg.Connection``, or a connection of Django.

        Raises:
            ValueError: the connection is in autocommit mode, or to another database; or the event is marked already; or
                the handler took longer than ``handler_timeout``, so that another one may have the event. Let it roll
                your transaction back.
            TypeError: the connection is of another kind.
            RuntimeError: the handler has not ``transaction="own"``; the inbox marks its event.
        """
        if self._mark is None:
            raise RuntimeError(
                'received.done() is for handlers with transaction="own"; the inbox marks this event itself'
            )
        self._mark(connection)


Handler = Callable[[Received], None]
H = TypeVar("H", bound=Handler)

TransactionKind = Literal["inbox", "own"]

OTHERWISE = "otherwise"
"""All types of events that have no handler."""

_SYNCHRONOUS = "handlers are synchronous functions"


@attrs.frozen
class Registration:
    """A handler.

    Attributes:
        function: the function of the user.
        has_own_transaction: whether it opens its transaction itself.
    """

    function: Callable[[Received], object]
    has_own_transaction: bool


class Handlers:
    """The handlers of an inbox.

    Attributes:
        watched: returns the function to call for a handler; a simulation watches the runs of each.
    """

    def __init__(self) -> None:
        self.watched: Callable[[Callable[[Received], object]], Callable[[Received], object]] = lambda function: function
        self._by_type: dict[str, Registration] = {}

    def add(self, handler: Handler, types: tuple[str, ...], transaction: TransactionKind) -> None:
        """Add the handler of these types of events; ``OTHERWISE`` is all that have none.

        Raises:
            ValueError: a type has a handler already; or the kind of transaction does not exist.
            TypeError: the handler is not a function that can be called directly.
        """
        registration = _registration(handler, transaction)
        for each in types:
            if each in self._by_type:
                raise ValueError(f"{each} has a handler already, {_name(self._by_type[each].function)}")
        self._by_type.update(dict.fromkeys(types, registration))

    def find(self, type: str) -> Registration | None:
        """Return the handler of a type, or None."""
        return self._by_type.get(type) or self._by_type.get(OTHERWISE)


def checked_types(types: tuple[object, ...]) -> tuple[str, ...]:
    """Check the types of events that a handler is for.

    Raises:
        ValueError: there is none, or one that does not exist.
    """
    if not types or callable(types[0]):
        raise ValueError('on() needs event types, such as @inbox.on("appointment.created"); or use otherwise')
    for each in types:
        if each not in EVENT_TYPES:
            raise ValueError(f"{each!r} is not an event type: it must be one of {', '.join(EVENT_TYPES)}")
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
