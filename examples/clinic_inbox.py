"""What the clinic does with webhooks: the work behind its receivers.

Set the environment variables FOLLOWUP_DATABASE_URL and FOLLOWUP_WEBHOOK_SECRET, and run it with
``python clinic_inbox.py``, beside a receiver.
"""

import os

from sqlalchemy import Column, MetaData, String, Table, create_engine

from followup.inbox import Inbox, Received

DIARY = Table(
    "diary",
    MetaData(),
    Column("occurred_at", String),
    Column("type", String),
    Column("ref", String),
)
"""The clinic's own table, which gets a line about each event."""


def create_inbox(database: str | None = None, secret: str | None = None) -> Inbox:
    """Return the clinic's inbox; database and secret default to the environment variables."""
    url = database or os.environ["FOLLOWUP_DATABASE_URL"]
    inbox = Inbox(url, secret=secret)
    inbox.create_tables()
    engine = create_engine(url)
    DIARY.create(engine, checkfirst=True)
    engine.dispose()

    @inbox.otherwise
    def write_diary(received: Received) -> None:
        event = received.event
        # Commits together with the mark that the event is done, so each event has one line.
        received.connection.execute(
            DIARY.insert().values(
                occurred_at=event.occurred_at.isoformat(), type=event.type, ref=event.ref
            )
        )

    return inbox


if __name__ == "__main__":
    create_inbox().run()
