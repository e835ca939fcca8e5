"""The records of idempotency keys: bounded, and never at the cost of doing something twice (section 7)."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import httpx
import pytest

from followup_mockserver import MockServer
from followup_mockserver.state import requests
from followup_mockserver.state.requests import IdempotencyRecords

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
