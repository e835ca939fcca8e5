"""How the machine-readable contract is written; what it says is proved in tests/contract (section 9)."""

from typing import Any

import pytest
from contract import specification as spec
from support.http import Api


@pytest.fixture
def document(api: Api) -> dict[str, Any]:
    served: dict[str, Any] = api.get(spec.CONTRACT_PATH, key=None).json()
    return served


@pytest.mark.parametrize(
    "path", ["/v1/patients", "/v1/appointments", "/v1/visits", "/v1/intake_requests", "/v1/treatments", "/v1/events"]
)
def test_the_examples_are_accepted(api: Api, document: dict[str, Any], path: str) -> None:
    if path == "/v1/visits":
        # The example names the appointment of the other example.
        media = document["paths"]["/v1/appointments"]["post"]["requestBody"]["content"]["application/json"]
        assert api.post("/v1/appointments", media["example"]).status_code == 200
    example = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["example"]
    assert api.post(path, example).status_code == 200


NULLABLE = {
    "patients.update": {"fullName", "email", "dni", "externalId", "dateOfBirth"},
    "appointments.update": {"doctor", "type"},
    "webhook_endpoints.update": {"description"},
}


def takes_null(schema: Any, document: dict[str, Any]) -> bool:
    """Whether a schema takes null, at its top or anywhere below."""
    if isinstance(schema, list):
        return any(takes_null(each, document) for each in schema)
    if not isinstance(schema, dict):
        return False
    if "$ref" in schema:
        return takes_null(document["components"]["schemas"][schema["$ref"].rpartition("/")[2]], document)
    kinds = schema.get("type")
    return kinds == "null" or (isinstance(kinds, list) and "null" in kinds) or takes_null([*schema.values()], document)


def test_null_is_taken_in_updates_alone_and_below_none_of_their_fields(document: dict[str, Any]) -> None:
    seen = set()
    for path in document["paths"].values():
        for operation in path.values():
            name = operation["operationId"]
            seen.add(name)
            assert not takes_null([each["schema"] for each in operation["parameters"]], document), name
            body = operation.get("requestBody")
            if body is None:
                continue
            schema = body["content"]["application/json"]["schema"]
            fields = schema.get("properties", {"": schema})
            assert {field for field in fields if takes_null(fields[field], document)} == NULLABLE.get(name, set()), name
            for field in NULLABLE.get(name, ()):
                inside = [each.get("properties") for each in fields[field].get("anyOf", [])]
                assert not takes_null(inside, document), name
    assert len(seen) == 32
