"""Phones, as they are compared and shown (specification, section 2, Patient): E.164 out, any format in."""

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
