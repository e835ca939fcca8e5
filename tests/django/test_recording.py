"""``outbox.record`` over Django's own connection, and what ``outbox.recorded`` returns in a test."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from django.db import connection as default_connection
from django.db import transaction
from support.django_apps import using

from followup import ConfigurationError
from followup.django import client, outbox
from followup.django.models import make_tables
from followup.outbox import Outbox
from followup_mockserver import MockService

from .conftest import EVENT

pytestmark = pytest.mark.on_all


def test_an_event_commits_and_rolls_back_with_the_transaction(connection: Any) -> None:
    with suppress(LookupError), transaction.atomic(using=connection.alias):
        outbox.record(EVENT)
        raise LookupError
    assert outbox.status().waiting == 0
    with transaction.atomic(using=connection.alias):
        event_id = outbox.record(EVENT, subject="T-1")
        assert outbox.status().waiting == 0
    assert outbox.status().waiting == 1
    with MockService() as service:
        assert outbox.drain(service.client()).sent == 1
        assert service.client().events.create([{**EVENT, "id": event_id}]).results[0].status == "duplicate"


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_a_transaction_may_set_the_search_path_for_its_own_tables(connection: Any) -> None:
    """Also the first one of a process, before which nobody has looked for the tables."""
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        cursor.execute("SET LOCAL search_path = nowhere")
        outbox.record(EVENT)
        cursor.execute("SHOW search_path")
        assert cursor.fetchone() == ("nowhere",)
    assert outbox.status().waiting == 1


def test_without_a_transaction_of_its_database_it_is_an_error(connection: Any) -> None:
    errors: list[str] = []

    def record() -> None:
        with pytest.raises(ValueError, match=r"outbox.record\(\) needs an open transaction") as caught:
            outbox.record(EVENT)
        errors.append(str(caught.value))

    record()
    with transaction.atomic(using="default"):
        record()
    with transaction.atomic(using=connection.alias):
        transaction.on_commit(record, using=connection.alias)
    assert len(errors) == 3
    assert f"transaction.atomic(using={connection.alias!r})" in errors[0]
    assert outbox.status().waiting == 0


def test_a_connection_is_named_as_what_it_does_not_take(connection: Any) -> None:
    with transaction.atomic(using=connection.alias):
        for wrong in (connection, default_connection):
            with pytest.raises(TypeError, match=r"followup.django takes no connection: pass the event alone"):
                outbox.record(wrong, EVENT)  # type: ignore[arg-type]
    assert outbox.status().waiting == 0


def test_recorded_lists_what_this_transaction_has_recorded(connection: Any) -> None:
    assert outbox.recorded() == []
    with transaction.atomic(using=connection.alias):
        outbox.record({**EVENT, "id": "earlier"})
    with transaction.atomic(using=connection.alias):
        assert outbox.recorded() == []
        outbox.record({**EVENT, "id": "b"})
        with suppress(LookupError), transaction.atomic(using=connection.alias):
            outbox.record({**EVENT, "id": "undone"})
            raise LookupError
        outbox.record({**EVENT, "id": "a"}, subject="Núñez")
        assert outbox.recorded() == [
            {"id": "b", "type": "appointment.created", "data": EVENT["data"], "subject": "appointment:T-1"},
            {"id": "a", "type": "appointment.created", "data": EVENT["data"], "subject": "Núñez"},
        ]
    assert outbox.recorded() == []


def test_it_is_accepted_wherever_an_outbox_is(connection: Any) -> None:
    assert isinstance(outbox, Outbox)
    for name in dir(Outbox):
        assert hasattr(outbox, name)
    with MockService() as service:
        client._stand_for(service.client())
        try:
            with transaction.atomic(using=connection.alias):
                outbox.record(EVENT)
            assert outbox.drain(client).sent == 1
            assert client.with_options(timeout=3).account.retrieve().livemode is False
        finally:
            client._stand_for(None)


@pytest.mark.parametrize("use", [outbox.status, outbox.dead, lambda: outbox.record(EVENT)])
def test_without_tables_the_error_names_the_migration(connection: Any, use: Callable[[], object]) -> None:
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE followup_schema")
    with (
        transaction.atomic(using=connection.alias),
        pytest.raises(ConfigurationError, match=r"has no tables of the outbox: run manage.py migrate followup_django"),
    ):
        use()


def test_what_a_transaction_in_memory_has_locked_is_an_error_that_names_the_remedy() -> None:
    memory = {"ENGINE": "django.db.backends.sqlite3", "NAME": "file:locked?mode=memory&cache=shared"}
    with using("locked", memory) as connection:
        with connection.schema_editor() as editor:
            make_tables(None, editor)
        with transaction.atomic(using="locked"):
            assert outbox.status().waiting == 0
            outbox.record(EVENT)
            with pytest.raises(RuntimeError, match="use TransactionTestCase, transactional_db or followup_django"):
                outbox.status()


OPEN = {
    "postgresql": "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%followup%'",
    "mysql": "SELECT count(*) FROM information_schema.processlist WHERE db = database()",
}
"""Counts the connections to a database, of those that run at the same time."""


def test_no_connection_stays_open(connection: Any) -> None:
    """PostgreSQL cannot drop a database that somebody is connected to."""
    with transaction.atomic(using=connection.alias):
        outbox.record(EVENT)
    outbox.status()
    with MockService() as service:
        outbox.drain(service.client())
    if connection.vendor != "sqlite":
        with connection.cursor() as cursor:
            cursor.execute(OPEN[connection.vendor])
            assert cursor.fetchone() == (1,)
