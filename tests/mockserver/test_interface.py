"""Control API and Python names, typed by hand from the interface: what they are called, take and respond with."""

import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from support.http import Api

from followup import FollowUp
from followup_mockserver import MockServer, MockService, ServiceError
from followup_mockserver.webhooks.transport import InProcessTransport

NOON = "2026-09-28T12:00:00Z"
HOOKS = "https://clinic.example/hooks"
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
ACCOUNT = {"id", "object", "name", "type", "timeZone", "serviceLines", "livemode", "apiKey"}
KEY = {"name", "value", "prefix", "scopes", "revoked", "expiresAt"}
DOCTOR = {"id", "object", "fullName", "specialty", "licenseNumber", "externalId", "active", "createdAt"}
FAULT = {"operation", "kind", "status", "seconds", "times"}
ENTRY = {"operation", "method", "path", "status", "requestId", "idempotencyKey", "at"} | {
    *("errorCode", "param", "attempt", "replayed", "fault", "events", "refused"),
}
OUTBOUND = {
    "intake.requested", "patient.upserted", "appointment.created", "appointment.rescheduled", "appointment.cancelled",
    "visit.completed", "treatment.prescribed", "order.issued", "intake.created", "intake.ready",
    "conversation.handoff", "patient.silent", "webhook.ping",
}  # fmt: skip


@pytest.fixture(params=[MockService, pytest.param(MockServer, marks=pytest.mark.nightly)])
def mock(request: pytest.FixtureRequest) -> Iterator[MockService | MockServer]:
    with request.param(start_time=NOON, rate_limit=0) as running:
        running.mount(HOOKS, lambda _: httpx.Response(204))
        yield running


@pytest.fixture
def api(mock: MockService | MockServer) -> Iterator[Api]:
    transport = InProcessTransport(mock.app) if isinstance(mock, MockService) else None
    with httpx.Client(transport=transport, base_url=mock.url, trust_env=False) as http:
        yield Api(http, mock.api_key)


@pytest.fixture
def client(mock: MockService | MockServer) -> Iterator[FollowUp]:
    with mock.client(max_retries=0) as client:
        yield client


def ok(response: httpx.Response) -> Any:
    assert response.status_code == 200, response.text
    return response.json()


class TestControlApi:
    def test_reminders_and_messages(self, api: Api, client: FollowUp) -> None:
        booked = client.appointments.create(patient={"phone": "+5491155550000"}, start_at="2026-09-30T12:00:00Z")
        pending = {"appointment": booked.id, "patient": booked.patient}
        times = ("2026-09-29T12:00:00.000Z", "2026-09-30T09:00:00.000Z")
        assert ok(api.get("/_mock/reminders")) == {"data": [{**pending, "sendAt": at} for at in times]}
        assert len(ok(api.get(f"/_mock/reminders?appointment={booked.id}"))["data"]) == 2
        assert ok(api.get("/_mock/reminders?appointment=apt_none")) == {"data": []}
        client.visits.create(patient=booked.patient, visited_at=NOON)
        client.intake_requests.create(patient={"phone": "+5491155550001"})
        api.post("/_mock/clock/advance", {"seconds": 86_400})
        messages = ok(api.get("/_mock/messages"))["data"]
        assert {each["kind"] for each in messages} == {"reminder", "post_visit", "intake"}
        assert {frozenset(each) for each in messages} == {
            frozenset({"id", "patient", "phone", "kind", "text", "sentAt", "about"})
        }
        own = ok(api.get(f"/_mock/messages?patient={booked.patient}"))["data"]
        assert {each["kind"] for each in own} == {"reminder", "post_visit"}

    def test_doctors(self, api: Api) -> None:
        fields = {
            "fullName": "Dra. X", "specialty": "x", "licenseNumber": "1", "externalId": "D-9", "active": False,
        }  # fmt: skip
        made = ok(api.post("/_mock/doctors", fields))
        assert made.keys() == DOCTOR
        assert {name: made[name] for name in fields} == fields
        assert ok(api.patch(f"/_mock/doctors/{made['id']}", {"active": True})) == {**made, "active": True}

    def test_organizations(self, api: Api) -> None:
        plain = ok(api.post("/_mock/organizations"))
        assert plain.keys() == {"organization", "keys"}
        assert plain["organization"].keys() == ACCOUNT
        assert [each.keys() for each in plain["keys"]] == [KEY]
        default = ok(api.get("/v1/account"))
        alike = ("type", "timeZone", "serviceLines", "livemode")
        assert [plain["organization"][each] for each in alike] == [default[each] for each in alike]
        roster = ok(api.get("/v1/doctors"))["data"]
        own = ok(api.get("/v1/doctors", key=plain["keys"][0]["value"]))["data"]
        assert [each["fullName"] for each in own] == [each["fullName"] for each in roster]
        wanted = {
            "name": "Lab", "serviceLines": ["network"], "livemode": True,
            "keys": [{"name": "a", "scopes": ["patients:read"]}, {"name": "b"}],
        }  # fmt: skip
        made = ok(api.post("/_mock/organizations", wanted))
        assert [each["name"] for each in made["keys"]] == ["a", "b"]
        assert made["keys"][0]["scopes"] == ["patients:read"]
        account = ok(api.get("/v1/account", key=made["keys"][0]["value"]))
        assert (account["name"], account["serviceLines"], account["livemode"]) == ("Lab", ["network"], True)

    @pytest.mark.parametrize(
        "change",
        [
            {"serviceLines": ["network"]}, {"reminderHours": [1, 0.5]}, {"postVisitHours": 0}, {"timeZone": "UTC"},
            {"intakeMessages": False}, {"name": "Lab"}, {"country": "UY"}, {"intakeRequired": []}, {"language": "pt"},
        ],
    )  # fmt: skip
    def test_organization(self, api: Api, change: Any) -> None:
        assert ok(api.patch("/_mock/organization", change)).keys() == ACCOUNT

    def test_faults(self, api: Api) -> None:
        plain = {"operation": "patients.create", "kind": "status", "status": 503, "times": 2}
        assert ok(api.post("/_mock/faults", plain)).items() >= plain.items()
        for more in (
            {"operation": "*", "kind": "delay", "seconds": 0.5},
            {"operation": "*", "kind": "disconnect", "when": "after", "skip": 1},
            {"operation": "*", "kind": "status", "status": 429, "probability": 0.5, "retryAfter": 3},
        ):
            assert ok(api.post("/_mock/faults", more)).items() >= more.items()
        waiting = ok(api.get("/_mock/faults"))["data"]
        assert [each["kind"] for each in waiting] == ["status", "delay", "disconnect", "status"]
        assert all(each.keys() >= FAULT for each in waiting)
        ok(api.delete("/_mock/faults"))
        assert ok(api.get("/_mock/faults")) == {"data": []}

    def test_requests(self, api: Api) -> None:
        api.post("/v1/patients", {"phone": "+5491155550000"}, headers={"Idempotency-Key": "k"})
        api.get("/v1/patients")
        newest, oldest = ok(api.get("/_mock/requests"))["data"]
        assert newest.keys() == ENTRY
        assert oldest["idempotencyKey"] == "k"
        assert [(each["operation"], each["method"], each["path"], each["status"]) for each in (newest, oldest)] == [
            ("patients.list", "GET", "/v1/patients", 200),
            ("patients.create", "POST", "/v1/patients", 200),
        ]

    def test_trigger_and_resend(self, api: Api, client: FollowUp) -> None:
        assert ok(api.get("/_mock/trigger")).keys() == OUTBOUND
        client.webhook_endpoints.create(url=HOOKS, enabled_events=["*"])
        for name in sorted(OUTBOUND):
            assert ok(api.post("/_mock/trigger", {"type": name, "data": {"x": 1}}))["data"][0]["eventType"] == name
        (delivery,) = ok(api.post("/_mock/trigger", {"type": "patient.silent"}))["data"]
        api.post("/_mock/clock/advance", {})
        again = ok(api.post(f"/_mock/webhook_deliveries/{delivery['id']}/resend"))
        assert (again["id"], again["status"], again["attempts"]) == (delivery["id"], "succeeded", 2)

    def test_reset(self, api: Api, client: FollowUp) -> None:
        key = ok(api.post("/_mock/organizations"))["keys"][0]["value"]
        ok(api.post("/v1/patients", {"phone": "+5491155550000"}, key=key))
        client.patients.create(phone="+5491155550000")
        ok(api.post("/_mock/reset", key=key))
        assert ok(api.get("/v1/patients", key=key))["data"] == []
        assert len(client.patients.list().data) == 1
        ok(api.post("/_mock/reset", key=None))
        assert client.patients.list().data == []
        assert api.get("/v1/account", key=key).status_code == 401


def test_the_same_in_python(mock: MockService | MockServer, client: FollowUp) -> None:
    """Each name by which a test looks and acts, with what it does."""
    assert (mock.clock.now.isoformat(), mock.clock.frozen) == ("2026-09-28T12:00:00+00:00", True)
    endpoint = client.webhook_endpoints.create(url=HOOKS, enabled_events=["*"])
    booked = client.appointments.create(patient={"phone": "+5491155550000"}, start_at="2026-09-30T12:00:00Z")
    mock.advance()
    assert [each.status for each in mock.deliveries] == ["succeeded"] * len(mock.deliveries)
    assert [each.webhook_endpoint for each in mock.attempts(mock.deliveries[0].id)] == [endpoint.id]
    assert mock.resend(mock.deliveries[0].id).id == mock.deliveries[0].id
    assert len(mock.attempts(mock.deliveries[0].id)) == 2
    assert [each.appointment for each in mock.reminders] == [booked.id] * 2
    assert [each.about for each in mock.jobs if each.kind == "reminder"] == [booked.id] * 2
    assert mock.step().ran == 1
    assert [each.kind for each in mock.messages] == ["reminder"]
    assert mock.requests[-1].operation == "webhook_endpoints.create"
    mock.add_fault(operation="patients.list", kind="status", status=503)
    mock.disturb(kind="duplicate")
    assert [each.status for each in mock.faults] == [503]
    mock.clear_faults()
    assert mock.faults == []
    assert [each.event_type for each in mock.trigger(type="order.issued")] == ["order.issued"]
    doctor = mock.add_doctor(full_name="Dra. X")
    assert mock.update_doctor(doctor.id, active=False).active is False
    assert mock.update_patient(booked.patient, opted_out=True, stage="lost").opted_out is True
    intake = client.intake_requests.create(patient={"phone": "+5491155550001"})
    data: Any = {"patient": {"full_name": "Ana", "dni": "1"}, "coverage": {"insurer": "x"}, "address": "y"}
    assert mock.answer_intake_request(intake.id, **data, requested_service="z").status == "ready"
    assert mock.load_intake_request(intake.id).status == "loaded"
    other = client.intake_requests.create(patient={"phone": "+5491155550002"})
    assert mock.discard_intake_request(other.id, reason="twice").discard_reason == "twice"
    assert mock.update_organization(name="Lab", language="en").name == "Lab"
    key = mock.add_api_key(name="ci", scopes=["patients:read"])
    assert mock.update_api_key(key.value, revoked=True).revoked is True
    made = mock.create_organization(name="Other", service_lines=["network"], livemode=True, keys=[{"name": "k"}])
    assert mock.organization(made.keys[0].value).requests == []
    mock.reset()
    assert client.patients.list().data == []
    mock.close()
    mock.close()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"operation": "patients.eat"}, "operation must be the name of an operation"),
        ({"kind": "explode"}, "kind must be one of status, delay, disconnect, truncate"),
        ({"status": 200}, "status must be an HTTP status from 400 to 599"),
        ({"status": "503"}, "status must be an HTTP status from 400 to 599"),
        ({"kind": "delay"}, "seconds must be more than 0"),
        ({"kind": "delay", "seconds": 0.0}, "seconds must be more than 0"),
        ({"seconds": "1"}, "seconds must be from 0 to 86400 seconds"),
        ({"times": 0}, "times must be 1 or more"),
        ({"times": 1.5}, "times must be 1 or more"),
        ({"when": "never"}, "when must be one of before, after"),
        ({"skip": -1}, "skip must be a whole number, 0 or more"),
        ({"probability": float("nan")}, "probability must be from 0 to 1"),
        ({"retry_after": -1}, "retry_after must be from 0 to 86400 seconds"),
    ],
)
def test_a_fault_is_checked_in_python_as_over_http(arguments: Any, text: str) -> None:
    service = MockService()
    with pytest.raises(ValueError, match="must be") as caught:
        service.add_fault(**{"operation": "*", "kind": "status", **arguments})
    assert str(caught.value).startswith(text)
    assert service.faults == []


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"kind": "lost"}, "kind must be one of duplicate, reorder, late, wrong_signature, old_signature"),
        ({"type": "patient.eaten"}, "type must be one of intake.requested, "),
        ({"times": 0}, "times must be a whole number, 1 or more"),
        ({"seconds": -1}, "seconds must be from 0 to 2592000 seconds"),
    ],
)
def test_a_webhook_fault_is_checked_in_python_as_over_http(arguments: Any, text: str) -> None:
    service = MockService()
    with pytest.raises(ValueError, match="must be") as caught:
        service.disturb(**{"kind": "late", **arguments})
    assert str(caught.value).startswith(text)
    assert service.webhook_faults == []


def test_webhook_faults_that_wait_are_listed_and_removed(api: Api, mock: MockService | MockServer) -> None:
    fault = {"kind": "late", "type": "visit.completed", "times": 2, "seconds": 60.0, "optional": True}
    added = ok(api.post("/_mock/deliveries/disturb", fault))
    fault |= {"matched": 0, "id": added["id"]}
    assert added == fault
    assert ok(api.get("/_mock/deliveries/disturb")) == {"data": [fault]}
    assert [each.times for each in mock.webhook_faults] == [2]
    assert ok(api.delete("/_mock/deliveries/disturb")) == {"status": "ok"}
    assert mock.webhook_faults == []
    mock.disturb(kind="duplicate")
    mock.clear_webhook_faults()
    assert ok(api.get("/_mock/deliveries/disturb")) == {"data": []}


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda mock: mock.mount("clinic.example/hooks", print), "url must be an https URL"),
        (lambda mock: mock.advance(seconds=1, to=NOON), "to must be omitted when a duration is passed"),
        (lambda mock: mock.advance(seconds="1"), "seconds must be a number"),
        (lambda mock: mock.advance(days=1e300), "days must be a number that keeps the clock before the year 9000"),
        (lambda mock: mock.trigger(type="patient.eaten"), "type must be one of intake.requested, "),
        (lambda mock: mock.update_patient("pat_x", stage="happy"), "stage must be one of pending_follow_up, "),
        (lambda mock: mock.update_patient("pat_x", opted_out="no"), "opted_out must be true or false"),
        (lambda mock: mock.add_api_key(scopes=["patients:eat"]), "scopes[0] must be one of doctors:read, "),
        (lambda mock: mock.create_organization(service_lines=["x"]), "service_lines[0] must be one of follow_up, "),
        (lambda mock: mock.update_organization(time_zone="Mars"), "time_zone must be the IANA name of a time zone"),
    ],
)
def test_an_invalid_argument_is_a_value_error_that_names_it(call: Any, text: str) -> None:
    with pytest.raises(ValueError, match="must be") as caught:
        call(MockService(start_time=NOON))
    assert str(caught.value).startswith(text)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("full_name", ""), ("full_name", None), ("full_name", 5), ("full_name", "x" * 5_001), ("specialty", ""),
        ("license_number", 5), ("external_id", ""), ("active", "yes"), ("active", None),
    ],
)  # fmt: skip
def test_a_doctor_is_checked_when_added_and_when_updated(argument: str, value: Any) -> None:
    service = MockService()
    doctor = service.client().doctors.list().data[0]
    for act in (service.add_doctor, lambda **fields: service.update_doctor(doctor.id, **fields)):
        with pytest.raises(ValueError, match=f"^{argument} must be ") as caught:
            act(**{"full_name": "Dra. X", argument: value})
        assert "x" * 5_001 not in str(caught.value)
    assert service.client().doctors.retrieve(doctor.id) == doctor


@pytest.mark.parametrize(
    "data",
    [
        {"address": None, "summary": None, "hospitalized": None},
        {"patient": {"dni": None, "email": None}, "contacts": None, "coverage": None, "sender": None},
        {"patient": {"full_name": None, "phone": None}, "requested_service": None},
    ],
)
def test_none_in_an_answer_means_omitted(data: Any) -> None:
    service = MockService()
    intake = service.client().intake_requests.create(patient={"dni": "1"}, address="Mitre 1", contacts=[{"name": "A"}])
    assert service.answer_intake_request(intake.id, **data).data == intake.data
    contacts: Any = [{"name": "Eva", "phone": None}]
    assert service.answer_intake_request(intake.id, contacts=contacts).data["contacts"] == [{"name": "Eva"}]


def test_types_ids_and_keys_are_positional() -> None:
    service = MockService()
    service.mount(HOOKS, lambda _: httpx.Response(204))
    service.client().webhook_endpoints.create(url=HOOKS, enabled_events=["*"])
    (first,), (second,) = service.trigger("intake.ready"), service.trigger(type="intake.ready")
    assert (first.event_type, second.event_type) == ("intake.ready", "intake.ready")
    assert service.attempts(first.id) == []
    assert service.organization(service.api_key).clock.frozen is False


def test_completion_offers_the_names_of_the_interface() -> None:
    named = {
        "client", "async_client", "app", "url", "api_key", "advance", "mount", "clock", "messages", "requests",
        "deliveries", "reminders", "jobs", "faults", "attempts", "step", "reset", "add_fault", "clear_faults",
        "disturb", "trigger", "resend", "add_doctor", "update_doctor", "update_patient", "answer_intake_request",
        "load_intake_request", "discard_intake_request", "create_organization", "update_organization", "add_api_key",
        "update_api_key", "organization", "close", "save", "load", "restore", "fork",
    }  # fmt: skip
    named |= {"waits", "unused_faults", "aclose", "advance_async", "step_async", "resend_async"}
    named |= {"explain"}
    webhook_faults = {"webhook_faults", "clear_webhook_faults", "remove_fault"}
    causes = {
        "receive_event", "receive_reply", "report_silence", "hand_off_conversation", "add_appointment",
        "confirm_appointment", "reschedule_appointment", "cancel_appointment", "add_visit",
    }  # fmt: skip
    assert {name for name in dir(MockService()) if not name.startswith("_")} == named | webhook_faults | causes


def test_an_error_about_a_parameter_names_it() -> None:
    service = MockService()
    with pytest.raises(ServiceError) as caught:
        service.update_doctor("doc_none", active=False)
    assert (str(caught.value), caught.value.message) == ("id: There is no such doctor.", "There is no such doctor.")


@pytest.mark.parametrize("name", ["MockService", "MockServer"])
def test_without_the_extra_the_import_says_what_to_install(name: str) -> None:
    code = f"import sys; sys.modules['flask'] = None\nfrom followup_mockserver import {name}"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert result.stderr.strip().splitlines()[-1] == (
        "ImportError: followup_mockserver needs flask, which is not installed: "
        "python -m pip install 'followup[mockserver]'"
    )
