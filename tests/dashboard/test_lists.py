"""The lists as HTML: names, columns, tabs with their counts, filters and pages."""

import re

import httpx
import pytest

from followup import APIStatusError, EventBatchError, FollowUp
from followup_mockserver import MockService

from .conftest import ANA, HOOKS
from .html import Views, text_of

ANA_DIAZ = {"phone": "+5491155550001", "full_name": "Ana Díaz"}
START = "2026-10-01T12:30:00Z"


class TestNames:
    def test_rows_name_what_they_are_about(self, client: FollowUp, views: Views) -> None:
        doctor = next(iter(client.doctors.list()))
        client.appointments.create(patient=ANA_DIAZ, start_at=START, doctor=doctor.id)  # type: ignore[arg-type]
        ana = {"phone": ANA_DIAZ["phone"], "fullName": "Ana Díaz"}
        client.events.create({"id": "e1", "type": "patient.upserted", "data": {"patient": ana}})
        (row,) = views.rows("appointments")
        assert (row["patient"], row["doctor"], row["start"]) == ("Ana Díaz", doctor.full_name, "2026-10-01 12:30:00Z")
        assert views.link("appointments", doctor.full_name) == f"doctors/{doctor.id}"
        assert views.column("events", "about") == ["Ana Díaz"]

    def test_a_column_without_any_value_is_not_shown(self, client: FollowUp, views: Views) -> None:
        client.visits.create(patient={"phone": "+5491155550001"}, visited_at="2026-09-28T11:00:00Z")
        assert [*views.rows("visits")[0]] == ["patient", "visited", "external id", "created", "id"]

    def test_a_patient_without_a_name_is_shown_by_phone_or_short_id(
        self, service: MockService, client: FollowUp, views: Views
    ) -> None:
        client.patients.create(phone=ANA["phone"])
        nameless = client.patients.create(phone="+5491155550002").id
        assert "opted out" not in views.rows("patients")[0]
        service.update_patient(nameless, opted_out=True)
        assert views.column("patients", "opted out") == ["opted out", ""]
        assert views.column("patients", "name") == ["+5491155550002", "+5491155550001"]
        assert views.column("patients", "id")[0] == nameless.replace(nameless[8:-4], f" {nameless[8:-4]} ")


class TestInboundEvents:
    def test_list_and_page_explain_an_error_and_name_every_request(
        self, service: MockService, client: FollowUp, views: Views
    ) -> None:
        event = {"id": "pms-2", "type": "appointment.cancelled", "data": {"appointment": {"externalId": "T-404"}}}
        for _ in range(2):
            with pytest.raises(EventBatchError):
                client.events.create(event)  # type: ignore[arg-type]
        (row,) = views.rows("events")
        assert (row["status"], row["caller's id"]) == ("failed", "pms-2")
        assert row["error"].startswith("data.appointment.externalId There is no such appointment")
        page = views.link("events", "appointment.cancelled")
        assert "failed resource_missing data.appointment.externalId There is no such" in views.text(page)
        assert "Send the event again with the same id to process it again." in views.text(page)
        assert re.findall(r"#/calls/(req_\w+)", views.html(page).partition("as <code>")[0]) == [
            service.requests[1].request_id, service.requests[0].request_id
        ]  # fmt: skip

    def test_the_page_names_a_fault_and_an_event_without_effect(
        self, service: MockService, client: FollowUp, views: Views
    ) -> None:
        service.add_fault(operation="events.create", kind="event")
        with pytest.raises(EventBatchError):
            client.events.create({"id": "e1", "type": "order.issued", "data": {}})
        page = views.link("events", "order.issued")
        assert "A fault of kind event made this event fail." in views.text(page)
        client.events.create({"id": "e1", "type": "order.issued", "data": {}})
        text = views.text(page)
        assert "Stored without effect: the service does not act on order.issued." in text
        assert "A fault" not in text


def test_inbound_events_name_the_refused_ones(client: FollowUp, views: Views) -> None:
    order = {"type": "order.issued", "data": {}}
    client.events.create({"id": "e1", **order})  # type: ignore[typeddict-item]
    assert "refused" not in views.text("events")
    client.events.create([{"id": "e2", **order}, {"id": "e3", "type": "patient.upserted", "data": {}}])  # type: ignore[list-item]
    assert "1 event of 1 call was refused. An invalid event is not stored" in views.text("events")
    assert views.column(views.link("events", "1 call"), "status") == ["200 1 of 2 refused"]


class TestSearch:
    def found(self, views: Views, text: str) -> list[str]:
        return re.findall(r'<tr role="row" data-key="(\w+)"', views.html(f"search?{httpx.QueryParams({'q': text})}"))

    def test_an_idempotency_key_finds_all_its_calls(self, service: MockService, client: FollowUp, views: Views) -> None:
        for _ in range(3):
            client.patients.create(phone=ANA["phone"], idempotency_key="order-77")
        client.account.retrieve()
        assert self.found(views, "order-77") == [each.request_id for each in service.requests[1:]]
        assert views.column("search?q=order-77", "matched by") == ["idempotency key"] * 3
        assert views.column("search?q=order-77", "name") == ["POST /v1/patients: 200"] * 3

    def test_the_beginning_of_an_id_is_enough(self, client: FollowUp, views: Views) -> None:
        patient = client.patients.create(phone=ANA["phone"], full_name="Ana Díaz")
        request_id = patient.last_response.request_id or ""
        assert self.found(views, patient.id[:8]) == [patient.id]
        booked = client.appointments.create(patient=patient.id, start_at=START, external_id="T-1")
        assert self.found(views, "T-1") == [booked.id]
        assert self.found(views, request_id[:8]) == [request_id]
        assert self.found(views, "pat_") == []
        assert views.column(f"search?q={patient.id}", "name") == ["Ana Díaz"]

    @pytest.mark.parametrize("text", ["\u0301", " ", "́ ́"])
    def test_a_text_without_letters_finds_nothing(self, client: FollowUp, views: Views, text: str) -> None:
        client.patients.create(phone=ANA["phone"], full_name="Ana Díaz")
        assert self.found(views, text) == []

    def test_jobs_messages_and_control_calls_are_found(
        self, service: MockService, client: FollowUp, views: Views
    ) -> None:
        client.appointments.create(patient={"phone": ANA["phone"]}, start_at="2026-09-30T12:00:00Z")
        service.advance(days=1)
        message = service.messages[0].id
        job = next(each.cause for each in service.explain(message) if each.kind == "message")
        for found, name in ((message, "Message"), (job, "Reminder"), ("ctl_1", "Test control advance")):
            assert self.found(views, found or "") == [found]
            assert views.column(f"search?q={found}", "name") == [name]
            assert views.html(f"history/{found}")
        assert self.found(views, "job_999") == []

    def test_an_error_code_an_operation_and_an_event_type_lead_to_their_lists(
        self, client: FollowUp, views: Views
    ) -> None:
        with pytest.raises(APIStatusError):
            client.patients.create(phone="12")
        endpoint = client.webhook_endpoints.create(url=HOOKS, enabled_events=["appointment.created"])
        client.appointments.create(patient=ANA_DIAZ, start_at=START)  # type: ignore[arg-type]

        def lists(text: str) -> list[tuple[str, str, str]]:
            rows = views.rows(f"search?{httpx.QueryParams({'q': text})}")
            return [(row["list"], row["name"], row["matched by"]) for row in rows]

        assert lists("parameter_invalid") == [("API calls", "parameter_invalid (1)", "error code")]
        assert views.link("search?q=Parameter_Inv", "parameter_invalid (1)") == "calls?q=parameter_invalid"
        assert lists("appointments.create") == [("API calls", "appointments.create (1)", "operation")]
        assert lists("appointment.created") == [
            ("Outbound events", "appointment.created (1)", "event type"),
            ("Webhook deliveries", "appointment.created (1)", "event type"),
        ]
        for address in ("calls?q=parameter_invalid", "webhook_deliveries?event_type=appointment.created"):
            assert len(views.rows(address)) == 1
        assert self.found(views, HOOKS) == self.found(views, HOOKS.upper()) == [endpoint.id]

    def test_the_reason_that_a_list_shows_for_a_failed_delivery_finds_it(
        self, service: MockService, client: FollowUp, views: Views
    ) -> None:
        service.mount(HOOKS, lambda _: httpx.Response(500, json={"error": "database is locked"}))
        client.webhook_endpoints.create(url=HOOKS, enabled_events=["patient.upserted"])
        client.patients.create(phone=ANA["phone"])
        service.advance()
        (delivery,) = service.client().webhook_deliveries.list()
        for shown in ("Database is LOCKED", "500 database", "HTTP status 500"):
            assert self.found(views, shown) == [delivery.id]

    def test_patients_of_the_same_name_have_phone_and_next_appointment(self, client: FollowUp, views: Views) -> None:
        booked = client.appointments.create(patient=ANA_DIAZ, start_at=START)  # type: ignore[arg-type]
        client.patients.create(phone="+5491155550002", full_name="Ana Díaz")
        assert views.column("search?q=ana", "phone, next appointment") == [
            "+5491155550001, 2026-10-01 12:30:00Z", "+5491155550002"
        ]  # fmt: skip
        assert booked.id not in views.html("search?q=ana")


class TestTabs:
    def test_they_count_and_filter(self, client: FollowUp, views: Views) -> None:
        patient = client.patients.create(phone=ANA["phone"])
        for day in (1, 2, 3):
            client.appointments.create(patient=patient.id, start_at=f"2026-10-0{day}T12:00:00Z")
        client.appointments.cancel(next(iter(client.appointments.list())).id)
        tabs = {"All": 3, "Confirmed": 2, "Pending": 0, "Rescheduled": 0, "Cancelled": 1, "Completed": 0}
        cancelled = "appointments?status=cancelled"
        assert views.tabs("appointments") == views.tabs(cancelled) == tabs
        assert views.column(cancelled, "status") == ["cancelled"]
        assert "None of 3 matches the filters. Show all" in views.text("appointments?status=pending")
        assert '<span class="count">1 of 3</span>' in views.html(cancelled)
        assert '<span class="count">3</span>' in views.html("appointments")
        assert re.findall(r'<a data-key="tab-(\w+)"[^>]*aria-current="true"', views.html("appointments")) == ["all"]
        assert f'href="#/{cancelled}" aria-current="true"' in views.html(cancelled)


class TestFilters:
    def test_deliveries_by_endpoint_type_day_and_state(
        self, service: MockService, client: FollowUp, views: Views
    ) -> None:
        service.mount(HOOKS, lambda _: httpx.Response(204))
        service.mount("https://lab.example/in", lambda _: httpx.Response(401))
        client.webhook_endpoints.create(url=HOOKS, enabled_events=["*"])
        other = client.webhook_endpoints.create(url="https://lab.example/in", enabled_events=["*"])
        client.patients.create(**ANA_DIAZ)  # type: ignore[arg-type]
        service.advance(days=1)
        client.appointments.create(patient=ANA_DIAZ, start_at=START)  # type: ignore[arg-type]
        service.advance()
        client.webhook_endpoints.update(other.id, disabled=True)
        tabs = {"All": 4, "Pending": 0, "Succeeded": 2, "Failed": 0, "Stopped": 2}
        assert views.tabs("webhook_deliveries") == tabs
        assert views.column("webhook_deliveries?status=stopped&day=2026-09-29", "event") == ["appointment.created"]
        by_endpoint = f"webhook_deliveries?webhook_endpoint={other.id}"
        assert views.tabs(by_endpoint)["All"] == 2
        assert views.column(f"{by_endpoint}&event_type=patient.upserted", "status") == ["stopped"]
        html = views.html(by_endpoint)
        options = [text_of(each) for each in re.findall(r"<option.*?</option>", html)]
        assert options[:3] == ["all (4)", "clinic.example/hooks (2)", "lab.example/in (2)"], "by name"
        assert options[3:] == [
            "all (2)", "appointment.created (1)", "patient.upserted (1)", "all (2)", "2026-09-28 (1)", "2026-09-29 (1)"
        ]  # fmt: skip
        assert f'<option value="{other.id}" selected>' in html
        assert "Pending 0" in views.text("webhook_deliveries?day=2026-01-01")

    def test_who_comes_tomorrow(self, service: MockService, client: FollowUp, views: Views) -> None:
        starts = ("2026-09-29T15:00:00Z", "2026-09-30T02:30:00Z", "2026-09-30T03:00:00Z", "2026-09-28T13:00:00Z")
        for number, start in enumerate(starts):
            client.appointments.create(
                patient={"phone": f"+549115555000{number}"}, start_at=start, external_id=f"T-{number}"
            )
        service.advance(hours=2)
        assert views.column("appointments?day=2026-09-29", "external id") == ["T-1", "T-0"]
        assert views.column("patients", "next appointment")[:2] == ["–", "2026-09-30 03:00:00Z"]
        client.appointments.cancel(views.link("appointments?day=2026-09-30", "+5491155550002").partition("/")[2])
        assert views.column("patients", "next appointment")[:2] == ["–", "–"]


def test_paging_in_both_directions(client: FollowUp, views: Views) -> None:
    for number in range(120):
        client.patients.create(phone=f"+5491155{number:06}", external_id=f"X{number:03}")
    first = views.column("patients", "external id")
    assert (first[0], first[-1]) == ("X119", "X070")
    second_page = views.link("patients", "Older")
    second = views.column(second_page, "external id")
    third_page = views.link(second_page, "Older")
    third = views.column(third_page, "external id")
    assert (second[0], third[-1]) == ("X069", "X000")
    assert ">Older<" not in views.html(third_page)
    assert views.column(views.link(third_page, "Newest"), "external id") == first
    assert views.column("patients?after=pat_gone", "external id") == first
