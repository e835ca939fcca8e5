"""The tables of the inbox. Columns whose name ends in ``_at`` are milliseconds since the epoch."""

from typing import Final

from sqlalchemy import BigInteger, Column, Index, LargeBinary, MetaData, String, Table

from followup._store.schema import LONGEST_TEXT, Schema, event_table

DONE: Final = "done"
"""The transaction of the event's handler has committed."""

UNHANDLED: Final = "unhandled"
"""There was no handler for the type of the event."""

# Its errors are the exceptions of handlers, whose texts may have personal data.
EVENTS = event_table(
    "followup_inbox",
    Column("type", String(LONGEST_TEXT), nullable=False),
    Column("ref", String(LONGEST_TEXT), nullable=False),
    Column("occurred_at", BigInteger, nullable=False),
    # The raw body, which has personal data. A purge sets it to null and keeps the row, so that a delivery that is
    # repeated later is not handled again.
    Column("body", LargeBinary),
    Column("received_at", BigInteger, nullable=False),
)

Index("followup_inbox_by_state", EVENTS.c.name, EVENTS.c.state, EVENTS.c.occurred_at, EVENTS.c.seq)
Index("followup_inbox_by_ref", EVENTS.c.name, EVENTS.c.ref, EVENTS.c.state, EVENTS.c.occurred_at, EVENTS.c.seq)

CURSORS = Table(
    "followup_inbox_cursors",
    MetaData(),
    Column("name", String(LONGEST_TEXT), primary_key=True),
    Column("webhook_endpoint", String(LONGEST_TEXT), primary_key=True),
    # All deliveries created until then have been read from the service.
    Column("read_until_at", BigInteger, nullable=False),
)

SCHEMA = Schema("inbox", 1, (EVENTS, CURSORS))
