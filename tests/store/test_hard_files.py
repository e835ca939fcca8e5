"""Files and servers that fail: missing, locked, read-only, full, in WAL mode, and shared over a fork."""

import logging
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import URL, Engine, create_engine, event
from sqlalchemy.exc import OperationalError
from support.databases import with_psycopg
from support.stores import receive
from support.systems import needs_modes
from support.times import ManualTime
from support.webhook_events import SECRET, body_of, headers_of

from followup import ConfigurationError, FollowUp, PatientInput, inbound
from followup.inbox import Inbox, Received
from followup.outbox import Outbox

PATIENT: PatientInput = {"full_name": "Ana Núñez", "phone": "+5491155550000"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "clinic.db"


def stores(database: Any) -> tuple[Outbox, Inbox]:
    return Outbox(database), Inbox(database, secret=SECRET)


def created(database: Any) -> tuple[Outbox, Inbox]:
    found = stores(database)
    for each in found:
        each.create_tables()
    return found


ACTIONS: dict[str, Callable[[Outbox, Inbox, FollowUp], object]] = {
    "outbox.status": lambda outbox, _, __: outbox.status(),
    "outbox.run": lambda outbox, _, client: outbox.run(client),
    "inbox.retry": lambda _, inbox, __: inbox.retry(),
    "inbox.drain": lambda _, inbox, __: inbox.drain(),
    "inbox.catch_up": lambda _, inbox, client: inbox.catch_up(client),
}


@pytest.mark.parametrize("action", ACTIONS.values(), ids=ACTIONS.keys())
def test_a_misspelt_path_is_named_and_leaves_no_file_behind(
    path: Path, client: FollowUp, action: Callable[[Outbox, Inbox, FollowUp], object]
) -> None:
    outbox, inbox = stores(f"sqlite:///{path}")
    with pytest.raises(ConfigurationError, match=r"^database is the file .*clinic.db, which does not exist"):
        action(outbox, inbox, client)
    assert [*path.parent.iterdir()] == []


def test_a_webhook_for_a_missing_file_is_503_and_leaves_no_file_behind(path: Path) -> None:
    _, inbox = stores(f"sqlite:///{path}")
    assert receive(inbox) == 503
    assert [*path.parent.iterdir()] == []
    inbox.create_tables()
    assert receive(inbox) == 204


def test_a_file_that_disappears_does_not_become_an_empty_one(path: Path) -> None:
    _, inbox = created(f"sqlite:///{path}")
    assert receive(inbox) == 204
    path.rename(path.with_suffix(".away"))
    with pytest.raises(OperationalError, match="unable to open database file"):
        inbox.status()
    assert receive(inbox, "whd_2") == 503
    assert not path.exists()
    path.with_suffix(".away").rename(path)
    assert receive(inbox, "whd_2") == 204


@pytest.mark.parametrize("name", ["clínica núñez.db", "50%20off.db", "a&b=c;d#e.db"])
def test_any_name_of_a_file_is_taken(tmp_path: Path, name: str) -> None:
    _, inbox = created(URL.create("sqlite", database=str(tmp_path / name)))
    assert receive(inbox) == 204
    assert [each.name for each in tmp_path.iterdir()] == [name]


def test_a_relative_path_belongs_to_the_folder_of_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _, inbox = created("sqlite:///clinic.db")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    assert receive(inbox) == 204
    assert [*(tmp_path / "other").iterdir()] == []


def test_a_locked_file_is_503_before_the_service_gives_up(path: Path) -> None:
    _, inbox = created(f"sqlite:///{path}")
    with closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert receive(inbox) == 503
    assert receive(inbox) == 204


def test_receive_waits_for_a_few_seconds_and_other_work_as_long_as_the_engine_says(path: Path) -> None:
    engine = create_engine(f"sqlite:///{path}", connect_args={"timeout": 17})
    _, inbox = created(engine)
    inbox.status()
    waits: list[int] = []

    def note(connection: Any, cursor: Any, *_: object) -> None:
        waits.append(connection.connection.driver_connection.execute("PRAGMA busy_timeout").fetchone()[0])

    event.listen(engine, "before_cursor_execute", note)
    assert receive(inbox) == 204
    assert {*waits} == {2500}
    waits.clear()
    inbox.status()
    assert {*waits} == {17_000}
    engine.dispose()


def test_the_limit_of_receive_ends_with_its_transaction_in_postgresql(postgresql_url: str) -> None:
    engine = create_engine(with_psycopg(postgresql_url), pool_size=1, max_overflow=0)
    _, inbox = created(engine)
    statements: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda *arguments: statements.append(arguments[2]))
    assert receive(inbox) == 204
    assert statements.count("SET LOCAL statement_timeout = 2500") == 2, "for the version, and for the event"
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SHOW statement_timeout").scalar_one() == "0"
    engine.dispose()


def read_only(path: Path) -> Engine:
    return create_engine(f"sqlite:///file:{path}?mode=ro&uri=true")


def full(path: Path) -> Engine:
    engine = create_engine(f"sqlite:///{path}")

    @event.listens_for(engine, "connect")
    def limit(connection: Any, _: object) -> None:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages}")

    return engine


@pytest.mark.parametrize("open_engine", [read_only, full])
def test_a_disk_that_takes_no_data_is_503_and_the_log_shows_no_data(
    path: Path, open_engine: Callable[[Path], Engine], caplog: pytest.LogCaptureFixture
) -> None:
    created(f"sqlite:///{path}")
    engine = open_engine(path)
    outbox, inbox = stores(engine)
    body = body_of("whd_1", notes="n" * 100_000)
    with caplog.at_level(logging.DEBUG):
        assert inbox.receive(body, headers_of(body)) == 503
        large = inbound.order_issued(id="e1", patient=PATIENT, order={"notes": "n" * 100_000})
        with pytest.raises(OperationalError) as caught, engine.begin() as connection:
            outbox.record(connection, large)
    assert "Ana" not in caplog.text + str(caught.value)
    assert "5555" not in caplog.text + str(caught.value)
    assert "read" in caplog.text or "full" in caplog.text
    engine.dispose()
    outbox, inbox = stores(f"sqlite:///{path}")
    assert (outbox.status().waiting, inbox.status().waiting) == (0, 0)
    assert inbox.receive(body, headers_of(body)) == 204


def test_the_statements_that_sqlalchemy_logs_show_no_data(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "sqlalchemy.engine")
    _, inbox = created(f"sqlite:///{path}")
    inbox._clock = ManualTime()

    @inbox.otherwise
    def reject(_: Received) -> None:
        raise ValueError("+5491155550000 is no phone")

    assert receive(inbox) == 204
    assert inbox.drain().failed == 1
    assert "UPDATE followup_inbox" in caplog.text
    assert "115555" not in caplog.text


@needs_modes
def test_others_than_owner_and_group_cannot_open_a_new_file(path: Path) -> None:
    before = os.umask(0)
    try:
        created(f"sqlite:///{path}")
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o660
