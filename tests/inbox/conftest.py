"""An inbox in each kind of database."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.webhook_events import SECRET, body_of, headers_of

from followup.inbox import Inbox

Deliver = Callable[..., int]


@pytest.fixture
def inbox(database_url: str) -> Iterator[Inbox]:
    """An inbox with its tables."""
    inbox = Inbox(database_url, secret=SECRET)
    inbox.create_tables()
    yield inbox
    inbox.close()


@pytest.fixture
def deliver(inbox: Inbox) -> Deliver:
    """Return a function that lets the inbox receive an event with these fields, and returns the status."""

    def send(*args: Any, **fields: Any) -> int:
        body = body_of(*args, **fields)
        return inbox.receive(body, headers_of(body))

    return send
