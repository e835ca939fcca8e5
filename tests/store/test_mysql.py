"""What MySQL and MariaDB do otherwise than SQLite and PostgreSQL."""

import logging
import threading
import time
from contextlib import ExitStack, closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from sqlalchemy import Engine, create_engine, event, text
from sqlalchemy.exc import DBAPIError
from support.connections import (
    Open,
    django_connection,
    pymysql_connection,
    pymysql_of,
    sqlalchemy_connection,
    sqlalchemy_session,
)
from support.databases import TAKES_LOCK, engine_of, execute, read, texts, with_psycopg
from support.stores import receive, record
from support.waiting import wait_for
from support.webhook_events import SECRET, body_of

from followup import EventInput, FollowUp, FollowUpError, inbound
from followup._store.execution import reason_of
from followup._store.leases import StoreTime
from followup.imports import Import
from followup.inbox import Inbox, Received
from followup.outbox import Outbox

pytestmark = pytest.mark.parametrize("database_url", ["mysql"], indirect=True)

IDS = "SELECT event_id FROM followup_outbox ORDER BY seq"
ALIKE = ["a", "A", "á", "a ", "ａ", "ß", "ss", "😀", "😁"]
"""Texts that one collation or another takes for the same."""
_WAITS = "SELECT 1 FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'"


def waits(engine: Engine) -> bool:
    """Return whether a transaction waits for a lock."""
    # The server does not look again while it is asked more often than ten times a second.
    execute(engine, "DO SLEEP(0.15)")
    return bool(read(engine, _WAITS))


def order(id: str) -> EventInput:
    return inbound.order_issued(id=id, patient={"full_name": "Ana 'Núñez' \\ \"😀\""}, order={})


@pytest.fixture
def bookings(outbox: Outbox, engine: Engine) -> None:
    """A table of the caller's."""
    execute(engine, "CREATE TABLE bookings (id INTEGER PRIMARY KEY)")


@pytest.mark.parametrize("charset", ["utf8mb4", "utf8mb3", "latin1"])
@pytest.mark.parametrize("modes", ["", "ANSI_QUOTES,NO_BACKSLASH_ESCAPES,STRICT_ALL_TABLES"])
def test_texts_are_compared_byte_by_byte_whatever_the_session(
    outbox: Outbox, engine: Engine, database_url: str, client: FollowUp, charset: str, modes: str
) -> None:
    with pymysql_of(database_url, charset=charset, sql_mode=modes) as connection:
        for each in ALIKE * 2:
            assert outbox.record(connection, order(each), subject=f"to {each}") == each
        connection.commit()
    assert texts(engine, IDS) == ALIKE
    assert outbox.drain(client).sent == len(ALIKE), "each has a subject of its own"
    for name in ("default ", "DEFAULT"):
        with closing(Outbox(database_url, name=name)) as other:
            assert other.status().sent == 0


def test_an_inbox_compares_byte_by_byte(inbox: Inbox) -> None:
    handled: list[str] = []
    inbox.otherwise(lambda received: handled.append(received.event.id))
    assert {receive(inbox, each) for each in ALIKE * 2} == {204}
    assert inbox.drain(raise_exceptions=True).done == len(ALIKE)
    assert sorted(handled) == sorted(ALIKE)


def test_bodies_and_reasons_may_be_longer_than_a_text_of_mysql(inbox: Inbox, engine: Engine) -> None:
    @inbox.otherwise
    def fail(received: Received) -> None:
        assert len(received.event.data["more"]) == 200_000
        raise ValueError("é" * 20_000)

    receive(inbox)
    with engine.begin() as connection:
        body = body_of("whd_1", data={"more": "x" * 200_000})
        connection.execute(text("UPDATE followup_inbox SET body = :body"), {"body": body})
    assert inbox.drain().failed == 1
    (reason,) = texts(engine, "SELECT error FROM followup_inbox")
    assert len(reason) > 50_000


def test_a_caller_with_an_older_snapshot_sees_the_first_cipher_and_what_others_recorded(
    outbox: Outbox, engine: Engine, database_url: str
) -> None:
    """REPEATABLE READ, the default, shows nothing that others commit after the first SELECT of a transaction."""
    key = Fernet(Fernet.generate_key())
    with ExitStack() as stack:
        first, second = (stack.enter_context(closing(Outbox(database_url, cipher=key))) for _ in range(2))
        old = stack.enter_context(engine.connect())
        assert old.get_isolation_level() == "REPEATABLE READ"
        old.exec_driver_sql("SELECT COUNT(*) FROM followup_outbox, followup_salts").all()
        record(outbox, engine, "plain")
        with engine.begin() as connection:
            first.record(connection, order("e1"), subject="S")
        assert second.record(old, order("e1")) == "e1"
        second.record(old, order("e2"), subject="S")
        old.commit()
    assert texts(engine, IDS) == ["plain", "e1", "e2"]
    plain, *same = texts(engine, "SELECT subject FROM followup_outbox ORDER BY seq")
    assert same[0] == same[1] != plain
    assert plain.startswith("blake2b:")


def test_recorders_do_not_wait_for_one_another_and_the_relay_for_none(
    outbox: Outbox, engine: Engine, client: FollowUp
) -> None:
    """REPEATABLE READ locks gaps between rows, where a statement looks for some that are not there."""
    record(outbox, engine, "m")
    with ExitStack() as stack:
        for each in ("a", "n", "z", "b"):
            connection = stack.enter_context(engine.connect())
            connection.exec_driver_sql("SET innodb_lock_wait_timeout = 1")
            connection.exec_driver_sql("SELECT * FROM followup_outbox").all()
            outbox.record(connection, order(each))
        assert outbox.drain(client).sent == 1
        assert outbox.purge(older_than=timedelta(0)) == 1


def heavy(connection: Any) -> None:
    """Write so much that in a deadlock the other transaction is undone."""
    connection.exec_driver_sql("INSERT INTO bookings VALUES " + ", ".join(f"({each})" for each in range(100, 150)))


@pytest.mark.usefixtures("bookings")
@pytest.mark.parametrize("opened", [sqlalchemy_connection, sqlalchemy_session, pymysql_connection, django_connection])
def test_a_deadlock_in_record_says_that_all_is_undone(
    outbox: Outbox, engine: Engine, database_url: str, opened: Open
) -> None:
    with engine.connect() as other, opened(database_url) as (connection, run, _):
        heavy(other)
        outbox.record(other, order("e1"))
        run("INSERT INTO bookings VALUES (1)")
        waiting = threading.Thread(target=lambda: other.exec_driver_sql("INSERT INTO bookings VALUES (1)"))
        waiting.start()
        wait_for(lambda: waits(engine))
        with pytest.raises(Exception, match="Deadlock") as caught:
            outbox.record(connection, order("e1"))
        waiting.join()
        assert "has rolled back the whole transaction" in caught.value.__notes__[0]
        if opened in (sqlalchemy_connection, sqlalchemy_session):  # the others cannot forbid it
            with pytest.raises(Exception, match=r"[Rr]olled back|rollback"):
                run("INSERT INTO bookings VALUES (2)")


@pytest.mark.usefixtures("bookings")
def test_a_relay_repeats_what_a_deadlock_has_undone(outbox: Outbox, engine: Engine, client: FollowUp) -> None:
    record(outbox, engine, "e1")
    took: list[str] = []
    with engine.connect() as other:
        heavy(other)
        other.exec_driver_sql("SELECT * FROM followup_outbox FOR UPDATE").all()

        def look(*arguments: Any) -> None:
            if TAKES_LOCK.match(arguments[2]):
                took.append(arguments[2])

        event.listen(outbox._database.engine, "before_cursor_execute", look)
        relay = threading.Thread(target=outbox.drain, args=(client,))
        relay.start()
        wait_for(lambda: waits(engine))
        other.exec_driver_sql("SELECT * FROM followup_schema FOR UPDATE").all()  # the lock that the relay has
        other.rollback()
        relay.join()
    assert (outbox.status().sent, len(took)) == (1, 3), "claimed twice, and settled"


@pytest.mark.usefixtures("bookings")
def test_an_import_repeats_what_a_deadlock_has_undone(outbox: Outbox, engine: Engine, tmp_path: Path) -> None:
    columns = '"patient.external_id" = "id"\n"patient.phone" = "phone"\n'
    tmp_path.joinpath("map.toml").write_text(
        f'kind = "patients"\nzone = "America/Lima"\ncountry = "AR"\n[columns]\n{columns}'
    )
    file = tmp_path / "patients.csv"
    file.write_text("id,phone\nP-1,+5491155550001\n", encoding="utf-8")
    job = Import.load(tmp_path / "map.toml")
    assert len(job.run(file, outbox).events) == 1
    file.write_text("id,phone\nP-1,+5491155550001\nP-2,+5491155550002\n", encoding="utf-8")
    events: list[int] = []
    with engine.connect() as other:
        heavy(other)
        other.exec_driver_sql("SELECT * FROM followup_imports FOR UPDATE").all()
        run = threading.Thread(target=lambda: events.append(len(job.run(file, outbox).events)))
        run.start()
        wait_for(lambda: waits(engine))
        other.exec_driver_sql("SELECT * FROM followup_schema FOR UPDATE").all()  # the lock that the import has
        other.rollback()
        run.join()
    assert (events, outbox.status().waiting) == ([1], 2)


@pytest.mark.parametrize("sql", ["CREATE TABLE own (id INTEGER)", "COMMIT"])
def test_a_handler_whose_ddl_commits_is_not_repeated(inbox: Inbox, engine: Engine, sql: str) -> None:
    execute(engine, "CREATE TABLE work (id INTEGER)")

    @inbox.otherwise
    def handle(received: Received) -> None:
        received.connection.exec_driver_sql("INSERT INTO work VALUES (1)")
        received.connection.exec_driver_sql(sql)

    receive(inbox)
    assert inbox.drain().dead == 1
    assert inbox.dead()[0].error.startswith("the handler committed or rolled back received.connection")


@pytest.mark.usefixtures("bookings")
def test_a_deadlock_that_becomes_an_error_of_the_handler_is_repeated(inbox: Inbox, engine: Engine) -> None:
    with engine.connect() as other:
        heavy(other)
        other.exec_driver_sql("INSERT INTO bookings VALUES (2)")
        waiting = threading.Thread(target=lambda: other.exec_driver_sql("INSERT INTO bookings VALUES (1)"))

        @inbox.otherwise
        def handle(received: Received) -> None:
            if received.attempt == 1:
                received.connection.exec_driver_sql("INSERT INTO bookings VALUES (1)")
                waiting.start()
                wait_for(lambda: waits(engine))
                try:
                    received.connection.exec_driver_sql("INSERT INTO bookings VALUES (2)")
                except DBAPIError:
                    raise LookupError("this cannot be written now") from None

        receive(inbox)
        report = inbox.drain()
        waiting.join()
    assert (report.failed, report.dead) == (1, 0)


@pytest.mark.parametrize("place", range(5))
def test_tables_can_be_created_after_a_crash_between_two_of_them(database_url: str, engine: Engine, place: int) -> None:
    """Each statement commits by itself."""
    made: list[str] = []

    def crash(*arguments: Any) -> None:
        if arguments[2].startswith(("CREATE", "INSERT")):
            if len(made) == place:
                raise KeyboardInterrupt
            made.append(arguments[2])

    broken = engine_of(database_url)
    event.listen(broken, "before_cursor_execute", crash)
    with pytest.raises(KeyboardInterrupt):
        Outbox(broken).create_tables()
    with closing(Outbox(database_url)) as outbox:
        outbox.create_tables()
        record(outbox, engine, "e1")
        assert outbox.status().waiting == 1
    indexes = read(engine, "SHOW INDEX FROM followup_outbox")
    assert {row[2] for row in indexes} >= {"PRIMARY", "followup_outbox_event_id", "followup_outbox_by_order"}


def end_sessions(engine: Engine) -> None:
    """End all other sessions in the database, as a server that is restarted does."""
    with engine.connect() as connection:
        mine = "db = DATABASE() AND id <> CONNECTION_ID()"
        ids = connection.exec_driver_sql(f"SELECT id FROM information_schema.processlist WHERE {mine}").scalars()
        for each in ids.all():
            connection.exec_driver_sql(f"KILL {each}")


@pytest.mark.parametrize("ends", ["killed", "idle"])
def test_a_lost_connection_is_replaced(
    outbox: Outbox, inbox: Inbox, engine: Engine, client: FollowUp, ends: str
) -> None:
    inbox.otherwise(lambda _: None)
    record(outbox, engine, "e1")
    for store in (outbox, inbox):
        store.status()
    if ends == "killed":
        end_sessions(engine)
    else:
        for store in (outbox, inbox):
            with store._database.engine.connect() as connection:
                connection.exec_driver_sql("SET SESSION wait_timeout = 1")
        time.sleep(1.2)
    assert receive(inbox) == 204
    assert (outbox.drain(client).sent, inbox.drain().done) == (1, 1)


def test_a_connection_that_is_lost_in_a_statement_is_dropped_and_the_reason_logged(
    outbox: Outbox, inbox: Inbox, engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    def lose(connection: Any, *arguments: Any) -> None:
        if arguments[1].startswith("INSERT INTO") and "followup_inbox" in arguments[1]:
            execute(engine, f"KILL {connection.connection.driver_connection.thread_id()}")

    event.listen(inbox._database.engine, "before_cursor_execute", lose)
    assert receive(inbox) == 503
    event.remove(inbox._database.engine, "before_cursor_execute", lose)
    assert receive(inbox) == 204
    assert "webhook whd_1 not stored: OperationalError (20" in caplog.text


def test_limits_of_our_transactions_do_not_outlast_them(database_url: str, client: FollowUp) -> None:
    """They are limits of the session, which a user's pool lends to others afterwards."""
    query = "SELECT @@wait_timeout, @@innodb_lock_wait_timeout"
    engine = create_engine(with_psycopg(database_url), pool_size=1, max_overflow=0)
    event.listen(engine, "connect", lambda driver, _: driver.cursor().execute("SET SESSION wait_timeout = 777"))
    before = read(engine, query)
    outbox, inbox = Outbox(engine), Inbox(engine, secret=SECRET, handler_timeout=60)
    for store in (outbox, inbox):
        store.create_tables()
    record(outbox, engine, "e1")
    seen: list[Any] = []
    inbox.otherwise(lambda received: seen.append(received.connection.exec_driver_sql(query).one()[0]))
    assert receive(inbox) == 204
    assert (outbox.drain(client).sent, inbox.drain().done) == (1, 1)
    assert seen == [60]
    assert read(engine, query) == before
    assert before[0][0] == 777
    engine.dispose()


def test_a_number_that_another_row_has_is_an_error(
    outbox: Outbox, inbox: Inbox, engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    record(outbox, engine, "e1")
    assert receive(inbox) == 204
    with engine.begin() as connection:
        connection.exec_driver_sql("SET insert_id = 1")
        outbox.record(connection, order("e1"))
        connection.exec_driver_sql("SET insert_id = 1")
        with pytest.raises(DBAPIError) as caught:
            outbox.record(connection, order("e2"))
        outbox.record(connection, order("e3"))
    assert "set its sequence or AUTO_INCREMENT to more than the highest number" in reason_of(caught.value)
    assert texts(engine, IDS) == ["e1", "e3"]
    before = "SET insert_id = 1"
    event.listen(inbox._database.engine, "begin", lambda connection: connection.exec_driver_sql(before))
    assert [receive(inbox), receive(inbox, "whd_2")] == [204, 503]
    assert "AUTO_INCREMENT" in caplog.text


@pytest.mark.parametrize("zone", ["+05:45", "-03:00"])
def test_the_clock_is_in_utc_whatever_the_zone_of_the_session(database_url: str, zone: str) -> None:
    with engine_of(database_url).connect() as connection:
        connection.exec_driver_sql(f"SET time_zone = '{zone}'")
        assert abs(StoreTime().milliseconds(connection) - time.time() * 1000) < 1000


def test_a_store_qualifies_its_tables_where_a_handler_uses_another_database(
    outbox: Outbox, inbox: Inbox, engine: Engine, database_url: str
) -> None:
    outbox.status()
    with engine.begin() as connection:
        connection.exec_driver_sql("USE information_schema")
        with pytest.raises(ValueError, match="it is to the database information_schema of the MySQL server"):
            outbox.record(connection, order("e1"))

    @inbox.otherwise
    def handle(received: Received) -> None:
        received.connection.exec_driver_sql("USE information_schema")

    receive(inbox)
    assert inbox.drain(raise_exceptions=True).done == 1


def test_nobody_takes_a_server_that_is_read_only_for_one_without_work(
    outbox: Outbox, engine: Engine, client: FollowUp
) -> None:
    outbox.status()
    execute(engine, "SET GLOBAL read_only = 1")
    try:
        with pytest.raises(FollowUpError, match="the server is read-only"):
            outbox.drain(client)
    finally:
        execute(engine, "SET GLOBAL read_only = 0")


def test_a_reason_in_the_log_shows_no_data(inbox: Inbox, engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    execute(engine, "ALTER TABLE followup_inbox ADD CONSTRAINT short CHECK (ref + 0 = 1)")
    with caplog.at_level(logging.ERROR):
        assert receive(inbox) == 503
    assert "not stored: " in caplog.text
    assert "apt_" not in caplog.text
