"""Patients, their phones and documents, and empty strings (specification, sections 2 and 4)."""

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


def test_section_4_create_fills_what_was_missing_and_overwrites_nothing(client: FollowUp) -> None:
    first = client.patients.create(phone="+5491155550000", full_name="Ana", email="ana@mail.example")
    again = client.patients.create(phone="+5491155550000", full_name="Other", dni="1.2", external_id="P-1")
    assert again.id == first.id
    assert (again.full_name, again.email, again.dni, again.external_id) == ("Ana", "ana@mail.example", "12", "P-1")


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
        ({"phnoe": "+5491155550000"}, "parameter_unknown", "phnoe"),
        ({"phone": "+5491155550000", "fullName": "x" * 5001}, "parameter_invalid", "fullName"),
        ({"phone": "+5491155550000", "dni": " . "}, "parameter_invalid", "dni"),
    ],
)
def test_a_wrong_field_is_named(api: Api, body: Any, code: str, param: str) -> None:
    assert problem(api.post("/v1/patients", body)) == (400, code, param)
    assert api.get("/v1/patients").json()["data"] == []


@pytest.mark.parametrize(
    "dni",
    [
        "m\u200b12\u3000345678\ufeff",
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


MOBILE, LANDLINE, MEXICAN = "+5491155550000", "+541155550000", "+525512345678"
PHONES = {
    "+54 9 11 5555-0000": MOBILE,
    "0054 9 11 5555 0000": MOBILE,
    "(011) 15-5555-0000": MOBILE,
    "9 11 5555 0000": MOBILE,
    " TEL: 011 15 5555 0000 ": MOBILE,
    "+５４９１１５５５５００００": MOBILE,
    "\u202a+54 9 11 5555-0000\u202c": MOBILE,
    "+54 11 5555-0000": LANDLINE,
    "(011) 5555-0000": LANDLINE,
    "+52 1 55 1234 5678": MEXICAN,
    "+52 55 1234 5678": MEXICAN,
    "+34 600 123 456": "+34600123456",
    "+1 (555) 555-5555": "+15555555555",
}


@pytest.mark.parametrize(("phone", "e164"), PHONES.items())
def test_a_phone_is_the_same_in_all_its_forms(client: FollowUp, phone: str, e164: str) -> None:
    assert client.patients.create(phone=phone).phone == e164


@pytest.mark.parametrize("phone", ["1 55 1234 5678", "55 1234 5678"])
def test_a_number_without_a_country_code_belongs_to_the_organizations_country(
    client: FollowUp, service: MockService, phone: str
) -> None:
    service.update_organization(country="MX")
    assert client.patients.create(phone=phone).phone == MEXICAN


NOT_WHOLE = [
    "+54 9 11 5555 000a",
    "O54 9 11 5555 0000",
    "+54 9 11 5555-0000 ext. 5",
    "+54 9 11 5555-0000;5",
    "tel:+54-9-11-5555-0000;ext=5",
    "*67 +54 9 11 5555-0000",
    "+1 800 FLOWERS",
    "Ana +54 9 11 5555-0000",
    "+54 9 11 5555-000²",
]
WITHOUT_AREA = ["15-5555-0000", "15 5555 0000", "5555-0000", "4812-0001", "911", "0800"]
IMPOSSIBLE = ["+54 9 11 5555-00005555000", "+52 11 55 1234 5678", "+1 555", "+999 1234 5678"]
IN_AN_AREA = ["+1 555 0143", "+54 11 5555", "549115555", "+549115555", "+49 30 1", "0054 11 5555"]


@pytest.mark.parametrize("phone", NOT_WHOLE + WITHOUT_AREA + IMPOSSIBLE + IN_AN_AREA)
def test_nothing_of_a_number_is_cut_off_and_none_is_guessed(api: Api, client: FollowUp, phone: str) -> None:
    assert problem(api.post("/v1/patients", {"phone": phone})) == (400, "parameter_invalid", "phone")
    assert problem(api.get("/v1/patients", params={"phone": phone})) == (400, "parameter_invalid", "phone")
    body = {"contacts": [{"name": "Eva", "phone": phone}]}
    assert problem(api.post("/v1/intake_requests", body)) == (400, "parameter_invalid", "contacts[0].phone")
    event: Any = {"id": "e-1", "type": "patient.upserted", "data": {"patient": {"phone": phone}}}
    response = api.post("/v1/events", event).json()
    assert (response["results"][0]["status"], response["results"][0]["error"][:20]) == (
        "invalid",
        "data.patient.phone: ",
    )
    assert client.patients.list().data == []


WITHOUT_THE_9 = ["11 5555-0000", "+54 11 5555-0000", "54 11 55550000", "(011) 5555 0000", "0054 11 5555 0000"]


def test_a_landline_can_be_assumed_to_be_the_mobile_number(service: MockService, client: FollowUp) -> None:
    service.update_organization(mobiles="assume")
    patient = client.patients.create(phone=MOBILE)
    for number, phone in enumerate([*WITHOUT_THE_9, MOBILE, "011 15 5555-0000", "+54 11 15 5555 0000"]):
        assert client.patients.create(phone=phone).id == patient.id
        assert [each.id for each in client.patients.list(phone=phone)] == [patient.id]
        assert client.treatments.create(patient={"phone": phone}, name="rest").patient == patient.id
        assert client.intake_requests.create(patient={"phone": phone}).patient == patient.id
        data = {"patient": {"phone": phone}, "treatment": {"name": "rest"}}
        client.events.create({"id": f"e-{number}", "type": "treatment.prescribed", "data": data})
    assert [each.id for each in client.patients.list()] == [patient.id]


@pytest.mark.parametrize(
    ("phone", "e164"),
    [
        ("0351 15 512-0004", "+5493515120004"),
        ("0351 512-0004", "+5493515120004"),
        ("0800 555 1234", "+548005551234"),
        ("+54 15 4812 0001", "+541548120001"),
        ("+55 11 1234-5678", "+551112345678"),
    ],
)
def test_only_an_argentine_landline_is_assumed_to_be_a_mobile_number(phone: str, e164: str) -> None:
    with MockService(mobiles="assume") as service, service.client() as client:
        assert client.patients.create(phone=phone).phone == e164


@pytest.mark.parametrize("phone", ["15 5555-0000", "5555-0000"])
def test_a_number_without_its_area_is_rejected_where_mobiles_are_assumed(
    service: MockService, api: Api, phone: str
) -> None:
    service.update_organization(mobiles="assume")
    assert problem(api.post("/v1/patients", {"phone": phone})) == (400, "parameter_invalid", "phone")


PHONE = "+5491155550000"
START = "2026-10-05T12:00:00Z"


@pytest.mark.parametrize("field", ["fullName", "dni", "email", "externalId"])
def test_a_change_to_an_empty_string_is_rejected_and_null_clears(api: Api, field: str) -> None:
    full = {"phone": PHONE, "fullName": "Ana", "dni": "1", "email": "ana@mail.example", "externalId": "P-1"}
    patient = api.post("/v1/patients", full).json()
    assert problem(api.patch(f"/v1/patients/{patient['id']}", {field: ""})) == (400, "parameter_invalid", field)
    assert api.get(f"/v1/patients/{patient['id']}").json() == patient
    assert api.patch(f"/v1/patients/{patient['id']}", {field: None}).json()[field] is None


@pytest.mark.parametrize(
    ("type", "data", "where"),
    [
        ("patient.upserted", {"patient": {"phone": PHONE, "fullName": ""}}, "data.patient.fullName"),
        ("patient.upserted", {"patient": {"phone": "", "dni": "1"}}, "data.patient.phone"),
        ("appointment.cancelled", {"appointment": {"externalId": ""}}, "data.appointment.externalId"),
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
