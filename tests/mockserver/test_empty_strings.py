"""An empty string names nobody: it is rejected where something is identified or reached by it."""

from typing import Any

import pytest
from support.http import Api, problem

from followup import FollowUp

PHONE = "+5491155550000"
START = "2026-10-05T12:00:00Z"
PATIENT_FIELDS = ("phone", "fullName", "dni", "email", "externalId")


def bodies() -> list[tuple[str, Any, str]]:
    """Path, body and the field that is empty."""
    visit = {"visitedAt": "2026-09-28T11:00:00Z"}
    cases: list[tuple[str, Any, str]] = [("/v1/patients", {"phone": PHONE, each: ""}, each) for each in PATIENT_FIELDS]
    for path, rest in (
        ("/v1/appointments", {"startAt": START}),
        ("/v1/visits", visit),
        ("/v1/treatments", {"name": "rest"}),
        ("/v1/intake_requests", {}),
    ):
        cases += [(path, {"patient": {"phone": PHONE, each: ""}, **rest}, f"patient.{each}") for each in PATIENT_FIELDS]
    for path, rest in (("/v1/appointments", {"startAt": START}), ("/v1/visits", visit)):
        cases += [(path, {"patient": {"phone": PHONE}, "externalId": "", **rest}, "externalId")]
        cases += [
            (path, {"patient": {"phone": PHONE}, "doctor": {each: ""}, **rest}, f"doctor.{each}")
            for each in ("externalId", "fullName")
        ]
    cases += [
        ("/v1/intake_requests", {"patient": {"phone": PHONE}, "contacts": [{each: ""}]}, f"contacts[0].{each}")
        for each in ("name", "phone", "email")
    ]
    cases += [
        ("/v1/intake_requests", {"patient": {"phone": PHONE}, "sender": {each: ""}}, f"sender.{each}")
        for each in ("name", "email")
    ]
    return [*cases, ("/v1/treatments", {"patient": {"phone": PHONE}, "name": ""}, "name")]


@pytest.mark.parametrize(("path", "body", "param"), bodies())
def test_an_empty_string_is_rejected_and_nothing_is_created(api: Api, path: str, body: Any, param: str) -> None:
    assert problem(api.post(path, body)) == (400, "parameter_invalid", param)
    assert [api.get(each).json()["data"] for each in ("/v1/patients", path)] == [[], []]


@pytest.mark.parametrize("field", ["fullName", "dni", "email", "externalId"])
def test_a_change_to_an_empty_string_is_rejected_and_null_clears(api: Api, field: str) -> None:
    full = {"phone": PHONE, "fullName": "Ana", "dni": "1", "email": "ana@mail.example", "externalId": "P-1"}
    patient = api.post("/v1/patients", full).json()
    assert problem(api.patch(f"/v1/patients/{patient['id']}", {field: ""})) == (400, "parameter_invalid", field)
    assert api.get(f"/v1/patients/{patient['id']}").json() == patient
    assert api.patch(f"/v1/patients/{patient['id']}", {field: None}).json()[field] is None


def test_a_change_to_a_doctor_without_a_name_is_rejected(api: Api, client: FollowUp) -> None:
    made = client.appointments.create(patient={"phone": PHONE}, start_at=START)
    rejected = api.patch(f"/v1/appointments/{made.id}", {"doctor": {"fullName": ""}})
    assert problem(rejected) == (400, "parameter_invalid", "doctor.fullName")


@pytest.mark.parametrize(
    ("type", "data", "where"),
    [
        ("patient.upserted", {"patient": {"phone": PHONE, "externalId": ""}}, "data.patient.externalId"),
        ("patient.upserted", {"patient": {"phone": PHONE, "fullName": ""}}, "data.patient.fullName"),
        ("patient.upserted", {"patient": {"phone": "", "dni": "1"}}, "data.patient.phone"),
        (
            "appointment.created",
            {"patient": {"phone": PHONE}, "appointment": {"startAt": START, "externalId": ""}},
            "data.appointment.externalId",
        ),
        ("appointment.cancelled", {"appointment": {"externalId": ""}}, "data.appointment.externalId"),
        (
            "appointment.rescheduled",
            {"appointment": {"externalId": "", "startAt": START}},
            "data.appointment.externalId",
        ),
        ("visit.completed", {"patient": {"dni": ""}, "visit": {"visitedAt": START}}, "data.patient.dni"),
        ("intake.requested", {"contacts": [{"name": ""}]}, "data.contacts[0].name"),
    ],
)
def test_in_an_event_it_is_invalid(api: Api, type: str, data: Any, where: str) -> None:
    response = api.post("/v1/events", {"id": "e-1", "type": type, "data": data})
    (result,) = response.json()["results"]
    assert (response.status_code, result["status"]) == (400, "invalid")
    assert result["error"].startswith(f"{where}: ")
    assert api.get("/v1/patients").json()["data"] == []


@pytest.mark.parametrize(
    "path",
    ["/v1/patients?externalId=", "/v1/patients?phone=", "/v1/patients?dni=", "/v1/appointments?externalId=",
     "/v1/visits?externalId=", "/v1/doctors?externalId="],
)  # fmt: skip
def test_nothing_is_looked_for_by_an_empty_string(api: Api, path: str) -> None:
    assert problem(api.get(path)) == (400, "parameter_invalid", path.partition("?")[2].rstrip("="))


def test_the_contract_says_so(api: Api) -> None:
    paths = api.get("/api/v1/openapi.json").json()["paths"]

    def properties(path: str, method: str = "post") -> Any:
        body = paths[path][method]["requestBody"]["content"]["application/json"]["schema"]
        return body["properties"]

    patient = properties("/v1/patients")
    assert [patient[each]["minLength"] for each in PATIENT_FIELDS] == [1] * 5
    assert properties("/v1/patients/{id}", "patch")["externalId"]["minLength"] == 1
    assert properties("/v1/appointments")["externalId"]["minLength"] == 1
    contact = properties("/v1/intake_requests")["contacts"]["items"]["properties"]
    assert (contact["name"]["minLength"], "minLength" in contact["relationship"]) == (1, False)
