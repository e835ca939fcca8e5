"""After ``erase``, neither a SQLite file nor its log has copies of what was removed."""

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from sqlalchemy import Engine
from sqlalchemy.pool import QueuePool, StaticPool
from support.stores import record

from followup import FollowUpError, inbound
from followup._store.person import Person
from followup.outbox import Outbox

from .conftest import PERSON, marks_in

FORGETFUL = "PRAGMA secure_delete = OFF; PRAGMA journal_mode = "
"""How a connection begins. Where SQLite overwrites what it deletes by default, the tests would see less."""


def opened(file: Path, mode: str, **options: Any) -> Engine:
    def connect(connection: Any, _: object) -> None:
        connection.executescript(FORGETFUL + mode)

    engine = sqlalchemy.create_engine(f"sqlite:///{file}", **options)
    sqlalchemy.event.listen(engine, "connect", connect)
    return engine


def fill(outbox: Outbox, engine: Engine) -> None:
    """Record the person's events among those of others, so that cells move between pages; half of all are purged."""
    choose = random.Random(3)
    others = [{"phone": f"+54911{number:08}", "fullName": "Ana" * choose.randrange(40)} for number in range(150)]
    people: list[Any] = [*others, *[PERSON] * 30]
    choose.shuffle(people)
    record(outbox, engine, *({"type": "patient.upserted", "data": {"patient": each}} for each in people))
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE followup_outbox SET state = 'sent', blocks_subject = 0, finished_at = 5")
        connection.exec_driver_sql("UPDATE followup_outbox SET subject = subject || ' ' || hex(randomblob(50))")
        connection.exec_driver_sql("DELETE FROM followup_outbox WHERE seq % 3 = 0")


@pytest.mark.parametrize("pool", [None, QueuePool])
@pytest.mark.parametrize("mode", ["DELETE", "WAL", "PERSIST", "TRUNCATE", "MEMORY"])
def test_nothing_is_left_in_the_file_and_its_log(tmp_path: Path, mode: str, pool: Any) -> None:
    file = tmp_path / "clinic.db"
    engine = opened(file, mode, poolclass=pool)
    outbox = Outbox(engine)
    outbox.create_tables()
    fill(outbox, engine)
    url = f"sqlite:///{file}"
    assert len(marks_in(url)) == 5
    with closing(engine.connect()) as another:  # which reads now and then, but nothing now
        another.exec_driver_sql("SELECT COUNT(*) FROM followup_outbox").all()
        another.rollback()
        assert outbox.erase(dni="30111222") > 15
        assert marks_in(url) == set()
    with engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar_one() == mode.lower()
        assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar_one() == 5000
    engine.dispose()
    assert marks_in(url) == set()
    record(outbox, engine, inbound.order_issued(id="later", patient={}, order={}))
    engine.dispose()


@pytest.fixture
def busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Outbox, sqlite3.Connection, str]]:
    """An outbox with the person's events, and a connection that reads from its file, in the middle of a transaction."""
    monkeypatch.setattr("followup._store.rows._WAIT", 0.001)
    file = tmp_path / "clinic.db"
    engine = opened(file, "WAL")
    outbox = Outbox(engine)
    outbox.create_tables()
    fill(outbox, engine)
    with closing(sqlite3.connect(file, isolation_level=None)) as reader:
        reader.execute("BEGIN").execute("SELECT COUNT(*) FROM followup_outbox").fetchall()
        yield outbox, reader, f"sqlite:///{file}"
    engine.dispose()


def test_a_file_in_use_is_written_anew_by_the_next_call(busy: tuple[Outbox, sqlite3.Connection, str]) -> None:
    outbox, reader, url = busy
    for _ in range(2):
        with pytest.raises(FollowUpError, match=r"^the rows are changed, but .* \(the log is in use\): do "):
            outbox.erase(phone=PERSON["phone"])
    assert outbox.export(phone=PERSON["phone"]) == []
    assert marks_in(url)
    reader.execute("COMMIT")
    assert outbox.erase(phone=PERSON["phone"]) == 0
    assert marks_in(url) == set()


def test_others_write_between_its_tries(busy: tuple[Outbox, sqlite3.Connection, str]) -> None:
    """A try that waits for a reader keeps all writers waiting, for half a minute if it were a single one."""
    outbox, reader, url = busy
    pauses: list[float] = []

    def wait(seconds: float, stop: object) -> None:
        pauses.append(seconds)
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"), timeout=0)) as writer:
            writer.execute("UPDATE followup_schema SET version = version")
            writer.commit()
        if len(pauses) == 3:
            reader.execute("COMMIT")

    outbox._clock.wait = wait  # type: ignore[method-assign]
    assert outbox.erase(phone=PERSON["phone"]) > 15
    assert len(pauses) == 3
    assert marks_in(url) == set()


def test_a_vacuum_that_fails_says_so(busy: tuple[Outbox, sqlite3.Connection, str]) -> None:
    outbox, reader, _ = busy
    reader.execute("COMMIT")
    outbox._erase(Person(dni="30111222"), waiting=False)
    reader.execute("BEGIN IMMEDIATE")
    with pytest.raises(FollowUpError, match=r"\(OperationalError: database is locked\): do the same again"):
        outbox._scrub()


def test_a_database_in_memory_has_no_file(tmp_path: Path) -> None:
    engine = sqlalchemy.create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
    outbox = Outbox(engine)
    outbox.create_tables()
    fill(outbox, engine)
    with engine.connect() as connection:
        connection.exec_driver_sql("SELECT 1")
        assert outbox.erase(phone=PERSON["phone"]) > 15
    assert outbox.export(phone=PERSON["phone"]) == []
    engine.dispose()
