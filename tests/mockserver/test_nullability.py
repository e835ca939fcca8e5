"""Where the contract takes null: in updates, and nowhere else in a request (specification, section 4)."""

from typing import Any

import pytest
from support.http import Api

NULLABLE = {
    "patients.update": {"fullName", "email", "dni", "externalId", "dateOfBirth"},
    "appointments.update": {"doctor", "type"},
    "webhook_endpoints.update": {"description"},
}


@pytest.fixture
def contract(api: Api) -> dict[str, Any]:
    document: dict[str, Any] = api.get("/api/v1/openapi.json").json()
    return document


def takes_null(schema: Any, contract: dict[str, Any]) -> bool:
    """Whether a schema takes null, at its top or anywhere below."""
    if isinstance(schema, list):
        return any(takes_null(each, contract) for each in schema)
    if not isinstance(schema, dict):
        return False
    if "$ref" in schema:
        return takes_null(contract["components"]["schemas"][schema["$ref"].rpartition("/")[2]], contract)
    kinds = schema.get("type")
    return kinds == "null" or (isinstance(kinds, list) and "null" in kinds) or takes_null([*schema.values()], contract)


def test_null_is_taken_in_updates_alone_and_below_none_of_their_fields(contract: dict[str, Any]) -> None:
    seen = set()
    for path in contract["paths"].values():
        for operation in path.values():
            name = operation["operationId"]
            seen.add(name)
            assert not takes_null([each["schema"] for each in operation["parameters"]], contract), name
            body = operation.get("requestBody")
            if body is None:
                continue
            schema = body["content"]["application/json"]["schema"]
            fields = schema.get("properties", {"": schema})
            assert {field for field in fields if takes_null(fields[field], contract)} == NULLABLE.get(name, set()), name
            for field in NULLABLE.get(name, ()):
                inside = [each.get("properties") for each in fields[field].get("anyOf", [])]
                assert not takes_null(inside, contract), name
    assert len(seen) == 32


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/v1/patients", {"phone": "+5491155550000", "email": None}, "email"),
        ("/v1/appointments", {"patient": {"phone": None}, "startAt": "2026-12-01T10:00:00Z"}, "patient.phone"),
        ("/v1/intake_requests", {"contacts": [{"name": "Luis", "phone": None}]}, "contacts[0].phone"),
    ],
)
def test_null_in_a_creation_is_rejected(api: Api, path: str, body: Any, param: str) -> None:
    response = api.post(path, body)
    assert response.status_code == 400
    assert response.json()["error"]["param"] == param
