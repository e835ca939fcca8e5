"""A sequence of PostgreSQL that is behind the rows, as logical replication and a copy of rows leave it."""

import pytest
from sqlalchemy import Engine
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
from followup.inbox import Inbox
from followup.outbox import Outbox

KINDS = [sqlalchemy_connection, django_connection, psycopg_connection, psycopg_pipeline]


def set_back(engine: Engine, table: str) -> None:
    execute(engine, f"SELECT setval(pg_get_serial_sequence('{table}', 'seq'), 1, false)")


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
    assert advice.startswith("followup_outbox numbers new rows as others that are there")
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
    assert "webhook whd_new not stored: IntegrityError (23505): followup_inbox numbers" in caplog.text
    assert ids(engine, "followup_inbox") == ["whd_0", "whd_1", "whd_2"]
