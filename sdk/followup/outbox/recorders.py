"""Finds the trace in which the cause of a webhook was recorded.

A clinic records an event about its appointment, a relay sends it, and the service then sends a webhook about the same
appointment. The external id of the appointment connects the two.
"""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import inspect, select

from followup._store.database import Database
from followup.outbox.events import as_input, subject_of_appointment
from followup.outbox.tables import EVENTS

_LATEST = 20
"""Events of an appointment that are looked at."""


def recorder_of(database: Database, name: str, event_type: str, data: Mapping[str, Any]) -> str | None:
    """Return the trace context in which the event that probably caused a webhook was recorded.

    Args:
        database: the database of the inbox.
        name: name of the inbox, which an outbox for the same organization has too.
        event_type: type of the webhook.
        data: data of the webhook.

    Returns:
        That of the latest event about the same appointment, of the same type if there is one. None if there is no such
        event, no outbox in the database, or if the event was recorded outside of a trace or under another subject.
    """
    subject = subject_of_appointment(data)
    if subject is None:
        return None
    latest = (
        select(EVENTS.c.event, EVENTS.c.trace_context)
        .where(
            EVENTS.c.name == name,
            EVENTS.c.blocks_subject.in_((True, False)),  # any, so that the index is used
            EVENTS.c.subject == subject,
            EVENTS.c.trace_context.is_not(None),
        )
        .order_by(EVENTS.c.seq.desc())
        .limit(_LATEST)
    )
    with database.transaction() as connection:
        if not inspect(connection).has_table(EVENTS.name):
            return None
        rows = connection.execute(latest).all()
    of_this_type = [row for row in rows if as_input(row.event)["type"] == event_type]
    found: str | None = next((row.trace_context for row in [*of_this_type, *rows]), None)
    return found
