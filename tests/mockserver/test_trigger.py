"""Webhooks that a test triggers: about the newest object that fits, or about an invented one that is made for them."""

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from contract.specification import RESULTS
from support.http import Api, problem

from followup import FollowUp, WebhookEvent, construct_event
from followup_mockserver import MockService, ServiceError
from followup_mockserver.rules.triggered_events import examples

FIELDS = {
    part: {each.name for each in RESULTS[part[0].upper() + part[1:]] if each.required}
    for part in ("patient", "appointment", "visit", "treatment", "intakeRequest", "webhookEndpoint")
}
"""The fields of the resources; a secret is shown by the creation alone."""

EMPTY = {
    "appointment.created": {"cancelledAt"},
    "appointment.rescheduled": {"cancelledAt"},
    "intake.requested": {"discardReason", "readyAt", "loadedAt", "closedAt"},
    "intake.created": {"discardReason", "readyAt", "loadedAt", "closedAt"},
    "webhook.ping": {"description", "lastDeliveredAt", "lastError"},
}
"""The fields that are null in the object of an event, because of its state."""

PARTS = {
    "intake.requested": ("int_", {"intakeRequest", "patient"}),
    "patient.upserted": ("pat_", {"patient"}),
    "appointment.created": ("apt_", {"appointment", "patient"}),
    "appointment.rescheduled": ("apt_", {"appointment", "patient"}),
    "appointment.cancelled": ("apt_", {"appointment", "patient"}),
    "visit.completed": ("vis_", {"visit", "patient"}),
    "treatment.prescribed": ("trt_", {"treatment", "patient"}),
    "order.issued": ("evt_", {"order", "patient"}),
    "intake.created": ("int_", {"intakeRequest", "patient"}),
    "intake.ready": ("int_", {"intake", "patient", "requestedService"}),
    "conversation.handoff": ("pat_", {"conversation", "patient"}),
    "patient.silent": ("pat_", {"patient"}),
    "webhook.ping": ("we_", {"webhookEndpoint"}),
}
"""The prefix of the object that ``ref`` names, and the parts of the data."""

PHONE = "+5491155550000"
URL = "https://clinic.example/hooks"
NOON = datetime(2026, 9, 28, 12, tzinfo=UTC)

each_type = pytest.mark.parametrize("type", PARTS)


@pytest.fixture(autouse=True)
def received(service: MockService, client: FollowUp) -> list[WebhookEvent]:
    """The webhooks that a receiver of all types has verified, oldest first."""
    secret = client.webhook_endpoints.create(url=URL, enabled_events=["*"]).secret or ""
    events: list[WebhookEvent] = []

    def receive(request: httpx.Request) -> httpx.Response:
        events.append(construct_event(request.content, request.headers, secret))
        return httpx.Response(204)

    service.mount(URL, receive)
    return events


def triggered(service: MockService, type: Any) -> Any:
    (delivery,) = service.trigger(type=type)
    return delivery.payload


@each_type
def test_section_2_an_event_and_its_objects_are_complete(service: MockService, type: str) -> None:
    for data in (examples()[type], triggered(service, type)["data"]):
        _, parts = PARTS[type]
        assert {*data} == parts
        for part in parts & {*FIELDS} if type != "intake.ready" else ():
            assert {*data[part]} == FIELDS[part]
            empty = {name for name, value in data[part].items() if value is None}
            assert empty == (EMPTY.get(type, set()) if part != "patient" else set())
        for part in parts & {*FIELDS} - {"patient"}:
            assert data[part].get("patient") == data.get("patient", {}).get("id")


@each_type
def test_section_6_2_the_object_that_ref_names_can_be_retrieved(
    client: FollowUp, service: MockService, received: list[WebhookEvent], type: str
) -> None:
    payload = triggered(service, type)
    service.advance()
    (event,) = received
    assert (event.type, event.ref, event.data) == (type, payload["ref"], payload["data"])
    assert event.ref.startswith(PARTS[type][0])
    found = event.retrieve(client)
    assert found.id == event.ref
    in_data = event.appointment or event.visit or event.treatment or event.intake_request
    assert in_data is None or in_data.id == event.ref
    if "patient" in event.data and type != "intake.ready":
        assert event.patient == client.patients.retrieve(event.patient.id if event.patient else "")
    service.advance(days=10)
    assert len(received) == len(service.deliveries) == 1  # nothing is sent about what was made for it


def test_section_3_what_is_made_is_in_the_state_that_the_event_reports(client: FollowUp, service: MockService) -> None:
    states = {
        "appointment.created": "confirmed",
        "appointment.rescheduled": "rescheduled",
        "appointment.cancelled": "cancelled",
    }
    for name, status in states.items():
        payload = triggered(service, name)
        made = client.appointments.retrieve(payload["ref"])
        assert (payload["data"]["appointment"]["status"], made.status) == (status, status)
        assert client.appointments.list(external_id=made.external_id or "").data == [made]
    visit = client.visits.retrieve(triggered(service, "visit.completed")["ref"])
    assert client.appointments.retrieve(visit.appointment or "").status == "completed"
    ready = client.intake_requests.retrieve(triggered(service, "intake.ready")["ref"])
    assert (ready.status, ready.missing, ready.ready_at) == ("ready", [], NOON)
    order = client.events.retrieve(triggered(service, "order.issued")["ref"])
    assert (order.status, order.source, order.data["order"]["kind"]) == ("unhandled", "manual", "lab")
    assert len(client.appointments.list().data) == 4
    assert len({each.external_id for each in client.appointments.list()}) == 4
    assert len(client.patients.list().data) == 1


def test_what_is_made_has_reminders_and_messages_like_any_other(service: MockService) -> None:
    triggered(service, "appointment.created")
    triggered(service, "visit.completed")
    service.advance(days=8)
    assert sorted(each.kind for each in service.messages) == ["post_visit", "reminder", "reminder"]


def test_section_6_2_ready_is_never_about_a_request_that_is_not(client: FollowUp, service: MockService) -> None:
    waiting = client.intake_requests.create(patient={"phone": PHONE})
    made = triggered(service, "intake.ready")
    assert made["ref"] != waiting.id
    ready = client.intake_requests.create(
        patient={"phone": PHONE, "full_name": "Ana", "dni": "30123456"},
        coverage={"insurer": "Salud Sur"},
        address="Calle 1",
        requested_service="nursing",
    )
    client.intake_requests.create(patient={"phone": "+5491155550001"})
    assert triggered(service, "intake.ready")["data"]["intake"] == {"id": ready.id, "missing": []}
    service.load_intake_request(ready.id)
    assert triggered(service, "intake.ready")["ref"] == made["ref"]
    service.load_intake_request(made["ref"])
    assert triggered(service, "intake.ready")["ref"] not in (ready.id, made["ref"], waiting.id)


@pytest.mark.parametrize(
    ("type", "fits"),
    [
        ("appointment.created", "confirmed"),
        ("appointment.rescheduled", "rescheduled"),
        ("appointment.cancelled", "cancelled"),
    ],
)
def test_an_appointment_of_another_status_does_not_fit(
    client: FollowUp, service: MockService, type: str, fits: str
) -> None:
    made = {}
    for number, status in enumerate(["confirmed", "rescheduled", "cancelled"]):
        appointment = client.appointments.create(patient={"phone": PHONE}, start_at=f"2026-10-0{number + 1}T12:00:00Z")
        made[status] = appointment.id
    client.appointments.update(made["rescheduled"], start_at="2026-10-09T12:00:00Z")
    client.appointments.cancel(made["cancelled"])
    payload = triggered(service, type)
    assert (payload["ref"], payload["data"]["appointment"]["status"]) == (made[fits], fits)


def test_an_object_that_fits_is_used_and_stays_as_it_is(client: FollowUp, service: MockService) -> None:
    patient = client.patients.create(phone=PHONE)
    order: Any = {"id": "1", "type": "order.issued", "data": {"patient": {"phone": PHONE}, "order": {"kind": "lab"}}}
    stored = service.receive_event(order, source="pms")
    pending = service.add_appointment(patient=patient.id, start_at=NOON + timedelta(days=1), status="pending")
    before = client.patients.retrieve(patient.id)
    for name, ref in {
        "patient.silent": patient.id,
        "conversation.handoff": patient.id,
        "order.issued": stored.id,
        "appointment.created": pending.id,
    }.items():
        assert triggered(service, name)["ref"] == ref
    assert client.patients.list().data == [before]
    assert client.appointments.list().data == [pending]


def test_section_6_2_a_ping_reaches_every_enabled_endpoint_about_itself(client: FollowUp, service: MockService) -> None:
    (first,) = client.webhook_endpoints.list()
    second = client.webhook_endpoints.create(url="https://other.example", enabled_events=["visit.completed"])
    third = client.webhook_endpoints.create(url="https://third.example", enabled_events=["*"])
    client.webhook_endpoints.update(third.id, disabled=True)
    sent = service.trigger("webhook.ping")
    assert [each.webhook_endpoint for each in sent] == [first.id, second.id]
    for each in sent:
        assert each.payload["ref"] == each.payload["data"]["webhookEndpoint"]["id"] == each.webhook_endpoint


@pytest.mark.parametrize(
    ("type", "data"),
    [
        ("appointment.created", {"appointment": {"id": "apt_mine"}}),
        ("intake.ready", {"intake": {"id": "int_mine", "missing": []}}),
        ("intake.created", {"intakeRequest": {"id": "int_mine"}}),
        ("patient.silent", {"patient": {"id": "pat_mine"}}),
        ("webhook.ping", {"webhookEndpoint": {"id": "we_mine"}}),
    ],
)
def test_own_data_is_sent_unchanged_and_its_id_is_the_ref(
    client: FollowUp, service: MockService, type: Any, data: Any
) -> None:
    (delivery,) = service.trigger(type, data=data)
    assert delivery.payload["data"] == data
    assert delivery.payload["ref"] == PARTS[type][0] + "mine"
    assert client.patients.list().data == []


@each_type
def test_own_data_without_an_id_still_has_a_ref_that_can_be_retrieved(
    client: FollowUp, service: MockService, received: list[WebhookEvent], type: Any
) -> None:
    for data in ({"x": 1}, {"appointment": None, "patient": "Ana", "order": {"id": 5}}):
        service.trigger(type, data=data)
    service.advance()
    assert [each.data for each in received] == [{"x": 1}, {"appointment": None, "patient": "Ana", "order": {"id": 5}}]
    for event in received:
        assert event.retrieve(client).id.startswith(PARTS[type][0])


class TestWithoutReceiver:
    @pytest.fixture
    def endpoint(self, client: FollowUp) -> str:
        (endpoint,) = client.webhook_endpoints.list()
        return endpoint.id

    @pytest.mark.parametrize("data", [None, {"x": 1}])
    @each_type
    def test_no_endpoint(self, client: FollowUp, service: MockService, endpoint: str, type: Any, data: Any) -> None:
        client.webhook_endpoints.delete(endpoint)
        with pytest.raises(ServiceError, match=r"^No webhook endpoint is registered: create one, or run") as caught:
            service.trigger(type, data=data)
        assert (caught.value.status, caught.value.code) == (400, "webhook_endpoint_missing")
        assert client.patients.list().data == client.events.list().data == []

    def test_none_that_is_subscribed(self, client: FollowUp, service: MockService, endpoint: str) -> None:
        client.webhook_endpoints.update(endpoint, enabled_events=["visit.completed"])
        with pytest.raises(ServiceError, match=r"^No webhook endpoint is subscribed to patient\.silent\.$"):
            service.trigger("patient.silent")
        assert len(service.trigger("webhook.ping")) == 1

    def test_none_that_is_enabled(self, client: FollowUp, service: MockService, endpoint: str) -> None:
        client.webhook_endpoints.update(endpoint, disabled=True)
        for name in ("patient.silent", "webhook.ping"):
            with pytest.raises(ServiceError, match="is disabled"):
                service.trigger(name)  # type: ignore[arg-type]

    def test_over_http(self, client: FollowUp, api: Api, endpoint: str) -> None:
        assert len(api.post("/_mock/trigger", {"type": "patient.silent"}).json()["data"]) == 1
        client.webhook_endpoints.delete(endpoint)
        response = api.post("/_mock/trigger", {"type": "patient.silent"})
        assert problem(response) == (400, "webhook_endpoint_missing", None)


def test_the_roster_may_be_empty(client: FollowUp, service: MockService) -> None:
    for doctor in client.doctors.list():
        service.update_doctor(doctor.id, active=False)
    assert triggered(service, "appointment.created")["data"]["appointment"]["doctor"] is None


def test_a_request_is_ready_whatever_the_organization_requires(client: FollowUp, service: MockService) -> None:
    every = [
        "fullName", "dni", "phone", "address", "requestedService", "summary", "hospitalized", "contacts",
        "coverage.insurer", "coverage.plan", "coverage.memberId", "patient.email", "patient.dateOfBirth",
        "patient.externalId", "sender.name", "sender.organization", "sender.email",
    ]  # fmt: skip
    service.update_organization(intake_required=every)
    payload = triggered(service, "intake.ready")
    assert payload["data"]["intake"] == {"id": payload["ref"], "missing": []}


def test_a_wrong_type_is_a_value_error(service: MockService) -> None:
    with pytest.raises(ValueError, match=r"^type must be one of intake\.requested, patient\.upserted, "):
        service.trigger("appointment.canceled")  # type: ignore[arg-type]
