"""What changes many rows does so in steps, so that others can write to a SQLite file meanwhile; ``clear`` for tests."""

import contextlib
import sqlite3
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from sqlalchemy import Engine, event
from support.databases import engine_of, execute
from support.stores import receive, record
from support.webhook_events import SECRET

from followup import inbound
from followup.inbox import Inbox, Received
from followup.outbox import DrainReport, Outbox
from followup_mockserver import MockService

ROWS = 1200
ANA = inbound.visit_completed(id="e0", patient={"phone": "+5491155550000"}, visited_at="2026-01-01T10:00:00Z")
ERASE = {"phone": "+5491155550000"}

OPERATIONS: dict[str, tuple[str, str, Callable[[Any], object]]] = {
    "purge": ("sent", "done", lambda store: store.purge(older_than=timedelta(0))),
    "clear": ("waiting", "waiting", lambda store: store.clear()),
    "retry": ("dead", "dead", lambda store: store.retry()),
    "erase": ("sent", "done", lambda store: store.erase(**ERASE)),
    "reencrypt": ("waiting", "waiting", lambda store: store.reencrypt()),
}


def fill(engine: Engine, component: str, state: str) -> None:
    """Let a store have copies of its one row, all in this state, finished long ago."""
    table = f"followup_{component}"
    with engine.begin() as connection:
        names = connection.exec_driver_sql(f"SELECT * FROM {table}").keys()
        values = {"event_id": "'e' || i", "state": f"'{state}'", "finished_at": "1"}
        columns = [each for each in names if each != "seq"]
        shown = ", ".join(values.get(each, each) for each in columns)
        connection.exec_driver_sql(
            f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS}) "
            f"INSERT INTO {table} ({', '.join(columns)}) SELECT {shown} FROM {table}, n"
        )
        connection.exec_driver_sql(f"UPDATE {table} SET state = '{state}'")


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("component", ["outbox", "inbox"])
def test_others_can_write_meanwhile(component: str, operation: str, sqlite_url: str, tmp_path: Path) -> None:
    engine = engine_of(sqlite_url)
    cipher = Fernet(Fernet.generate_key()) if operation == "reencrypt" else None
    store: Any = Outbox(engine, cipher=cipher) if component == "outbox" else Inbox(engine, secret=SECRET, cipher=cipher)
    store.create_tables()
    if component == "outbox":
        record(store, engine, ANA)
    else:
        assert receive(store, "e0") == 204
    finished, done, run = OPERATIONS[operation]
    fill(engine, component, finished if component == "outbox" else done)
    execute(engine, "CREATE TABLE bookings (id INTEGER)")
    begun = 0
    sizes: dict[int, int] = {}

    with contextlib.closing(sqlite3.connect(tmp_path / "clinic.db", timeout=0)) as other:

        def write(_: object) -> None:
            nonlocal begun
            begun += 1
            with other:
                other.execute("INSERT INTO bookings VALUES (1)")

        def count(_: object, cursor: Any, statement: str, *__: object) -> None:
            if statement.startswith(("UPDATE followup_outbox ", "UPDATE followup_inbox ", "DELETE")):
                sizes[begun] = sizes.get(begun, 0) + cursor.rowcount

        event.listen(engine, "begin", write)
        event.listen(engine, "after_cursor_execute", count)
        changed = run(store)
    assert changed in (ROWS, ROWS + 1)
    assert max(sizes.values()) <= 500
    assert sum(size > 0 for size in sizes.values()) >= 3


@pytest.mark.on_all
def test_clear_removes_all_of_its_name_and_nothing_else(database_url: str) -> None:
    service = MockService()
    client = service.client()
    engine = engine_of(database_url)
    for name in ("a", "b"):
        outbox, inbox = Outbox(engine, name=name), Inbox(engine, secret=SECRET, name=name)
        outbox.create_tables()
        inbox.create_tables()
        record(outbox, engine, "sent")
        outbox.drain(client)
        record(outbox, engine, {"id": "dead", "type": "visit.completed", "data": {}})
        outbox.drain(client)
        record(outbox, engine, "waiting")
        assert [receive(inbox, each) for each in ("done", "waiting")] == [204, 204]
    outbox, inbox = Outbox(engine, name="a"), Inbox(engine, secret=SECRET, name="a")
    handled: list[str] = []

    @inbox.otherwise
    def handle(received: Received) -> None:
        handled.append(received.event.id)

    inbox.drain()
    assert (outbox.clear(), inbox.clear()) == (3, 2)
    assert (outbox.clear(), inbox.clear()) == (0, 0)
    status = outbox.status()
    assert (status.waiting, status.dead, status.sent, inbox.status().done) == (0, 0, 0, 0)
    others = Outbox(engine, name="b").status()
    assert (others.waiting, others.dead, others.sent) == (1, 1, 1)
    assert Inbox(engine, secret=SECRET, name="b").status().waiting == 2
    record(outbox, engine, "sent")
    assert outbox.drain(client) == DrainReport(duplicates=1)
    assert receive(inbox, "done") == 204
    inbox.drain()
    assert handled.count("done") == 2
