"""Patients (specification, section 4, Patients)."""

from datetime import UTC, date, datetime
from typing import Any

import pytest
from support.http import Api, problem

from followup import FollowUp
from followup_mockserver import MockService


def test_section_4_create_keeps_what_was_sent(client: FollowUp) -> None:
    patient = client.patients.create(
        phone="+54 9 11 5555-0000",
        full_name="Ana Pérez",
        dni="30.123.456",
        email="ana@mail.example",
        external_id="P-1",
        date_of_birth=date(1980, 5, 17),
    )
    assert patient.id.startswith("pat_")
    assert len(patient.id) == len("pat_") + 24
    assert (patient.object, patient.full_name, patient.phone) == ("patient", "Ana Pérez", "+5491155550000")
    assert (patient.dni, patient.email, patient.external_id) == ("30123456", "ana@mail.example", "P-1")
    assert patient.date_of_birth == date(1980, 5, 17)
    assert (patient.stage, patient.opted_out) == ("pending_follow_up", False)
    assert patient.created_at == patient.updated_at == datetime(2026, 9, 28, 12, tzinfo=UTC)
    assert client.patients.retrieve(patient.id) == patient


@pytest.mark.parametrize(
    "phone", ["+5491155550000", "+54 9 11 5555-0000", "0054 9 11 5555 0000", "(011) 15-5555-0000", "011 15 5555 0000"]
)
def test_section_4_a_patient_is_found_by_phone_in_any_format(client: FollowUp, phone: str) -> None:
    first = client.patients.create(phone="+5491155550000")
    assert client.patients.create(phone=phone).id == first.id
    assert [each.id for each in client.patients.list(phone=phone)] == [first.id]


@pytest.mark.parametrize("phone", ["12", "abc", "", "+999999999999999999", "++", "+54 9 11 5555-00005555000"])
def test_an_invalid_phone_is_rejected_and_leaves_nothing(api: Api, service: MockService, phone: str) -> None:
    assert problem(api.post("/v1/patients", {"phone": phone})) == (400, "parameter_invalid", "phone")
    assert api.get("/v1/patients").json()["data"] == []


def test_section_4_create_fills_what_was_missing_and_overwrites_nothing(client: FollowUp) -> None:
    first = client.patients.create(phone="+5491155550000", full_name="Ana", email="ana@mail.example")
    again = client.patients.create(phone="+5491155550000", full_name="Other", dni="1.2", external_id="P-1")
    assert again.id == first.id
    assert (again.full_name, again.email, again.dni, again.external_id) == ("Ana", "ana@mail.example", "12", "P-1")


def test_section_4_a_patient_is_found_by_dni(client: FollowUp) -> None:
    first = client.patients.create(phone="+5491155550000", dni="30.123.456")
    assert client.patients.create(phone="+5491155550001", dni="30123456").id == first.id
    assert client.patients.retrieve(first.id).phone == "+5491155550000"


def test_the_phone_decides_over_the_dni_of_another(client: FollowUp) -> None:
    first = client.patients.create(phone="+5491155550000", dni="1")
    second = client.patients.create(phone="+5491155550001", dni="2")
    assert client.patients.create(phone="+5491155550000", dni="2").id == first.id
    assert client.patients.retrieve(first.id).dni == "1"
    assert client.patients.retrieve(second.id) == second


def test_a_patient_without_a_phone_gets_the_one_that_is_sent(client: FollowUp) -> None:
    made = client.treatments.create(patient={"dni": "30.123.456"}, name="rest")
    assert client.patients.retrieve(made.patient).phone is None
    assert client.patients.create(phone="+5491155550000", dni="30123456").id == made.patient
    assert client.patients.retrieve(made.patient).phone == "+5491155550000"


def test_section_4_update_changes_only_what_is_sent(client: FollowUp, service: MockService) -> None:
    patient = client.patients.create(phone="+5491155550000", full_name="Ana", email="ana@mail.example")
    service.advance(hours=1)
    changed = client.patients.update(patient.id, full_name="Ana María", dni="1.234")
    assert (changed.full_name, changed.email, changed.dni) == ("Ana María", "ana@mail.example", "1234")
    assert changed.updated_at > patient.updated_at
    assert client.patients.update(patient.id, email=None).email is None
    assert [each.id for each in client.patients.list(dni="1234")] == [patient.id]


def test_section_4_the_phone_cannot_be_changed(client: FollowUp, api: Api) -> None:
    patient = client.patients.create(phone="+5491155550000")
    rejected = api.patch(f"/v1/patients/{patient.id}", {"phone": "+5491155550001", "fullName": "Ana"})
    assert problem(rejected) == (400, "parameter_unchangeable", "phone")
    assert client.patients.retrieve(patient.id) == patient


def test_section_4_list_filters(client: FollowUp) -> None:
    made = [
        client.patients.create(phone=f"+549115555000{number}", dni=f"3000{number}", external_id=f"P-{number}")
        for number in range(3)
    ]
    assert [each.id for each in client.patients.list(dni="3.000.1")] == [made[1].id]
    assert [each.id for each in client.patients.list(external_id="P-2")] == [made[2].id]
    assert [each.id for each in client.patients.list(external_id="P-2", dni="30001")] == []
    assert [each.id for each in client.patients.list()] == [each.id for each in reversed(made)]


@pytest.mark.parametrize(
    ("body", "code", "param"),
    [
        ({}, "parameter_missing", "phone"),
        ({"phone": 5}, "parameter_invalid", "phone"),
        ({"phone": None}, "parameter_invalid", "phone"),
        ({"phone": "+5491155550000", "emial": "x"}, "parameter_unknown", "emial"),
        ({"phnoe": "+5491155550000"}, "parameter_unknown", "phnoe"),
        ({"phone": "+5491155550000", "email": "x"}, "parameter_invalid", "email"),
        ({"phone": "+5491155550000", "dateOfBirth": "17/05/1980"}, "parameter_invalid", "dateOfBirth"),
        ({"phone": "+5491155550000", "dateOfBirth": "1980-02-30"}, "parameter_invalid", "dateOfBirth"),
        ({"phone": "+5491155550000", "fullName": ["x"]}, "parameter_invalid", "fullName"),
        ({"phone": "+5491155550000", "fullName": "x" * 5001}, "parameter_invalid", "fullName"),
        ({"phone": "+5491155550000", "dni": " . "}, "parameter_invalid", "dni"),
    ],
)
def test_a_wrong_field_is_named(api: Api, body: Any, code: str, param: str) -> None:
    assert problem(api.post("/v1/patients", body)) == (400, code, param)
    assert api.get("/v1/patients").json()["data"] == []


def test_section_3_the_stage_follows_appointments_and_visits(client: FollowUp) -> None:
    patient = client.patients.create(phone="+5491155550000")

    def stage() -> str:
        return client.patients.retrieve(patient.id).stage

    assert stage() == "pending_follow_up"
    appointment = client.appointments.create(patient=patient.id, start_at="2026-10-01T12:00:00Z")
    assert stage() == "scheduled"
    client.appointments.cancel(appointment.id)
    assert stage() == "pending_follow_up"
    client.visits.create(patient=patient.id, visited_at="2026-09-28T11:00:00Z")
    assert stage() == "periodic_follow_up"
    client.appointments.create(patient=patient.id, start_at="2026-10-01T12:00:00Z")
    assert stage() == "scheduled"


@pytest.mark.parametrize(
    "dni",
    [
        "m 12.345\n678",
        "M\u00a012345\u2009678",
        "m\u200b12\u3000345678\ufeff",
        "M.1.2.3.4.5.6.7.8\t\r",
        "\u200cM123\u200d45\u180e67\xad8\u202e",
    ],
)
def test_a_document_is_the_same_with_spaces_and_dots_and_in_either_case(client: FollowUp, dni: str) -> None:
    patient = client.patients.create(phone="+5491155550000", dni="M12345678")
    assert client.patients.update(patient.id, dni=dni).dni == "M12345678"
    assert client.patients.create(phone="+5491155550001", dni=dni).id == patient.id
    assert [each.id for each in client.patients.list(dni=dni)] == [patient.id]
    assert client.treatments.create(patient={"dni": dni}, name="rest").patient == patient.id
    assert client.intake_requests.create(patient={"dni": dni}).patient == patient.id
    event = {"id": "e-1", "type": "patient.upserted", "data": {"patient": {"dni": dni, "email": "ana@mail.example"}}}
    client.events.create(event)  # type: ignore[arg-type]
    assert client.patients.retrieve(patient.id).email == "ana@mail.example"
    assert client.patients.create(phone="+5491155550002", dni="M-12345678").dni == "M-12345678"
