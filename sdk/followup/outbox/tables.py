"""The tables of the outbox. Columns whose name ends in ``_at`` are milliseconds since the epoch."""

from typing import Final

from sqlalchemy import BigInteger, Boolean, Column, Double, Index, Integer, MetaData, String, Table, Text

from followup._annotations import MAX_EVENTS_PER_BATCH
from followup._store.schema import LONGEST_TEXT, Schema, event_table

SENT: Final = "sent"
"""The service accepted the event."""

DISCARDED: Final = "discarded"
"""A person gave the dead event up."""

EVENTS = event_table(
    "followup_outbox",
    Column("subject", String(LONGEST_TEXT), nullable=False),
    Column("event", Text, nullable=False),
    # Whether later events of the subject wait for this one: true until it is accepted or given up.
    Column("blocks_subject", Boolean, nullable=False),
    Column("recorded_at", BigInteger, nullable=False),
    # The largest batch in which the event may be sent; less after a batch that the service rejected as a whole.
    Column("batch_limit", Integer, nullable=False),
    # Nothing is written here any more; earlier releases linked traces with it.
    Column("trace_context", Text),
)

Index("followup_outbox_by_state", EVENTS.c.name, EVENTS.c.state, EVENTS.c.seq)
# The first event of each subject that is not finished, and what waits behind it.
Index(
    "followup_outbox_by_order",
    EVENTS.c.name,
    EVENTS.c.blocks_subject,
    EVENTS.c.subject,
    EVENTS.c.seq,
    EVENTS.c.state,
    EVENTS.c.due_at,
)

RATES = Table(
    "followup_outbox_rates",
    MetaData(),
    Column("name", String(LONGEST_TEXT), primary_key=True),
    # The time from which a whole burst may be sent again; each call moves it.
    Column("full_burst_at", Double, nullable=False),
    # No call is made before: the service asked for that, or calls fail one after another.
    Column("not_before", BigInteger, nullable=False),
    Column("failures_in_a_row", Integer, nullable=False),
)

CALLS = Table(
    "followup_outbox_calls",
    MetaData(),
    Column("lease_token", String(32), primary_key=True),
    Column("name", String(LONGEST_TEXT), nullable=False),
    # While a call is in flight, the end of its lease. The service has received it by then, if at all.
    Column("ends_at", BigInteger, nullable=False),
)
Index("followup_outbox_calls_by_end", CALLS.c.name, CALLS.c.ends_at)

_BY_ORDER = "followup_outbox_by_order ON followup_outbox (name, blocks_subject, subject, seq, state, due_at)"
_TO_VERSION_2 = (
    f"CREATE INDEX IF NOT EXISTS {_BY_ORDER}",
    "DROP INDEX IF EXISTS followup_outbox_by_subject",
)

OLDER_SUBJECTS: Final = "outbox_subjects"
"""The row of ``followup_locks`` that a relay removes when it has renewed the default subjects of earlier releases."""

# No SQL can compute the present ones.
_TO_VERSION_3 = (
    f"INSERT INTO followup_locks (name, times_taken) VALUES ('{OLDER_SUBJECTS}', 0) ON CONFLICT DO NOTHING",  # noqa: S608 - a constant
)

SCHEMA = Schema("outbox", 3, (EVENTS, RATES, CALLS), {2: _TO_VERSION_2, 3: _TO_VERSION_3})

LARGEST_BATCH = MAX_EVENTS_PER_BATCH
