"""The tables of the inbox. Columns whose name ends in ``_at`` are milliseconds since the epoch."""

from typing import Final

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    UniqueConstraint,
)

from followup._store.schema import Schema
from followup._store.texts import LONGEST_TEXT, Reason

WAITING: Final = "waiting"
"""The event is handled once it is due and no older event of its ref waits."""

IN_FLIGHT: Final = "in_flight"
"""A process has claimed the event and is handling it, until its lease ends."""

DONE: Final = "done"
"""The transaction of the event's handler has committed."""

DEAD: Final = "dead"
"""The handler failed ``max_attempts`` times."""

UNHANDLED: Final = "unhandled"
"""There was no handler for the type of the event."""

metadata = MetaData()

EVENTS = Table(
    "followup_inbox",
    metadata,
    # The order in which events arrived.
    Column("seq", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("name", String(LONGEST_TEXT), nullable=False),
    Column("event_id", String(LONGEST_TEXT), nullable=False),
    Column("type", String(LONGEST_TEXT), nullable=False),
    Column("ref", String(LONGEST_TEXT), nullable=False),
    Column("occurred_at", BigInteger, nullable=False),
    # The raw body, which has personal data. A purge sets it to null and keeps the row, so that a delivery that is
    # repeated later is not handled again.
    Column("body", LargeBinary),
    Column("state", String(16), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("due_at", BigInteger, nullable=False),
    Column("received_at", BigInteger, nullable=False),
    Column("finished_at", BigInteger),
    Column("lease_token", String(32)),
    Column("lease_ends_at", BigInteger),
    # The exception of the last attempt, whose text may have personal data.
    Column("error", Reason),
    UniqueConstraint("name", "event_id", name="followup_inbox_event_id"),
)

Index("followup_inbox_by_state", EVENTS.c.name, EVENTS.c.state, EVENTS.c.occurred_at, EVENTS.c.seq)
Index("followup_inbox_by_ref", EVENTS.c.name, EVENTS.c.ref, EVENTS.c.state, EVENTS.c.occurred_at, EVENTS.c.seq)

CURSORS = Table(
    "followup_inbox_cursors",
    metadata,
    Column("name", String(LONGEST_TEXT), primary_key=True),
    Column("webhook_endpoint", String(LONGEST_TEXT), primary_key=True),
    # All deliveries created until then have been read from the service.
    Column("read_until_at", BigInteger, nullable=False),
)

SCHEMA = Schema("inbox", 1, (EVENTS, CURSORS))
