"""How far an outbox and an inbox are behind is a metric (docs/how-to/telemetry.md)."""

import gc
import json
import sqlite3
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import text
from support.databases import engine_of
from support.webhook_events import SECRET, body_of, headers_of
from telemetry.exported import Exported
from telemetry.planting import DOCUMENT, ECHO, MARK, MARKS, PHONE
from wrapt import ObjectProxy

from followup import inbound
from followup.inbox import Inbox, Received
from followup.outbox import Outbox
from followup_mockserver import MockService

Execute = Callable[..., None]
BAD = {"id": "a1", "type": "appointment.rescheduled", "data": {"appointment": {"externalId": "A-1", "startAt": 1}}}


@pytest.fixture
def execute(sqlite_url: str) -> Execute:
    def execute(statement: str) -> None:
        with engine_of(sqlite_url).begin() as connection:
            connection.execute(text(statement))

    return execute


def record(outbox: Outbox, *events: Any) -> None:
    with outbox._database.transaction() as connection:
        for each in events:
            outbox.record(connection, each)


def event(number: int) -> Any:
    return inbound.patient_upserted(id=f"e{number}", patient={"phone": f"+54 9 11 5555-{number:04}"})


def deliver(inbox: Inbox, type: str = "appointment.created", **fields: Any) -> None:
    body = body_of(type=type, **fields)
    assert inbox.receive(body, headers_of(body)) == 204


def unavailable() -> MockService:
    service = MockService()
    service.add_fault(operation="events.create", kind="status", status=503, times=100)
    return service


def test_the_outbox_is_behind(outbox: Outbox, execute: Execute, exported: Exported) -> None:
    record(outbox, event(1), event(2))
    assert exported.points("followup.outbox.lag") == []  # this process does not send yet
    outbox.drain(unavailable().client())
    execute("UPDATE followup_outbox SET recorded_at = recorded_at - 90000 WHERE event_id = 'e1'")
    (lag,) = exported.values("followup.outbox.lag", "followup.outbox.name").items()
    assert lag[0] == ("default",)
    assert 90 <= lag[1] < 150
    states = {"waiting": 2, "in_flight": 0, "held": 0, "dead": 0}
    assert exported.values("followup.outbox.events", "followup.outbox.name", "followup.state") == {
        ("default", state): count for state, count in states.items()
    }


def test_the_inbox_is_behind(inbox: Inbox, execute: Execute, exported: Exported) -> None:
    @inbox.on("appointment.created")
    def book(received: Received) -> None:
        raise LookupError

    deliver(inbox)
    deliver(inbox, "appointment.cancelled", ref="apt_2")
    assert exported.points("followup.inbox.lag") == []  # this process only receives yet
    inbox.drain()
    execute("UPDATE followup_inbox SET received_at = received_at - 90000")
    (lag,) = exported.values("followup.inbox.lag", "followup.inbox.name").items()
    assert lag[0] == ("default",)
    assert 90 <= lag[1] < 150
    states = {"waiting": 1, "in_flight": 0, "dead": 0, "unhandled": 1}
    assert exported.values("followup.inbox.events", "followup.inbox.name", "followup.state") == {
        ("default", state): count for state, count in states.items()
    }


def test_empty_ones_have_no_lag(outbox: Outbox, inbox: Inbox, exported: Exported) -> None:
    outbox.drain(MockService().client())
    inbox.drain()
    assert exported.values("followup.outbox.lag", "followup.outbox.name") == {("default",): 0.0}
    assert exported.values("followup.inbox.lag", "followup.inbox.name") == {("default",): 0.0}


def test_dead_and_held_events_are_counted(outbox: Outbox, exported: Exported) -> None:
    record(outbox, BAD, inbound.appointment_cancelled(id="a2", external_id="A-1", reason="moved"))
    outbox.drain(MockService().client())
    found = exported.values("followup.outbox.events", "followup.state")
    assert (found["dead",], found["held",]) == (1, 1)


def test_several_outboxes_are_apart(sqlite_url: str, outbox: Outbox, exported: Exported) -> None:
    other = Outbox(sqlite_url, name="north")
    record(other, event(1))
    client = unavailable().client()
    other.drain(client)
    outbox.drain(client)
    found = exported.values("followup.outbox.events", "followup.outbox.name", "followup.state")
    assert (found["north", "waiting"], found["default", "waiting"]) == (1, 0)
    other.close()


def test_the_metrics_end_with_the_outbox(sqlite_url: str, exported: Exported) -> None:
    outbox = Outbox(sqlite_url)
    outbox.create_tables()
    outbox.drain(MockService().client())
    assert len(exported.points("followup.outbox.lag")) == 1
    outbox.close()
    assert exported.points("followup.outbox.lag") == []
    outbox.drain(MockService().client())
    assert len(exported.points("followup.outbox.lag")) == 1
    del outbox
    gc.collect()
    assert exported.points("followup.outbox.lag") == []


def test_they_are_absent_while_the_database_cannot_be_read(
    outbox: Outbox, execute: Execute, exported: Exported, caplog: pytest.LogCaptureFixture
) -> None:
    outbox.drain(MockService().client())
    execute("DROP TABLE followup_outbox")
    assert exported.points("followup.outbox.lag") == []
    assert "Outbox default: its backlog is unknown: " in caplog.text
    assert "Traceback" not in caplog.text


def test_off_exports_nothing(sqlite_url: str, exported: Exported, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLLOWUP_TELEMETRY", "off")
    outbox, inbox = Outbox(sqlite_url), Inbox(sqlite_url, secret=SECRET)
    for store in (outbox, inbox):
        store.create_tables()
    record(outbox, event(1))
    outbox.drain(MockService().client())
    inbox.drain()
    assert exported.everything() == ""
    outbox.close()
    inbox.close()


def test_the_call_of_a_relay_is_a_child_of_the_current_span(outbox: Outbox, exported: Exported) -> None:
    record(outbox, event(1))
    with exported.tracer().start_as_current_span("relay"):
        assert outbox.drain(MockService().client()).sent == 1
    parent = exported.span("events.create").parent
    assert parent is not None
    assert parent.span_id == exported.span("relay").get_span_context().span_id


def test_a_connection_that_an_instrumentation_wraps_records_events(sqlite_url: str, outbox: Outbox) -> None:
    connection: Any = ObjectProxy(sqlite3.connect(sqlite_url.removeprefix("sqlite:///")))  # as that of sqlite3 does
    connection.execute("BEGIN")
    outbox.record(connection, event(1))
    connection.commit()
    connection.close()
    assert outbox.status().waiting == 1


def test_nothing_about_a_patient_is_exported(outbox: Outbox, inbox: Inbox, exported: Exported) -> None:
    patient = {"phone": PHONE, "dni": DOCUMENT, "full_name": f"{MARK} Pérez"}
    good = inbound.appointment_created(
        id=f"{MARK}-1", patient=patient, start_at="1987-03-21T10:00:00Z", external_id=f"{MARK}-A-1"
    )
    bad = {"id": f"{MARK}-2", "type": "appointment.created", "data": {"patient": MARK, "appointment": 1}}
    record(outbox, good, bad)
    service = MockService()
    service.add_fault(operation="events.create", kind="status", status=503)
    for _ in range(3):
        outbox.drain(service.client())
        service.advance(minutes=10)
    assert outbox.status().dead == 1

    @inbox.otherwise
    def book(received: Received) -> None:
        raise ValueError(ECHO) from LookupError(json.dumps(received.event.data))

    data = {"appointment": {"externalId": f"{MARK}-A-1"}, "patient": {"phone": PHONE, "dni": DOCUMENT}}
    deliver(inbox, id=f"whd_{MARK}", ref=f"apt_{MARK}", data=data)
    assert inbox.drain().failed == 1
    assert exported.points("followup.inbox.lag")
    assert MARKS.findall(exported.everything()) == []
