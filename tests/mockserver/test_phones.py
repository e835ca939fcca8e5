"""Phones, as they are compared and shown (specification, section 2, Patient): E.164 out, any format in."""

from typing import Any

import pytest
from support.http import Api, problem

from followup import FollowUp
from followup_mockserver import MockService

MOBILE = "+5491155550000"


@pytest.mark.parametrize(
    "phone",
    [
        "+54 9 11 5555-0000",
        "5491155550000",
        "0054 9 11 5555 0000",
        "+54 11 15 5555-0000",
        "(011) 15-5555-0000",
        "011 15 5555 0000",
        "11 15 5555-0000",
        "9 11 5555 0000",
        "tel:+54-9-11-5555-0000",
        " TEL: 011 15 5555 0000 ",
        "+５４９１１５５５５００００",
        "\u202a+54 9 11 5555-0000\u202c",
    ],
)
def test_an_argentine_mobile_is_the_same_in_all_its_forms(client: FollowUp, phone: str) -> None:
    assert client.patients.create(phone=phone).phone == MOBILE


@pytest.mark.parametrize("phone", ["+54 11 5555-0000", "11 5555-0000", "(011) 5555-0000"])
def test_without_9_and_without_15_it_is_a_number_of_its_own(client: FollowUp, phone: str) -> None:
    assert client.patients.create(phone=phone).phone == "+541155550000"


@pytest.mark.parametrize("phone", ["15-5555-0000", "15 5555 0000", "5555-0000", "4812-0001", "911", "0800"])
def test_a_number_without_its_area_is_rejected(api: Api, phone: str) -> None:
    assert problem(api.post("/v1/patients", {"phone": phone})) == (400, "parameter_invalid", "phone")
    body = {"contacts": [{"name": "Eva", "phone": phone}]}
    assert problem(api.post("/v1/intake_requests", body)) == (400, "parameter_invalid", "contacts[0].phone")
    assert api.get("/v1/patients").json()["data"] == []


@pytest.mark.parametrize("phone", ["+52 1 55 1234 5678", "+5215512345678", "+52 55 1234 5678", "0052 1 55 1234 5678"])
def test_a_mexican_number_is_the_same_as_messaging_apps_give_it(client: FollowUp, phone: str) -> None:
    assert client.patients.create(phone=phone).phone == "+525512345678"


@pytest.mark.parametrize("phone", ["1 55 1234 5678", "55 1234 5678"])
def test_a_number_without_a_country_code_belongs_to_the_organizations_country(
    client: FollowUp, service: MockService, phone: str
) -> None:
    service.update_organization(country="MX")
    assert client.patients.create(phone=phone).phone == "+525512345678"


@pytest.mark.parametrize(
    ("phone", "e164"),
    [
        ("+34 600 123 456", "+34600123456"),
        ("+1 (555) 555-5555", "+15555555555"),
        ("+56 9 1234 5678", "+56912345678"),
        ("+55 (11) 91234-5678", "+5511912345678"),
    ],
)
def test_a_number_with_its_country_code_is_taken_if_it_is_possible(client: FollowUp, phone: str, e164: str) -> None:
    assert client.patients.create(phone=phone).phone == e164


@pytest.mark.parametrize("phone", ["+54 9 11 5555-00005555000", "+52 11 55 1234 5678", "+1 555", "+999 1234 5678"])
def test_an_impossible_number_is_rejected_with_a_country_code_too(api: Api, phone: str) -> None:
    assert problem(api.post("/v1/patients", {"phone": phone})) == (400, "parameter_invalid", "phone")


NOT_WHOLE = [
    "+54 9 11 5555 000O",
    "+54 9 11 5555 000a",
    "O54 9 11 5555 0000",
    "+54 9 11 5555-0000 ext. 5",
    "+54 9 11 5555-0000 x5",
    "+54 9 11 5555-0000;5",
    "+54 9 11 5555-0000,5",
    "+54 9 11 5555-0000#5",
    "tel:+54-9-11-5555-0000;ext=5",
    "*67 +54 9 11 5555-0000",
    "+1 800 FLOWERS",
    "Ana +54 9 11 5555-0000",
    "+54 9 11 5555-000²",
]
IN_AN_AREA = ["+1 555 0143", "+54 11 5555", "549115555", "+549115555", "+49 30 1", "0054 11 5555"]


@pytest.mark.parametrize("phone", NOT_WHOLE + IN_AN_AREA)
def test_nothing_of_a_number_is_cut_off(api: Api, client: FollowUp, phone: str) -> None:
    assert problem(api.post("/v1/patients", {"phone": phone})) == (400, "parameter_invalid", "phone")
    assert problem(api.get("/v1/patients", params={"phone": phone})) == (400, "parameter_invalid", "phone")
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
        ("+34 910 123 456", "+34910123456"),
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
