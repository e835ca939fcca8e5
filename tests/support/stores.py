"""An outbox and an inbox with their tables, each closed after the test."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine

from followup.inbox import Inbox
from followup.outbox import Outbox
from support.databases import engine_of
from support.webhook_events import SECRET


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
