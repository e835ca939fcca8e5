"""Which idempotency keys there are: SDK, mock and contract agree (specification, section 4, Conventions)."""

import re

import pytest
from support.http import Api

from followup import FollowUp
from followup_mockserver import MockService

KEYS = ["k", "visit 4711", "a  b", "~!@#", "{}", "0", "x" * 255, "x" + " " * 253 + "x"]
NO_KEYS = ["", " ", " k", "k ", "\tk", "x" * 256, "a\nb", "a\tb", "ñ", "k\x00", "k\x7f"]
PATIENT = {"phone": "+54 9 11 5555-0000"}


@pytest.fixture
def pattern(api: Api) -> str:
    parameters = api.get("/api/v1/openapi.json").json()["paths"]["/v1/patients"]["post"]["parameters"]
    return str(next(each for each in parameters if each["name"] == "Idempotency-Key")["schema"]["pattern"])


@pytest.mark.parametrize("key", KEYS)
def test_a_key_of_printable_characters_is_accepted(client: FollowUp, pattern: str, key: str) -> None:
    first, second = (client.patients.create(**PATIENT, idempotency_key=key) for _ in range(2))
    assert second.last_response.headers["Idempotent-Replayed"] == "true"
    assert first == second
    assert re.search(pattern, key)


@pytest.mark.parametrize("key", NO_KEYS)
def test_anything_else_is_rejected_before_it_is_sent(
    client: FollowUp, service: MockService, pattern: str, key: str
) -> None:
    with pytest.raises(ValueError, match="idempotency_key must be 1 to 255 printable ASCII characters"):
        client.patients.create(**PATIENT, idempotency_key=key)
    assert not re.search(pattern, key)
    assert [each for each in service.requests if each.method == "POST"] == []


@pytest.mark.parametrize("key", [" ", " k", "k ", "x" * 256, "a\tb", "k\x7f"])
def test_the_mock_rejects_anything_else(api: Api, key: str) -> None:
    problem = api.post("/v1/patients", PATIENT, headers={"Idempotency-Key": key}).json()["error"]
    assert (problem["code"], problem["param"]) == ("parameter_invalid", "Idempotency-Key")
    assert "1 to 255 printable ASCII characters" in problem["message"]
