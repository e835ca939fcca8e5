"""The tables come from the migrations of the app, and are those of ``ddl()``."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs
import pytest
from django.core.management import CommandError, call_command
from django.db import transaction
from support.connections import django_database
from support.django_apps import using

from followup import ConfigurationError
from followup.django import inbox, models, outbox
from followup.inbox import Inbox
from followup.inbox.arrivals import SCHEMA as OF_INBOX
from followup.outbox import Outbox
from followup.outbox import events as outbox_events

from .conftest import EVENT, forget


@pytest.fixture
def empty(database_url: str) -> Iterator[Any]:
    """The connection to a database without tables."""
    with using(database_url.partition(":")[0], django_database(database_url)) as connection:
        yield connection


def migrate(connection: Any, *target: str) -> None:
    call_command("migrate", "followup_django", *target, database=connection.alias, verbosity=0)


@pytest.mark.on_all
def test_the_tables_can_be_made_and_are_kept(empty: Any) -> None:
    migrate(empty)
    with transaction.atomic(using=empty.alias):
        outbox.record(EVENT)
    migrate(empty, "zero")  # events may wait
    migrate(empty)
    assert (outbox.status().waiting, inbox.status().waiting) == (1, 0)


def schema_of(file: Path) -> set[str]:
    with closing(sqlite3.connect(file)) as connection:
        return {row[0] for row in connection.execute("SELECT sql FROM sqlite_master WHERE name LIKE 'followup%'")}


def test_the_tables_are_those_of_ddl(empty: Any, sqlite_url: str, tmp_path: Path) -> None:
    migrate(empty)
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.executescript(outbox.ddl() + inbox.ddl())
    assert schema_of(tmp_path / "clinic.db") == schema_of(tmp_path / "other.db")


@pytest.mark.on_all
def test_tables_that_are_there_are_taken_over(empty: Any, database_url: str) -> None:
    for each in (Outbox(database_url), Inbox(database_url)):
        each.create_tables()
        each.close()
    with empty.cursor() as cursor:
        cursor.execute(
            "INSERT INTO followup_inbox (name, event_id, type, ref, occurred_at, state, attempts, due_at, received_at) "
            "VALUES ('default', 'whd_1', 'patient.upserted', 'pat_1', 0, 'waiting', 0, 0, 0)"
        )
    migrate(empty)
    assert inbox.status().oldest_waiting_seconds
    assert outbox.status().waiting == 0


@pytest.mark.on_all
def test_tables_of_an_earlier_version_are_brought_up_to_date(empty: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a migration of a later release does."""
    migrate(empty)
    migrations = {2: ["ALTER TABLE followup_outbox ADD COLUMN note TEXT"]}
    later = attrs.evolve(outbox_events.SCHEMA, version=2, migrations=migrations)
    monkeypatch.setattr(outbox_events, "SCHEMA", later)
    with empty.schema_editor() as editor:
        models.make_tables(None, editor)
    with empty.cursor() as cursor:
        cursor.execute("SELECT note FROM followup_outbox")
        cursor.execute("SELECT version FROM followup_schema WHERE component = 'outbox'")
        assert [*cursor.fetchall()] == [(2,)]
    monkeypatch.undo()
    with pytest.raises(ConfigurationError, match=r"version 2, and this release .* knows version 1 only"):
        models.missing_tables(empty)


def test_each_version_has_a_migration_and_no_model_has_changed(empty: Any) -> None:
    files = [*Path(models.__file__).parent.joinpath("migrations").glob("0*.py")]
    assert len(files) == outbox_events.SCHEMA.version + OF_INBOX.version - 1
    call_command("makemigrations", "followup_django", check=True, dry_run=True, verbosity=0)


def test_a_test_empties_the_tables_as_those_of_any_model(connection: Any) -> None:
    with transaction.atomic(using=connection.alias):
        outbox.record(EVENT)
    assert connection.introspection.django_table_names(only_existing=True) >= [
        "followup_inbox",
        "followup_inbox_cursors",
        "followup_outbox",
        "followup_outbox_rates",
    ]
    call_command("flush", database=connection.alias, interactive=False, verbosity=0, inhibit_post_migrate=True)
    forget()
    assert outbox.status().waiting == 0


def test_create_tables_names_the_migration(empty: Any) -> None:
    with pytest.raises(Exception, match=r"run manage.py migrate followup_django"):
        outbox.create_tables()
    with pytest.raises(CommandError, match=r"run manage.py migrate followup_django"):
        call_command("followup_status")
