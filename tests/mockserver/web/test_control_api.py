"""The control API over HTTP."""

import json
from typing import Any

import httpx
import pytest
from support.http import Api, problem

from followup import FollowUp
from followup_mockserver import MockService
from followup_mockserver.service import InProcessTransport


def test_the_clock(api: Api) -> None:
    assert api.get("/_mock/clock").json() == {"now": "2026-09-28T12:00:00.000Z", "frozen": True}
    moved = api.post("/_mock/clock/advance", {"seconds": 90}).json()
    assert moved == {"now": "2026-09-28T12:01:30.000Z", "ran": 0, "jobs": []}
    moved = api.post("/_mock/clock/advance", {"to": "2026-09-28T13:00:00+00:00"}).json()
    assert moved["now"] == "2026-09-28T13:00:00.000Z"
    assert problem(api.post("/_mock/clock/advance", {"seconds": -1})) == (400, "parameter_invalid", "seconds")
    past = api.post("/_mock/clock/advance", {"to": "2026-09-28T12:59:59Z"})
    assert problem(past) == (400, "parameter_invalid", "to")
    assert "2026-09-28T13:00:00.000Z" in past.json()["error"]["message"]
    assert "the clock never goes back" in past.json()["error"]["message"]
    assert problem(api.post("/_mock/clock/advance", {"to": "x"})) == (400, "parameter_invalid", "to")
    assert problem(api.post("/_mock/clock/advance", {"seconds": 1e300})) == (400, "parameter_invalid", "seconds")
    both = {"seconds": 1, "to": "2026-09-29T13:00:00Z"}
    assert problem(api.post("/_mock/clock/advance", both)) == (400, "parameter_invalid", "to")
    assert api.get("/_mock/clock").json()["now"] == "2026-09-28T13:00:00.000Z"


def test_jobs_reminders_and_messages(api: Api, client: FollowUp) -> None:
    made = client.appointments.create(patient={"phone": "+5491155550000"}, start_at="2026-09-29T12:00:00Z")
    due = {"appointment": made.id, "patient": made.patient, "sendAt": "2026-09-29T09:00:00.000Z"}
    assert api.get("/_mock/reminders").json()["data"][1] == due
    assert api.get("/_mock/reminders?appointment=apt_none").json() == {"data": []}
    job = {"at": "2026-09-28T12:00:00.000Z", "kind": "reminder", "about": made.id}
    assert api.get("/_mock/clock/jobs").json()["data"][0] == job
    stepped = api.post("/_mock/clock/step").json()
    assert (stepped["ran"], stepped["jobs"]) == (1, [{**job, "outcome": "sent"}])
    (message,) = api.get(f"/_mock/messages?patient={made.patient}").json()["data"]
    assert set(message) == {"id", "patient", "phone", "kind", "text", "sentAt", "about"}
    assert (message["kind"], message["about"], message["sentAt"]) == ("reminder", made.id, "2026-09-28T12:00:00.000Z")
    assert api.get("/_mock/messages?patient=pat_none").json() == {"data": []}


def test_doctors_and_patients(api: Api, client: FollowUp) -> None:
    doctor = api.post("/_mock/doctors", {"fullName": "Dra. X", "licenseNumber": "1", "externalId": "D-9"}).json()
    assert client.doctors.retrieve(doctor["id"]).license_number == "1"
    assert api.patch(f"/_mock/doctors/{doctor['id']}", {"active": False}).json()["active"] is False
    assert problem(api.patch("/_mock/doctors/doc_none", {"active": False})) == (404, "resource_missing", "id")
    cleared = api.patch(f"/_mock/doctors/{doctor['id']}", {"licenseNumber": None}).json()
    assert (cleared["licenseNumber"], cleared["externalId"]) == (None, "D-9")
    nobody = api.patch(f"/_mock/doctors/{doctor['id']}", {"fullName": None})
    assert problem(nobody) == (400, "parameter_invalid", "fullName")
    assert problem(api.post("/_mock/doctors", {})) == (400, "parameter_missing", "fullName")
    patient = client.patients.create(phone="+5491155550000")
    changed = api.patch(f"/_mock/patients/{patient.id}", {"optedOut": True, "stage": "lost"}).json()
    assert (changed["optedOut"], changed["stage"]) == (True, "lost")
    assert problem(api.patch(f"/_mock/patients/{patient.id}", {"stage": "x"})) == (400, "parameter_invalid", "stage")
    handoff = api.post(f"/_mock/patients/{patient.id}/handoff", {"reason": ""})
    assert problem(handoff) == (400, "parameter_invalid", "reason")
    assert problem(api.post("/_mock/patients/pat_none/reply")) == (404, "resource_missing", "id")


def test_organizations_and_keys(api: Api) -> None:
    keys: Any = [{"name": "ci", "scopes": ["patients:read"]}]
    wanted = {"name": "Lab", "serviceLines": ["network"], "livemode": True, "keys": keys}
    made = api.post("/_mock/organizations", wanted).json()
    (key,) = made["keys"]
    assert set(key) == {"name", "value", "prefix", "scopes", "revoked", "expiresAt"}
    assert made["organization"]["serviceLines"] == ["network"]
    account = api.get("/v1/account", key=key["value"]).json()
    assert (account["name"], account["livemode"]) == ("Lab", True)
    assert len(api.get("/v1/doctors", key=api.key).json()["data"]) == 4
    response = api.post("/_mock/api_keys", {"name": "more"}, key=key["value"]).json()
    assert response["organization"]["id"] == account["id"]
    (more,) = response["keys"]
    assert api.get("/v1/account", key=more["value"]).json()["id"] == account["id"]
    api.patch(f"/_mock/api_keys/{more['value']}", {"revoked": True}, key=key["value"])
    assert api.get("/v1/account", key=more["value"]).status_code == 401
    assert problem(api.post("/_mock/api_keys", {"scopes": ["x"]})) == (400, "parameter_invalid", "scopes[0]")
    keys = [{"name": "a"}, {"scopes": ["patients:read", "x"]}]
    response = api.post("/_mock/organizations", {"keys": keys})
    assert problem(response) == (400, "parameter_invalid", "keys[1].scopes[1]")


@pytest.mark.parametrize(
    ("setting", "param"),
    [
        ({"timeZone": "x"}, "timeZone"),
        ({"reminderHours": [24, 1e300]}, "reminderHours[1]"),
        ({"reminderHours": [-1]}, "reminderHours[0]"),
        ({"intakeRequired": ["dni", "patient.shoeSize"]}, "intakeRequired[1]"),
        ({"serviceLines": ["x"]}, "serviceLines[0]"),
        ({"name": None}, "name"),
    ],
)
def test_an_invalid_setting_changes_nothing(api: Api, setting: Any, param: str) -> None:
    rejected = api.patch("/_mock/organization", {"name": "Changed", "livemode": None, **setting})
    assert problem(rejected)[0] == 400
    rejected = api.patch("/_mock/organization", {"name": "Changed", **setting})
    assert problem(rejected) == (400, "parameter_invalid", param)
    assert api.get("/v1/account").json()["name"] == "Clínica de prueba"


@pytest.mark.parametrize("number", [10**400, -1e308])
@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        ("organization", {"postVisitHours": 0}, "from 0 to 4320 hours"),
        ("organization", {"reminderHours": [0]}, "from 0 to 4320 hours"),
        ("faults", {"operation": "*", "kind": "delay", "seconds": 1}, ""),
        ("faults", {"operation": "*", "kind": "status", "status": 429, "retryAfter": 1}, ""),
        ("clock/advance", {"days": 1}, ""),
    ],
)
def test_a_number_out_of_range_names_its_own_range(
    api: Api, path: str, body: dict[str, Any], expected: str, number: float
) -> None:
    (param, value) = list(body.items())[-1]
    given = [number] if isinstance(value, list) else number
    rejected = api.request(
        "PATCH" if path == "organization" else "POST",
        f"/_mock/{path}",
        content=json.dumps({**body, param: given}),
        headers={"Content-Type": "application/json"},
    )
    assert problem(rejected)[:2] == (400, "parameter_invalid")
    message = rejected.json()["error"]["message"]
    assert expected in message
    assert "e+3" not in message, message


def test_a_fault_has_the_header_of_its_status(api: Api) -> None:
    fault = {"operation": "patients.create", "kind": "status", "status": 429, "times": 2, "retryAfter": 7}
    assert api.post("/_mock/faults", fault).json()["retryAfter"] == 7
    response = api.post("/v1/patients", {"phone": "+5491155550000"})
    assert (response.status_code, response.headers["retry-after"]) == (429, "7")
    assert api.delete("/_mock/faults").json() == {"status": "ok"}
    assert api.post("/v1/patients", {"phone": "+5491155550000"}).status_code == 200


def test_the_journal_is_newest_first_and_redacted(api: Api) -> None:
    api.post("/v1/patients", {"phone": "+5491155550000"}, headers={"Idempotency-Key": "k-1"})
    api.get("/v1/patients?phone=%2B5491155550000")
    api.get("/v1/account", key="fu_test_wrong")
    journal = api.get("/_mock/requests").json()["data"]
    assert [each["operation"] for each in journal] == ["account.retrieve", "patients.list", "patients.create"]
    assert [each["status"] for each in journal] == [401, 200, 200]
    assert journal[2] == {
        "operation": "patients.create",
        "method": "POST",
        "path": "/v1/patients",
        "status": 200,
        "requestId": journal[2]["requestId"],
        "idempotencyKey": "k-1",
        "at": "2026-09-28T12:00:00.000Z",
        "errorCode": None,
        "param": None,
        "attempt": 1,
        "replayed": False,
        "fault": None,
        "events": 0,
        "refused": 0,
    }
    assert "5555" not in str(journal)
    assert "fu_test" not in str(journal)


def test_trigger_and_deliveries(api: Api, client: FollowUp) -> None:
    client.webhook_endpoints.create(url="https://clinic.example", enabled_events=["*"])
    assert len(api.get("/_mock/trigger").json()) == 13
    (sent,) = api.post("/_mock/trigger", {"type": "order.issued"}).json()["data"]
    assert api.get("/_mock/webhook_deliveries?status=pending&type=order.issued").json()["data"] == [sent]
    assert api.get("/_mock/webhook_deliveries?status=succeeded").json()["data"] == []
    assert sent["eventType"] == "order.issued"
    assert problem(api.post("/_mock/trigger", {"type": "x"})) == (400, "parameter_invalid", "type")
    again = api.post(f"/_mock/webhook_deliveries/{sent['id']}/resend").json()
    assert (again["id"], again["attempts"]) == (sent["id"], 1)
    (attempt,) = api.get(f"/_mock/webhook_deliveries/{sent['id']}/attempts").json()["data"]
    assert (attempt["number"], attempt["trigger"]) == (1, "manual")
    assert problem(api.post("/_mock/webhook_deliveries/whd_none/resend"))[0] == 404


def test_endpoints_of_the_control_api_may_be_on_this_machine(api: Api, client: FollowUp) -> None:
    made = api.post("/_mock/webhook_endpoints", {"url": "http://127.0.0.1:8000/hooks"}).json()
    assert (made["enabledEvents"], made["secret"][:6]) == (["*"], "whsec_")
    assert api.get(f"/_mock/attempts?webhookEndpoint={made['id']}").json() == {"data": []}
    for url in ("http://clinic.example", "https://", "nonsense"):
        assert problem(api.post("/_mock/webhook_endpoints", {"url": url})) == (400, "parameter_invalid", "url")
    assert api.delete(f"/_mock/webhook_endpoints/{made['id']}").json()["deleted"] is True
    assert [*client.webhook_endpoints.list()] == []
    assert problem(api.delete(f"/_mock/webhook_endpoints/{made['id']}"))[0:2] == (404, "resource_missing")
    assert problem(api.get(f"/_mock/attempts?webhookEndpoint={made['id']}"))[0:2] == (404, "resource_missing")


def test_reset_of_one_organization_keeps_the_others(api: Api, client: FollowUp, service: MockService) -> None:
    key = service.create_organization().keys[0].value
    api.post("/v1/patients", {"phone": "+5491155550000"}, key=key)
    client.patients.create(phone="+5491155550000")
    api.post("/_mock/reset", key=key)
    assert api.get("/v1/patients", key=key).json()["data"] == []
    assert len([*client.patients.list()]) == 1
    api.post("/_mock/reset", key=None)
    assert [*client.patients.list()] == []
    assert api.get("/v1/patients", key=key).status_code == 401


def test_webhook_faults_that_wait_are_listed_and_removed(api: Api) -> None:
    added = api.post("/_mock/deliveries/disturb", {"kind": "late", "optional": True}).json()
    assert api.get("/_mock/deliveries/disturb").json() == {"data": [added]}
    assert api.delete("/_mock/deliveries/disturb").json() == {"status": "ok"}
    assert api.get("/_mock/deliveries/disturb").json() == {"data": []}


def test_unknown_paths_and_methods(api: Api) -> None:
    assert problem(api.get("/_mock/nothing"))[0] == 404
    assert problem(api.delete("/_mock/clock"))[0] == 405
    assert problem(api.get("/_mock/changes?wait=1000")) == (400, "parameter_invalid", "wait")
    assert problem(api.get("/_mock/messages?paint=1")) == (400, "parameter_unknown", "paint")
    assert problem(api.get("/_mock/requests?operation=patients.eat")) == (400, "parameter_invalid", "operation")
    assert problem(api.get("/_mock/webhook_deliveries?status=lost")) == (400, "parameter_invalid", "status")
    assert problem(api.get("/_mock/webhook_deliveries?type=patient.eaten")) == (400, "parameter_invalid", "type")
    assert problem(api.post("/_mock/clock/advance?seconds=5")) == (400, "parameter_unknown", "seconds")
    assert problem(api.post("/_mock/reset", {"x": 1})) == (400, "parameter_unknown", "x")
    assert problem(api.post("/_mock/reset", [])) == (400, "parameter_invalid", None)


def test_no_value_makes_a_route_fail(api: Api) -> None:
    paths = api.get("/_mock/openapi.json").json()["paths"]
    for path, operations in paths.items():
        for method in operations.keys() & {"post", "patch", "put"}:
            content = operations[method].get("requestBody", {}).get("content", {})
            schema = content.get("application/json", {}).get("schema", {})
            base = {name: "2026-09-30T12:00:00Z" if "At" in name else "x" for name in schema.get("required", ())}
            for name in schema.get("properties", ()):
                for value in (f"pat_{'x' * 300}", {"id": "x" * 300}, [f"doc_{'x' * 300}"], 10**30):
                    response = api.request(method.upper(), path.replace("{id}", "x"), json={**base, name: value})
                    assert response.status_code < 500, (method, path, name)


def test_control_calls_are_not_rate_limited_and_not_in_the_journal() -> None:
    service = MockService(rate_limit=1)
    with httpx.Client(transport=InProcessTransport(service._wsgi_app), base_url=service.url) as http:
        api = Api(http, service.api_key)
        assert [api.get("/_mock/clock").status_code for _ in range(3)] == [200] * 3
        assert api.get("/_mock/nothing").status_code == 404
        assert api.get("/v1/account").status_code == 200
        assert api.get("/v1/account").status_code == 429
    assert [each.operation for each in service.requests] == ["account.retrieve"] * 2


def test_representations_contain_neither_patients_nor_secrets(client: FollowUp, service: MockService) -> None:
    endpoint = client.webhook_endpoints.create(url="https://clinic.example", enabled_events=["*"])
    patient: Any = {"phone": "+5491155550000", "full_name": "Ana Pérez", "dni": "30123456"}
    client.appointments.create(patient=patient, start_at="2026-09-30T12:00:00Z")
    intake = client.intake_requests.create(patient=patient)
    service.mount("https://clinic.example", lambda _: httpx.Response(500))
    made = service.create_organization(keys=[{"name": "ci"}])
    moved = service.advance(days=2)
    shown = repr(
        [
            service.answer_intake_request(intake.id, address="Calle Falsa 123"),
            service.discard_intake_request(intake.id, reason="Ana Pérez called"),
            *(service.messages, service.reminders, service.jobs, service.requests, service.deliveries),
            *(service.attempts(service.deliveries[-1].id), service.trigger(type="patient.upserted"), service.clock),
            *(endpoint, made, moved, service.update_patient(service.messages[0].patient or "", stage="lost")),
            *(service.add_api_key(), service.update_organization(name="Lab"), service),
        ]
    )
    assert {each.kind for each in service.messages} == {"intake", "reminder"}
    for hidden in ("5555", "Ana", "30123456", "Falsa", endpoint.secret or "", made.keys[0].value, service.api_key):
        assert hidden not in shown
