"""What every operation shares: keys, scopes, lines, rate, versions, idempotency, pages, parsing (sections 4 to 9)."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import httpx
import pytest
from support.http import Api, problem

from followup import FollowUp
from followup_mockserver import MockServer, MockService
from followup_mockserver.service import InProcessTransport
from followup_mockserver.world.state.idempotency import IdempotencyRecords

PATIENT = {"phone": "+5491155550000"}


class TestIdempotency:
    def test_section_7_a_key_in_progress_is_a_409(self, server: MockServer) -> None:
        server.add_fault(operation="patients.create", kind="delay", seconds=1)
        headers = {"Authorization": f"Bearer {server.api_key}", "Idempotency-Key": "k-1"}
        with httpx.Client(base_url=server.url, headers=headers) as http, ThreadPoolExecutor(1) as pool:
            first = pool.submit(http.post, "/v1/patients", json=PATIENT)
            while not server._tenant.idempotency._records:
                assert not first.done()
            second = http.post("/v1/patients", json=PATIENT)
            assert problem(second) == (409, "idempotency_key_in_use", "Idempotency-Key")
            server.advance(days=2)
            third = http.post("/v1/patients", json=PATIENT)
            assert problem(third) == (409, "idempotency_key_in_use", "Idempotency-Key")
            assert second.json()["error"]["type"] == "idempotency_error"
            assert first.result().status_code == 200


class TestParsing:
    @pytest.mark.parametrize(
        "content",
        [
            b'{"phone": "\xff"}', b"[" * 100_000, b'{"a":' * 40 + b"1" + b"}" * 40,
            b'{"phone": ' + b"9" * 5000 + b"}", b'{"phone": ' + b"9" * 400 + b"}",
        ],
    )  # fmt: skip
    def test_no_body_makes_a_5xx(self, api: Api, content: bytes) -> None:
        response = api.request("POST", "/v1/patients", content=content, headers={"Content-Type": "application/json"})
        assert response.status_code == 400
        assert set(response.json()["error"]) == {"type", "code", "message", "param"}

    @pytest.mark.parametrize(("levels", "status"), [(32, 200), (33, 400)])
    def test_a_body_has_at_most_32_levels(self, api: Api, levels: int, status: int) -> None:
        inner = json.loads("[" * (levels - 3) + "{}, 1" + "]" * (levels - 3))  # in two objects, and with one inside
        assert api.post("/v1/events", {"id": "e1", "type": "order.issued", "data": {"x": inner}}).status_code == status

    def test_a_body_over_the_limit_is_not_looked_at_without_a_key(self, api: Api) -> None:
        response = api.request("POST", "/v1/patients", key=None, content=b"x" * 1_048_577)
        assert problem(response)[0:2] == (401, "api_key_missing")


def test_a_seed_makes_two_runs_the_same() -> None:
    def run() -> list[bytes]:
        service = MockService(seed=7, start_time="2026-09-28T12:00:00Z")
        with httpx.Client(transport=InProcessTransport(service._wsgi_app)) as http:
            api = Api(http, service.api_key)
            responses = [
                api.post(f"{service.url}/v1/webhook_endpoints", {"url": "https://x.example", "enabledEvents": ["*"]}),
                api.post(f"{service.url}/v1/patients", PATIENT),
                api.get(f"{service.url}/v1/webhook_deliveries"),
            ]
            return [each.content + str(each.headers).encode() for each in responses]

    assert run() == run()


NO_KEYS = ["", " ", " k", "k ", "\tk", "x" * 256, "a\nb", "a\tb", "ñ", "k\x00", "k\x7f"]


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
    failed = records.begin("k", "1", NOON)
    records.release(failed)
    later = records.begin("k", "1", NOON)
    records.release(failed)
    assert records.find("k", NOON) is later
