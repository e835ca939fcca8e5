"""A sequence of PostgreSQL that is behind the rows, as logical replication and a copy of rows leave it."""

from pathlib import Path

import pytest
from sqlalchemy import Engine
from sqlalchemy.exc import IntegrityError
from support.connections import (
    Open,
    django_connection,
    on_kinds,
    psycopg_connection,
    psycopg_pipeline,
    sqlalchemy_connection,
)
from support.databases import execute
from support.stores import receive, record

from followup import inbound
from followup._store.execution import reason_of
from followup.imports import Import
from followup.inbox import Inbox
from followup.outbox import Outbox

KINDS = [sqlalchemy_connection, django_connection, psycopg_connection, psycopg_pipeline]
MAP = """kind = "patients"
zone = "UTC"
country = "AR"
[columns]
"patient.external_id" = "id"
"patient.phone" = "phone"
"""


def set_back(engine: Engine, table: str, column: str = "seq") -> None:
    execute(engine, f"SELECT setval(pg_get_serial_sequence('{table}', '{column}'), 1, false)")


def ids(engine: Engine, table: str) -> list[str]:
    with engine.connect() as connection:
        return [*connection.exec_driver_sql(f"SELECT event_id FROM {table} ORDER BY seq").scalars()]


@on_kinds("opened", postgresql=KINDS)
def test_record_raises_and_says_what_to_do(outbox: Outbox, engine: Engine, database_url: str, opened: Open) -> None:
    record(outbox, engine, "e1", "e2", "e3")
    set_back(engine, "followup_outbox")
    execute(engine, "CREATE TABLE bookings (id INTEGER)")
    with opened(database_url) as (connection, run, commit):
        run("INSERT INTO bookings VALUES (1)")
        assert outbox.record(connection, inbound.order_issued(id="e1", patient={}, order={})) == "e1"
        with pytest.raises(Exception, match="followup_outbox_pkey") as caught:
            outbox.record(connection, inbound.order_issued(id="new", patient={}, order={}))
        commit()
    (advice,) = caught.value.__notes__
    assert "set its sequence or AUTO_INCREMENT to more than the highest number" in advice
    assert ids(engine, "followup_outbox") == ["e1", "e2", "e3"]
    with engine.begin() as own:
        assert own.exec_driver_sql("SELECT count(*) FROM bookings").scalar_one() == 1
        own.exec_driver_sql("SELECT setval(pg_get_serial_sequence('followup_outbox', 'seq'), 3)")
    record(outbox, engine, "new")
    assert ids(engine, "followup_outbox")[-1] == "new"


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_receive_is_503_and_the_log_says_what_to_do(
    inbox: Inbox, engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(3):
        assert receive(inbox, f"whd_{number}") == 204
    set_back(engine, "followup_inbox")
    assert [receive(inbox, each) for each in ("whd_0", "whd_new")] == [204, 503]
    assert "webhook whd_new not stored: IntegrityError (23505 unique_violation): a table of followup" in caplog.text
    assert ids(engine, "followup_inbox") == ["whd_0", "whd_1", "whd_2"]


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_another_import_does_not_take_the_state_of_the_first(outbox: Outbox, engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "patients.csv").write_text("id,phone\nH-1,11 5555-0000\n", encoding="utf-8")
    for name in ("first", "second"):
        (tmp_path / f"{name}.toml").write_text(f'name = "{name}"\n{MAP}', encoding="utf-8")
    Import.load(tmp_path / "first.toml").run(tmp_path / "patients.csv", database=outbox)
    set_back(engine, "followup_imports", "id")
    with pytest.raises(IntegrityError, match="followup_imports_pkey") as caught:
        Import.load(tmp_path / "second.toml").run(tmp_path / "patients.csv", database=outbox)
    assert "set its sequence" in reason_of(caught.value)
    assert len(ids(engine, "followup_outbox")) == 1
