"""An outbox and an inbox with their tables, each closed after the test."""

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Engine

from followup import inbound
from followup.inbox import Inbox
from followup.outbox import Outbox
from support.databases import engine_of
from support.webhook_events import SECRET, body_of, headers_of


def record(outbox: Outbox, engine: Engine, *events: Any) -> None:
    """Record events in one transaction; text is the id of an event without data."""
    with engine.begin() as connection:
        for each in events:
            event = inbound.order_issued(id=each, patient={}, order={}) if isinstance(each, str) else each
            outbox.record(connection, event)


def receive(inbox: Inbox, id: str = "whd_1") -> int:
    """Receive a genuine webhook, and return the status."""
    body = body_of(id)
    return inbox.receive(body, headers_of(body))


@pytest.fixture
def engine(database_url: str) -> Engine:
    """An Engine for the database of the stores."""
    return engine_of(database_url)


@pytest.fixture
def outbox(database_url: str) -> Iterator[Outbox]:
    """An outbox with its tables."""
    outbox = Outbox(database_url)
    outbox.create_tables()
    yield outbox
    outbox.close()


@pytest.fixture
def inbox(database_url: str) -> Iterator[Inbox]:
    """An inbox with its tables."""
    inbox = Inbox(database_url, secret=SECRET)
    inbox.create_tables()
    yield inbox
    inbox.close()
