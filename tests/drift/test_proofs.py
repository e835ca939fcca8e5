"""Witnesses are true of the SDK and the mock themselves, not only of the schemas in the contract."""

import json
from collections.abc import Iterator

import httpx
import pytest
from drift.mutations import BREAKING, MOCK, MUTATIONS, Mutation, report_of

from followup import FollowUp, ResponseDecodeError
from followup_mockserver import MockService
from followup_mockserver.judge.drift.differences import Difference
from followup_mockserver.webhooks.transport import InProcessTransport


@pytest.fixture
def http() -> Iterator[httpx.Client]:
    service = MockService(rate_limit=0)
    headers = {"Authorization": f"Bearer {service.api_key}"}
    with httpx.Client(transport=InProcessTransport(service.app), base_url=service.url, headers=headers) as client:
        yield client


def requests_of(class_: str) -> list[Mutation]:
    """Return the mutations of the body or the query of operations without an id in their path."""
    return [
        mutation
        for mutation in MUTATIONS
        if mutation.tells_apart
        and any(
            found == class_ and ("request body" in where or "request query" in where) and "{id}" not in where
            for found, where in mutation.expected
        )
    ]


def send(http: httpx.Client, difference: Difference) -> httpx.Response:
    method, path, _, place = difference.where.split(" ", 3)
    if place.startswith("body"):
        return http.request(method, path, json=difference.witness)
    return http.request(method, path, params=difference.witness)


def breaks_another_rule(response: httpx.Response) -> bool:
    """Return whether the mock rejects a request because of a rule that no schema states."""
    error = response.json()["error"]
    is_unknown_id = error["code"] == "resource_missing"
    is_invalid_phone = (error["param"] or "").endswith("phone")
    is_without_patient = (error["code"], error["param"]) == ("parameter_missing", "patient")
    return is_unknown_id or is_invalid_phone or is_without_patient


@pytest.mark.parametrize("mutation", requests_of(MOCK), ids=str)
def test_the_mock_rejects_a_request_that_only_the_service_accepts(mutation: Mutation, http: httpx.Client) -> None:
    for difference in report_of(mutation).differences:
        if difference.class_ == MOCK:
            response = send(http, difference)
            assert response.status_code == 400, difference
            assert response.json()["error"]["code"].startswith("parameter_"), response.json()


@pytest.mark.parametrize("mutation", requests_of(BREAKING), ids=str)
def test_the_mock_accepts_the_form_of_a_request_that_the_service_rejects(
    mutation: Mutation, http: httpx.Client
) -> None:
    for difference in report_of(mutation).differences:
        if difference.class_ == BREAKING and "/v1/events request body" not in difference.where:
            response = send(http, difference)
            assert response.status_code == 200 or breaks_another_rule(response), (difference, response.json())


def client_of(difference: Difference) -> FollowUp:
    """Return a client whose service sends the witness."""
    content = json.dumps(difference.witness).encode()
    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=content))
    return FollowUp(api_key="key", base_url="http://service", http_client=httpx.Client(transport=transport))


NOT_DECODED = {
    "null_in_a_response": "GET /v1/doctors",
    "no_format_of_a_response": "GET /v1/doctors",
    "a_removed_field_of_a_list": "GET /v1/patients",
    "a_field_of_a_response_is_optional": "GET /v1/account",
    "a_nested_field_of_a_response_is_optional": "GET /v1/account",
    "another_type_of_a_response": "GET /v1/account",
    "GET /v1/account response 200 body.apiKey type breaking": "GET /v1/account",
    "a_list_instead_of_an_object": "GET /v1/account",
}


def breaking(name: str, operation: str) -> Difference:
    (mutation,) = (each for each in MUTATIONS if str(each) == name)
    found = (each for each in report_of(mutation).differences if each.class_ == BREAKING)
    return next(each for each in found if each.where.startswith(f"{operation} response"))


@pytest.mark.parametrize(("name", "operation"), NOT_DECODED.items())
def test_the_sdk_does_not_decode_a_breaking_response(name: str, operation: str) -> None:
    client = client_of(breaking(name, operation))
    call = {
        "GET /v1/doctors": client.doctors.list,
        "GET /v1/patients": client.patients.list,
        "GET /v1/account": client.account.retrieve,
    }[operation]
    with pytest.raises(ResponseDecodeError):
        call()


def test_the_sdk_decodes_a_new_value_of_an_enum_that_its_types_do_not_have() -> None:
    account = client_of(
        breaking("GET /v1/account response 200 body.serviceLines[] enum breaking", "GET /v1/account")
    ).account.retrieve()
    assert "emergency" in account.service_lines
