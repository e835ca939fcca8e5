"""An inbox in each kind of database, with a clock of its own."""

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Column, Engine, Integer, MetaData, String, Table
from support.databases import engine_of
from support.times import ManualTime
from support.webhook_events import SECRET, body_of, headers_of

from followup._store.leases import StoreTime
from followup.inbox import Inbox, Received

CALENDAR = Table(
    "calendar",
    MetaData(),
    Column("id", Integer, primary_key=True),
    Column("event_id", String(255)),
    Column("note", String(255)),
)
"""A table of the user, which handlers write to."""


class Desk(Inbox):
    """An inbox with what tests do with it, whose time stands still until the test advances it."""

    def __init__(self, database: str | Engine, **options: Any) -> None:
        super().__init__(database, **options)
        self._clock: StoreTime = ManualTime()

    def deliver(self, *args: Any, **fields: Any) -> int:
        """Receive an event with these fields, and return the status."""
        body = body_of(*args, **fields)
        return self.receive(body, headers_of(body))

    @classmethod
    def with_event(cls, database: str | Engine, **options: Any) -> "Desk":
        """Open an inbox with its tables and one event."""
        inbox = cls(database, secret=SECRET, **options)
        inbox.create_tables()
        assert inbox.deliver("whd_1") == 204
        return inbox

    def written(self) -> list[str]:
        """Return the ids of the events that handlers wrote about, in their order, as another program reads them."""
        return written(self._database.engine.url.render_as_string(hide_password=False))


@pytest.fixture
def inbox(database_url: str) -> Iterator[Desk]:
    """An inbox with its tables."""
    inbox = Desk(database_url, secret=SECRET, max_attempts=3)
    inbox.create_tables()
    with engine_of(database_url).begin() as connection:
        CALENDAR.create(connection)
    yield inbox
    inbox.close()


@pytest.fixture
def clock(inbox: Desk) -> ManualTime:
    """The clock of the inbox, which the test advances."""
    clock = inbox._clock = ManualTime()
    return clock


def write(received: Received, note: str = "") -> None:
    """Write a row about an event, as a handler of the user does."""
    received.connection.execute(CALENDAR.insert().values(event_id=received.event.id, note=note))


def written(url: str) -> list[str]:
    """Return the ids of the events that handlers wrote about, in their order, as another program reads them."""
    with engine_of(url).connect() as connection:
        return [row.event_id for row in connection.execute(CALENDAR.select().order_by(CALENDAR.c.id))]
