"""Stores the events that arrive, each once."""

from collections.abc import Iterable

import attrs
from sqlalchemy import Connection

from followup._results.errors import WebhookSignatureError
from followup._store.clock import StoreTime, sql_time
from followup._store.statements import insert_if_absent
from followup._store.texts import checked_text
from followup.inbox.tables import EVENTS, WAITING
from followup.webhooks import WebhookEvent


@attrs.frozen
class Arrival:
    """An event that can be stored, and its body."""

    event: WebhookEvent
    body: bytes = attrs.field(repr=False)
    occurred_at: int


def checked_arrival(event: WebhookEvent, body: bytes) -> Arrival:
    """Return a genuine event as an arrival.

    Raises:
        WebhookSignatureError: it has a field that cannot be stored.
    """
    try:
        for name in ("id", "type", "ref"):
            checked_text(getattr(event, name), name)
    except ValueError as error:
        raise WebhookSignatureError(f"payload is not an event: {error}", reason="malformed_payload") from None
    return Arrival(event, body, round(event.occurred_at.timestamp() * 1000))


def store(connection: Connection, name: str, clock: StoreTime, arrivals: Iterable[Arrival]) -> int:
    """Store the events that the inbox does not know, and return how many these are."""
    return sum(_is_added(connection, name, clock, each) for each in arrivals)


def _is_added(connection: Connection, name: str, clock: StoreTime, arrival: Arrival) -> bool:
    dialect = connection.dialect.name
    inserting = insert_if_absent(
        EVENTS,
        dialect,
        name=name,
        event_id=arrival.event.id,
        type=arrival.event.type,
        ref=arrival.event.ref,
        occurred_at=arrival.occurred_at,
        body=arrival.body,
        state=WAITING,
        attempts=0,
        due_at=0,
        received_at=sql_time(dialect, clock),
    )
    if dialect == "postgresql":
        # SQLAlchemy does not keep the number of inserted rows there; older versions of SQLite do not know RETURNING.
        return connection.execute(inserting.returning(EVENTS.c.seq)).one_or_none() is not None
    return connection.execute(inserting.inline()).rowcount == 1
