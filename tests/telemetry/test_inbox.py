"""Handling an event is a span, linked to the trace in which the outbox recorded its cause."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode
from sqlalchemy import text
from support.databases import engine_of
from support.webhook_events import SECRET, body_of, headers_of
from telemetry.exported import Exported
from telemetry.planting import DOCUMENT, ECHO, MARK, MARKS, PHONE

from followup import inbound
from followup.inbox import Inbox, Received
from followup.outbox import Outbox
from followup_mockserver import MockService

HOOKS = "https://clinic.example/hooks"


@pytest.fixture
def inbox(database_url: str) -> Iterator[Inbox]:
    inbox = Inbox(database_url, secret=SECRET, max_attempts=3)
    inbox.create_tables()
    yield inbox
    inbox.close()


@pytest.fixture
def outbox(database_url: str) -> Iterator[Outbox]:
    """An outbox in the database of the inbox."""
    outbox = Outbox(database_url)
    outbox.create_tables()
    yield outbox
    outbox.close()


def deliver(inbox: Inbox, type: str = "appointment.created", external_id: Any = "A-1", **fields: Any) -> None:
    appointment = {"id": "apt_1", "object": "appointment", "externalId": external_id}
    body = body_of(type=type, **{"data": {"appointment": appointment, "patient": {"phone": PHONE}}, **fields})
    assert inbox.receive(body, headers_of(body)) == 204


def handle(inbox: Inbox, exported: Exported) -> Any:
    """Handle the events with a handler that does nothing, and return the only span of a handler."""
    inbox.otherwise(lambda received: None)
    assert inbox.drain().failed == 0
    (span,) = [span for span in exported.spans() if span.kind is SpanKind.CONSUMER]
    return span


def record(url: str, outbox: Outbox, event: Any, **options: Any) -> None:
    with engine_of(url).begin() as connection:
        outbox.record(connection, event, **options)


def created(external_id: str = "A-1", **fields: Any) -> Any:
    return inbound.appointment_created(
        patient={"phone": "+54 9 11 5555-0000"}, start_at="2026-10-01T10:00:00Z", external_id=external_id, **fields
    )


def rescheduled(external_id: str = "A-1") -> Any:
    return inbound.appointment_rescheduled(external_id=external_id, start_at="2026-10-02T10:00:00Z")


class TestASpan:
    def test_is_current_while_the_handler_runs(self, inbox: Inbox, exported: Exported) -> None:
        seen: list[int] = []

        @inbox.on("appointment.created")
        def book(received: Received) -> None:
            seen.append(trace.get_current_span().get_span_context().span_id)
            MockService().client().account.retrieve()

        deliver(inbox)
        with exported.tracer().start_as_current_span("worker"):
            inbox.drain()
        span, call = exported.span("handle appointment.created"), exported.span("account.retrieve")
        assert seen == [span.get_span_context().span_id]
        assert call.parent is not None
        assert call.parent.span_id == span.get_span_context().span_id
        assert span.parent is not None
        assert span.parent.span_id == exported.span("worker").get_span_context().span_id
        assert not trace.get_current_span().get_span_context().is_valid

    def test_has_the_type_of_the_event_and_the_attempt(self, inbox: Inbox, exported: Exported) -> None:
        deliver(inbox)
        span = handle(inbox, exported)
        assert (span.name, span.kind, span.status.status_code) == (
            "handle appointment.created",
            SpanKind.CONSUMER,
            StatusCode.UNSET,
        )
        assert dict(span.attributes) == {
            "followup.inbox.name": "default",
            "followup.event.type": "appointment.created",
            "followup.inbox.attempt": 1,
        }

    def test_of_a_type_that_is_not_known_has_no_type(self, inbox: Inbox, exported: Exported) -> None:
        deliver(inbox, type=f"{MARK}.happened")
        span = handle(inbox, exported)
        assert (span.name, span.attributes["followup.event.type"]) == ("handle _OTHER", "_OTHER")

    def test_of_a_handler_that_raises_has_the_class_of_the_error(self, inbox: Inbox, exported: Exported) -> None:
        @inbox.on("appointment.created")
        def book(received: Received) -> None:
            raise LookupError(f"no room for {ECHO}")

        deliver(inbox)
        inbox.drain()
        span = exported.span("handle appointment.created")
        assert (span.status.status_code, span.status.description, span.events) == (StatusCode.ERROR, None, ())
        assert dict(span.attributes or {})["error.type"] == "LookupError"
        assert MARKS.findall(exported.everything()) == []

    def test_of_an_event_without_a_handler_does_not_exist(self, inbox: Inbox, exported: Exported) -> None:
        deliver(inbox)
        assert inbox.drain().unhandled == 1
        assert exported.spans() == []

    def test_does_not_exist_if_telemetry_is_off(
        self, database_url: str, exported: Exported, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("FOLLOWUP_TELEMETRY", "off")
        inbox = Inbox(database_url, secret=SECRET)
        inbox.create_tables()
        inbox.otherwise(lambda received: None)
        deliver(inbox)
        assert inbox.drain().done == 1
        inbox.close()
        assert exported.everything() == ""


class TestALink:
    def test_connects_a_booking_with_the_handling_of_its_webhook(
        self, database_url: str, outbox: Outbox, exported: Exported
    ) -> None:
        service = MockService()
        client = service.client()
        endpoint = client.webhook_endpoints.create(url=HOOKS, enabled_events=["appointment.created"])
        inbox = Inbox(database_url, secret=endpoint.secret)
        inbox.create_tables()
        service.mount(HOOKS, inbox.wsgi_app)
        with exported.tracer().start_as_current_span("booking") as booking:
            record(database_url, outbox, created("A-1"))
        with exported.tracer().start_as_current_span("another booking"):
            record(database_url, outbox, created("A-2"))
        outbox.drain(client)
        service.advance()
        bodies: list[Any] = []
        inbox.otherwise(lambda received: bodies.append(received.event.data))
        inbox.drain()
        spans = {
            body["appointment"]["externalId"]: span
            for body, span in zip(bodies, exported.spans("handle appointment.created"), strict=True)
        }
        assert sorted(spans) == ["A-1", "A-2"]
        (link,) = spans["A-1"].links
        own = booking.get_span_context()
        assert (link.context.trace_id, link.context.span_id) == (own.trace_id, own.span_id)
        inbox.close()

    def test_leads_to_the_latest_event_of_the_same_type(
        self, database_url: str, inbox: Inbox, outbox: Outbox, exported: Exported
    ) -> None:
        for name, event in [("first", rescheduled()), ("second", rescheduled()), ("third", created())]:
            with exported.tracer().start_as_current_span(name):
                record(database_url, outbox, event)
        deliver(inbox, "appointment.rescheduled")
        (link,) = handle(inbox, exported).links
        assert link.context.span_id == exported.span("second").get_span_context().span_id

    def test_leads_to_the_latest_event_if_none_has_the_type(
        self, database_url: str, inbox: Inbox, outbox: Outbox, exported: Exported
    ) -> None:
        for name, event in [("first", created()), ("second", rescheduled())]:
            with exported.tracer().start_as_current_span(name):
                record(database_url, outbox, event)
        record(database_url, outbox, rescheduled())  # outside of a trace
        deliver(inbox, "appointment.cancelled")
        (link,) = handle(inbox, exported).links
        assert link.context.span_id == exported.span("second").get_span_context().span_id

    @pytest.mark.parametrize("external_id", ["A-2", None, "", " ", 7])
    def test_needs_the_same_external_id(
        self, database_url: str, inbox: Inbox, outbox: Outbox, exported: Exported, external_id: Any
    ) -> None:
        with exported.tracer().start_as_current_span("booking"):
            record(database_url, outbox, created("A-1"))
        deliver(inbox, external_id=external_id)
        assert handle(inbox, exported).links == ()

    def test_needs_the_same_name(self, database_url: str, inbox: Inbox, outbox: Outbox, exported: Exported) -> None:
        other = Outbox(database_url, name="north")
        with exported.tracer().start_as_current_span("booking"):
            record(database_url, other, created())
        deliver(inbox)
        assert handle(inbox, exported).links == ()
        other.close()

    def test_works_for_an_id_that_is_too_long_for_its_column(
        self, database_url: str, inbox: Inbox, outbox: Outbox, exported: Exported
    ) -> None:
        with exported.tracer().start_as_current_span("booking"):
            record(database_url, outbox, created("A" * 300))
        deliver(inbox, external_id="A" * 300)
        assert len(handle(inbox, exported).links) == 1

    def test_is_missing_without_an_outbox(
        self, inbox: Inbox, exported: Exported, caplog: pytest.LogCaptureFixture
    ) -> None:
        deliver(inbox)
        assert handle(inbox, exported).links == ()
        assert caplog.text == ""

    def test_is_missing_if_the_outbox_cannot_be_read(
        self, database_url: str, inbox: Inbox, outbox: Outbox, exported: Exported, caplog: pytest.LogCaptureFixture
    ) -> None:
        with engine_of(database_url).begin() as connection:
            connection.execute(text("DROP TABLE followup_outbox"))
            connection.execute(text("CREATE TABLE followup_outbox (anything INTEGER)"))
        deliver(inbox, id=f"{MARK}-1")
        with caplog.at_level(logging.WARNING):
            assert handle(inbox, exported).links == ()
        assert "the cause of event" in caplog.text
        assert "Traceback" not in caplog.text


class TestMetrics:
    def test_show_how_far_the_inbox_is_behind(self, database_url: str, inbox: Inbox, exported: Exported) -> None:
        @inbox.on("appointment.created")
        def book(received: Received) -> None:
            raise LookupError

        deliver(inbox)
        deliver(inbox, type="appointment.cancelled", ref="apt_2")
        assert exported.points("followup.inbox.lag") == []  # this process only receives yet
        inbox.drain()
        with engine_of(database_url).begin() as connection:
            connection.execute(text("UPDATE followup_inbox SET received_at = received_at - 90000"))
        (lag,) = exported.values("followup.inbox.lag", "followup.inbox.name").items()
        assert lag[0] == ("default",)
        assert 90 <= lag[1] < 150
        assert exported.values("followup.inbox.events", "followup.inbox.name", "followup.state") == {
            ("default", "waiting"): 1,
            ("default", "in_flight"): 0,
            ("default", "dead"): 0,
            ("default", "unhandled"): 1,
        }

    def test_show_that_it_is_empty(self, inbox: Inbox, exported: Exported) -> None:
        inbox.drain()
        assert exported.values("followup.inbox.lag", "followup.inbox.name") == {("default",): 0.0}


def test_nothing_about_a_patient_is_exported(
    database_url: str, inbox: Inbox, outbox: Outbox, exported: Exported
) -> None:
    @inbox.on("appointment.created", "visit.completed")
    def book(received: Received) -> None:
        if received.attempt == 1:
            raise ValueError(ECHO) from LookupError(json.dumps(received.event.data))

    with exported.tracer().start_as_current_span("booking"):
        record(database_url, outbox, created(f"{MARK}-A-1"))
    data = {"appointment": {"externalId": f"{MARK}-A-1"}, "patient": {"phone": PHONE, "dni": DOCUMENT}}
    deliver(inbox, id=f"whd_{MARK}", ref=f"apt_{MARK}", data=data)
    inbox.drain()
    with engine_of(database_url).begin() as connection:
        connection.execute(text("UPDATE followup_inbox SET due_at = 0"))
    inbox.drain()
    first, second = exported.spans("handle appointment.created")
    assert [dict(each.attributes or {})["followup.inbox.attempt"] for each in (first, second)] == [1, 2]
    assert len(second.links) == 1
    assert MARKS.findall(exported.everything()) == []
