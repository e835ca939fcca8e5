"""An event that a handler gets."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import attrs
from sqlalchemy import Connection
from sqlalchemy.orm import Session

from followup._frames import clears_frames
from followup.inbox.transactions import transaction_on
from followup.webhooks import WebhookEvent

if TYPE_CHECKING:
    from followup.outbox.connections import RecordingConnection


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
    _mark: "Callable[[RecordingConnection], None] | None" = attrs.field(default=None, repr=False)

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
    def done(self, connection: "RecordingConnection") -> None:
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
