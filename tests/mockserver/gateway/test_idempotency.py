"""Idempotency keys: which there are, and their bounded records (specification, sections 4 and 7)."""

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import httpx
import pytest
from support.http import Api

from followup import FollowUp
from followup_mockserver import MockServer, MockService
from followup_mockserver.world.state import requests
from followup_mockserver.world.state.requests import IdempotencyRecords

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
TREATMENT = {"patient": {"phone": "+5491155550000"}, "name": "x"}


def test_section_7_a_key_in_progress_outlives_any_number_of_later_keys(
    server: MockServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "MAX_RECORDS", 5)
    headers = {"Authorization": f"Bearer {server.api_key}"}
    server.add_fault(operation="treatments.create", kind="delay", seconds=300)
    with httpx.Client(base_url=server.url, headers=headers, trust_env=False) as http, ThreadPoolExecutor(1) as pool:

        def create(key: str) -> httpx.Response:
            return http.post("/v1/treatments", json=TREATMENT, headers={"Idempotency-Key": key})

        first = pool.submit(create, "in progress")
        while not len(server._tenant.idempotency):
            assert not first.done()
        for number in range(10):
            create(f"later {number}")
        assert create("in progress").status_code == 409
        assert not first.done()
        server.stop()  # the delay ends
        assert first.result().status_code == 200
    assert (len(server._tenant.treatments), len(server._tenant.idempotency)) == (11, 5)


def test_a_request_that_failed_frees_its_own_key_and_not_the_same_key_of_a_later_request() -> None:
    records = IdempotencyRecords(24)
    failed = records.begin("k", b"1", NOON)
    records.release(failed)
    later = records.begin("k", b"1", NOON)
    records.release(failed)
    assert records.find("k", NOON) is later
