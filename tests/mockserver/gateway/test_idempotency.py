"""Idempotency keys: which there are, and their bounded records (specification, sections 4 and 7)."""

import re
from datetime import UTC, datetime

import pytest
from support.http import Api

from followup import FollowUp
from followup_mockserver import MockService
from followup_mockserver.world.state.idempotency import IdempotencyRecords

NO_KEYS = ["", " ", " k", "k ", "\tk", "x" * 256, "a\nb", "a\tb", "ñ", "k\x00", "k\x7f"]
PATIENT = {"phone": "+54 9 11 5555-0000"}


@pytest.fixture
def pattern(api: Api) -> str:
    parameters = api.get("/api/v1/openapi.json").json()["paths"]["/v1/patients"]["post"]["parameters"]
    return str(next(each for each in parameters if each["name"] == "Idempotency-Key")["schema"]["pattern"])


@pytest.mark.parametrize("key", NO_KEYS)
def test_anything_else_is_rejected_before_it_is_sent(
    client: FollowUp, service: MockService, pattern: str, key: str
) -> None:
    with pytest.raises(ValueError, match="idempotency_key must be 1 to 255 printable ASCII characters"):
        client.patients.create(**PATIENT, idempotency_key=key)
    assert not re.search(pattern, key)
    assert [each for each in service.requests if each.method == "POST"] == []


NOON = datetime(2026, 9, 28, 12, tzinfo=UTC)


def test_a_request_that_failed_frees_its_own_key_and_not_the_same_key_of_a_later_request() -> None:
    records = IdempotencyRecords(24)
    failed = records.begin("k", b"1", NOON)
    records.release(failed)
    later = records.begin("k", b"1", NOON)
    records.release(failed)
    assert records.find("k", NOON) is later
