"""A Django project on each kind of database, whose tables are those of its migrations."""

from collections.abc import Iterator
from typing import Any

import pytest
from support.connections import django_database
from support.django_apps import set_up, using
from support.webhook_events import body_of, headers_of

set_up()


from followup.django import inbox, outbox  # noqa: E402
from followup.django.models import make_tables  # noqa: E402
from followup.django.stores import AtomicHandlers  # noqa: E402

EVENT: Any = {
    "type": "appointment.created",
    "data": {
        "patient": {"phone": "+54 9 11 5555-0000", "fullName": "Ana Núñez"},
        "appointment": {"externalId": "T-1", "startAt": "2030-01-01T10:00:00Z"},
    },
}

CALENDAR = "CREATE TABLE calendar (event_id VARCHAR(255))"


@pytest.fixture
def connection(database_url: str) -> Iterator[Any]:
    """The connection of Django to a database with the tables; ``FOLLOWUP`` names its alias."""
    with using(database_url.partition(":")[0], django_database(database_url)) as connection:
        with connection.schema_editor() as editor:
            make_tables(None, editor)
            editor.execute(CALENDAR)
        yield connection


@pytest.fixture(autouse=True)
def new_stores() -> None:
    """Forget the handlers of other tests, and their databases, which differ only in a schema."""
    inbox.__dict__["_handlers"] = AtomicHandlers()
    forget()


def forget() -> None:
    """Forget that the tables were checked, as a new process does."""
    for each in (inbox, outbox):
        each.__dict__["_made"] = None


def deliver(*args: Any, **fields: Any) -> int:
    """Receive an event with these fields, and return the status."""
    body = body_of(*args, **fields)
    return inbox.receive(body, headers_of(body))


def written(connection: Any) -> list[str]:
    """Return the ids of the events that handlers wrote about."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT event_id FROM calendar ORDER BY event_id")
        return [row[0] for row in cursor.fetchall()]


def write(connection: Any, event_id: str) -> None:
    """Write a row about an event, as a handler does."""
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO calendar VALUES (%s)", [event_id])
