"""The machine-readable contract (specification, section 9)."""

from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator
from support.http import Api

from followup_mockserver.openapi import document
from followup_mockserver.operations import OPERATIONS

OPERATIONS_OF_THE_DOCUMENT = {
    each["operationId"]: each for methods in document()["paths"].values() for each in methods.values()
}


def test_it_is_valid_openapi_3_1(api: Api) -> None:
    served = api.get("/api/v1/openapi.json", key=None).json()
    assert served == document()
    assert served["openapi"].startswith("3.1")
    OpenAPIV31SpecValidator(served).validate()


def test_the_32_operations_have_their_names_methods_and_paths() -> None:
    assert set(OPERATIONS_OF_THE_DOCUMENT) == set(OPERATIONS)
    assert len(OPERATIONS) == 32
    for name, operation in OPERATIONS.items():
        assert document()["paths"][operation.path][operation.method.lower()]["operationId"] == name


@pytest.mark.parametrize("name", OPERATIONS)
def test_each_operation_is_described(name: str) -> None:
    described = OPERATIONS_OF_THE_DOCUMENT[name]
    assert described["summary"]
    assert {"200", "400", "401", "429", "500"} <= set(described["responses"])
    for parameter in described["parameters"]:
        assert parameter["description"]
    if "requestBody" in described:
        media = described["requestBody"]["content"]["application/json"]
        assert media["schema"]
        if name != "appointments.cancel":
            assert media["example"]


def test_the_examples_are_accepted(api: Api) -> None:
    for name in ("patients.create", "appointments.create", "visits.create", "intake_requests.create", "events.create"):
        described = OPERATIONS_OF_THE_DOCUMENT[name]
        example: Any = described["requestBody"]["content"]["application/json"]["example"]
        assert api.post(OPERATIONS[name].path, example).status_code == 200, name


def test_what_is_required_and_what_may_be_null() -> None:
    schemas = document()["components"]["schemas"]
    patient = schemas["Patient"]
    assert patient["properties"]["phone"]["type"] == ["string", "null"]
    assert patient["properties"]["stage"]["enum"][0] == "pending_follow_up"
    assert patient["properties"]["createdAt"]["format"] == "date-time"
    assert "secret" not in schemas["WebhookEndpoint"]["required"]
    body = OPERATIONS_OF_THE_DOCUMENT["appointments.create"]["requestBody"]["content"]["application/json"]["schema"]
    assert body["required"] == ["patient", "startAt"]
    assert body["additionalProperties"] is False
