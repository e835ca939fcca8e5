"""The call of a relay is linked to the traces in which its events were recorded."""

import asyncio
import gc
import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine
from support.databases import engine_of
from telemetry.exported import Exported
from telemetry.planting import DOCUMENT, MARK, MARKS, PHONE
from wrapt import ObjectProxy

from followup import inbound
from followup.outbox import Outbox
from followup_mockserver import MockService


@pytest.fixture
def outbox(database_url: str) -> Iterator[Outbox]:
    outbox = Outbox(database_url)
    outbox.create_tables()
    yield outbox
    outbox.close()


def event(number: int, **fields: Any) -> Any:
    patient = {"phone": f"+54 9 11 5555-{number:04}"}
    return inbound.patient_upserted(id=f"e{number}", patient=patient, **fields)


def record(url: str, outbox: Outbox, *events: Any) -> None:
    with engine_of(url).begin() as connection:
        for each in events:
            outbox.record(connection, each)


def contexts(url: str) -> list[str | None]:
    with engine_of(url).connect() as connection:
        return [*connection.execute(text("SELECT trace_context FROM followup_outbox ORDER BY seq")).scalars()]


def linked(span: ReadableSpan) -> set[int]:
    """Return the ids of the spans that a span is linked to."""
    return {each.context.span_id for each in span.links}


def test_the_call_of_a_relay_is_linked_to_the_spans_that_recorded_its_events(
    database_url: str, outbox: Outbox, exported: Exported
) -> None:
    for number in range(3):
        with exported.tracer().start_as_current_span(f"booking {number}"):
            record(database_url, outbox, event(number))
    record(database_url, outbox, event(3))  # outside of a trace
    with exported.tracer().start_as_current_span("relay"):
        assert outbox.drain(MockService().client()).sent == 4
    call, relay = exported.span("events.create"), exported.span("relay")
    assert linked(call) == {exported.span(f"booking {number}").get_span_context().span_id for number in range(3)}
    assert call.parent is not None
    assert call.parent.span_id == relay.get_span_context().span_id


def test_events_of_one_recorder_are_one_link(database_url: str, outbox: Outbox, exported: Exported) -> None:
    with exported.tracer().start_as_current_span("import"):
        record(database_url, outbox, *(event(number) for number in range(100)))
    outbox.drain(MockService().client())
    (link,) = exported.span("events.create").links
    importing = exported.span("import").get_span_context()
    assert (link.context.trace_id, link.context.span_id) == (importing.trace_id, importing.span_id)
    assert link.context.is_remote


def test_a_batch_of_a_hundred_recorders_has_a_hundred_links(
    database_url: str, outbox: Outbox, exported: Exported
) -> None:
    for number in range(100):
        with exported.tracer().start_as_current_span("booking"):
            record(database_url, outbox, event(number))
    outbox.drain(MockService().client())
    assert len(linked(exported.span("events.create"))) == 100


def test_only_the_calls_of_the_relay_are_linked(database_url: str, outbox: Outbox, exported: Exported) -> None:
    with exported.tracer().start_as_current_span("booking"):
        record(database_url, outbox, event(1))
    client = MockService().client()
    outbox.drain(client)
    client.account.retrieve()
    assert exported.span("account.retrieve").links == ()


def test_a_retry_is_linked_too(database_url: str, outbox: Outbox, exported: Exported) -> None:
    service = MockService()
    with exported.tracer().start_as_current_span("booking") as booking:
        record(database_url, outbox, event(1))
    service.add_fault(operation="events.create", kind="status", status=503)
    outbox.drain(service.client())
    service.advance(minutes=10)
    outbox.drain(service.client())
    calls = exported.spans("events.create")
    assert [linked(each) for each in calls] == [{booking.get_span_context().span_id}] * 2


def test_the_row_has_a_traceparent(database_url: str, outbox: Outbox, exported: Exported) -> None:
    with exported.tracer().start_as_current_span("booking") as booking:
        record(database_url, outbox, event(1))
    record(database_url, outbox, event(2))
    own = booking.get_span_context()
    first, second = contexts(database_url)
    assert first is not None
    assert first.startswith(f"00-{own.trace_id:032x}-{own.span_id:016x}-")
    assert second is None


def test_other_connections_record_it_as_well(tmp_path: Any, exported: Exported) -> None:
    url = f"sqlite:///{tmp_path / 'clinic.db'}"
    outbox = Outbox(url)
    outbox.create_tables()

    async def record_async() -> None:
        engine = create_async_engine(url.replace("sqlite:", "sqlite+aiosqlite:"))
        async with engine.begin() as connection:
            await outbox.record_async(connection, event(2))
        await engine.dispose()

    with exported.tracer().start_as_current_span("booking"):
        connection = sqlite3.connect(tmp_path / "clinic.db")
        connection.execute("BEGIN")
        outbox.record(connection, event(1))
        connection.commit()
        connection.close()
        asyncio.run(record_async())
    outbox.drain(MockService().client())
    outbox.close()
    assert all(contexts(url))
    assert linked(exported.span("events.create")) == {exported.span("booking").get_span_context().span_id}


def test_a_connection_that_an_instrumentation_wraps_records_events(tmp_path: Any) -> None:
    outbox = Outbox(f"sqlite:///{tmp_path / 'clinic.db'}")
    outbox.create_tables()
    connection: Any = ObjectProxy(sqlite3.connect(tmp_path / "clinic.db"))  # as that of sqlite3 does
    connection.execute("BEGIN")
    outbox.record(connection, event(1))
    connection.commit()
    connection.close()
    assert outbox.status().waiting == 1


@pytest.mark.parametrize("context", ["", "nonsense", "00-0-0-00", f"00-{'0' * 32}-{'0' * 16}-01", MARK])
def test_a_context_that_is_not_valid_is_no_link(
    database_url: str, outbox: Outbox, exported: Exported, context: str
) -> None:
    record(database_url, outbox, event(1))
    with engine_of(database_url).begin() as connection:
        connection.execute(text("UPDATE followup_outbox SET trace_context = :context"), {"context": context})
    assert outbox.drain(MockService().client()).sent == 1
    assert exported.span("events.create").links == ()


def test_off_records_no_trace(database_url: str, exported: Exported, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLLOWUP_TELEMETRY", "off")
    outbox = Outbox(database_url)
    outbox.create_tables()
    with exported.tracer().start_as_current_span("booking"):
        record(database_url, outbox, event(1))
    outbox.drain(MockService().client())
    outbox.close()
    assert contexts(database_url) == [None]
    assert [span.name for span in exported.spans()] == ["booking"]
    assert exported.collected() == []


class TestMetrics:
    def test_show_how_far_the_outbox_is_behind(self, database_url: str, outbox: Outbox, exported: Exported) -> None:
        service = MockService()
        service.add_fault(operation="events.create", kind="status", status=503, times=100)
        record(database_url, outbox, event(1), event(2))
        assert exported.points("followup.outbox.lag") == []  # this process does not send yet
        outbox.drain(service.client())
        with engine_of(database_url).begin() as connection:
            connection.execute(
                text("UPDATE followup_outbox SET recorded_at = recorded_at - 90000 WHERE event_id = 'e1'")
            )
        (lag,) = exported.values("followup.outbox.lag", "followup.outbox.name").items()
        assert lag[0] == ("default",)
        assert 90 <= lag[1] < 150
        assert exported.values("followup.outbox.events", "followup.outbox.name", "followup.state") == {
            ("default", "waiting"): 2,
            ("default", "in_flight"): 0,
            ("default", "held"): 0,
            ("default", "dead"): 0,
        }

    def test_show_that_it_is_empty(self, outbox: Outbox, exported: Exported) -> None:
        outbox.drain(MockService().client())
        assert exported.values("followup.outbox.lag", "followup.outbox.name") == {("default",): 0.0}

    def test_show_dead_and_held_events(self, database_url: str, outbox: Outbox, exported: Exported) -> None:
        bad = {
            "id": "e1",
            "type": "appointment.rescheduled",
            "data": {"appointment": {"externalId": "A-1", "startAt": 1}},
        }
        good = inbound.appointment_cancelled(id="e2", external_id="A-1", reason="moved")
        record(database_url, outbox, bad, good)
        outbox.drain(MockService().client())
        found = exported.values("followup.outbox.events", "followup.state")
        assert (found["dead",], found["held",]) == (1, 1)

    def test_of_several_outboxes_are_apart(self, database_url: str, outbox: Outbox, exported: Exported) -> None:
        other = Outbox(database_url, name="north")
        record(database_url, other, event(1))
        service = MockService()
        service.add_fault(operation="events.create", kind="status", status=503, times=100)
        other.drain(service.client())
        outbox.drain(service.client())
        found = exported.values("followup.outbox.events", "followup.outbox.name", "followup.state")
        assert (found["north", "waiting"], found["default", "waiting"]) == (1, 0)
        other.close()

    def test_end_with_the_outbox(self, database_url: str, exported: Exported) -> None:
        outbox = Outbox(database_url)
        outbox.create_tables()
        outbox.drain(MockService().client())
        assert len(exported.points("followup.outbox.lag")) == 1
        outbox.close()
        assert exported.points("followup.outbox.lag") == []
        outbox.drain(MockService().client())
        assert len(exported.points("followup.outbox.lag")) == 1
        outbox._database.close()
        del outbox
        gc.collect()
        assert exported.points("followup.outbox.lag") == []

    def test_are_absent_while_the_database_cannot_be_read(
        self, database_url: str, outbox: Outbox, exported: Exported, caplog: pytest.LogCaptureFixture
    ) -> None:
        outbox.drain(MockService().client())
        with engine_of(database_url).begin() as connection:
            connection.execute(text("DROP TABLE followup_outbox"))
        assert exported.points("followup.outbox.lag") == []
        assert "Outbox default: its backlog is unknown: " in caplog.text
        assert "Traceback" not in caplog.text


def test_nothing_about_a_patient_is_exported_or_stored_in_the_trace(
    database_url: str, outbox: Outbox, exported: Exported
) -> None:
    service = MockService()
    events = [
        inbound.appointment_created(
            id=f"{MARK}-1",
            patient={"phone": PHONE, "dni": DOCUMENT, "full_name": f"{MARK} Pérez"},
            start_at="1987-03-21T10:00:00Z",
            external_id=f"{MARK}-A-1",
        ),
        {"id": f"{MARK}-2", "type": "appointment.created", "data": {"patient": MARK, "appointment": 1}},
    ]
    with exported.tracer().start_as_current_span("booking"):
        record(database_url, outbox, *events)
        with engine_of(database_url).begin() as connection:
            outbox.record(connection, event(1), subject=f"{MARK} {PHONE}")
    service.add_fault(operation="events.create", kind="status", status=503)
    for _ in range(3):
        outbox.drain(service.client())
        service.advance(minutes=10)
    assert outbox.status().dead == 1
    assert MARKS.findall(exported.everything()) == []
    assert MARKS.findall("".join(str(each) for each in contexts(database_url))) == []
