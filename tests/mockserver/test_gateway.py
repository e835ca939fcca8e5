"""What every operation shares: keys, scopes, lines, rate, versions, idempotency, pages, parsing (sections 4 to 9)."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from support.http import Api, problem

from followup import FollowUp, RateLimitError
from followup_mockserver import MockServer, MockService
from followup_mockserver.http.in_process import InProcessTransport

PATIENT = {"phone": "+5491155550000"}


class TestKeys:
    def test_section_5_no_key_and_a_wrong_key(self, api: Api) -> None:
        assert problem(api.get("/v1/account", key=None))[0:2] == (401, "api_key_missing")
        assert problem(api.get("/v1/account", key="fu_test_other"))[0:2] == (401, "api_key_invalid")
        assert problem(api.get("/v1/account", headers={"Authorization": "Basic x"}))[0] == 401

    def test_section_5_the_account_shows_the_key_without_its_value(
        self, client: FollowUp, service: MockService
    ) -> None:
        key = service.add_api_key(name="ci", scopes=["patients:read"])
        account = service.client(api_key=key.value).account.retrieve()
        assert (account.api_key.name, account.api_key.scopes) == ("ci", ["patients:read"])
        assert key.value.startswith(account.api_key.prefix)
        assert len(account.api_key.prefix) < len(key.value)
        assert account.livemode is False
        assert account.id == client.account.retrieve().id

    def test_404_before_400(self, api: Api) -> None:
        response = api.request("PATCH", "/v1/patients/pat_none", content=b"{")
        assert problem(response) == (404, "resource_missing", "id")

    def test_another_organizations_object_is_a_404(self, api: Api, client: FollowUp, service: MockService) -> None:
        patient = client.patients.create(phone="+5491155550000")
        other = service.create_organization(name="Other", livemode=True)
        key = other.keys[0].value
        assert problem(api.get(f"/v1/patients/{patient.id}", key=key)) == (404, "resource_missing", "id")
        assert api.get("/v1/patients", key=key).json()["data"] == []
        assert api.get("/v1/account", key=key).json()["livemode"] is True


class TestRate:
    def test_section_8_the_limit_and_its_recovery(self) -> None:
        service = MockService(rate_limit=5, start_time="2026-09-28T12:00:00Z")
        client = service.client(max_retries=0)
        statuses = [client.account.retrieve().last_response.status_code for _ in range(5)]
        assert statuses == [200] * 5
        with pytest.raises(RateLimitError) as caught:
            client.account.retrieve()
        assert caught.value.retry_after is not None
        assert 1 <= caught.value.retry_after <= 60
        other_key = service.add_api_key().value
        assert service.client(api_key=other_key).account.retrieve()
        service.advance(seconds=60)
        assert client.account.retrieve()


class TestVersions:
    def test_section_9(self, api: Api) -> None:
        assert api.get("/v1/account").headers["service-version"] == "2026-09-28"
        assert api.get("/v1/account", headers={"Service-Version": "2026-09-28"}).status_code == 200
        response = api.get("/v1/account", headers={"Service-Version": "2020-01-01"})
        assert problem(response) == (400, "version_unknown", "Service-Version")
        assert "2026-09-28" in response.json()["error"]["message"]


class TestIdempotency:
    def key(self, value: str = "k-1") -> dict[str, str]:
        return {"Idempotency-Key": value}

    def test_section_7_a_replay_has_the_same_body_to_the_byte(self, api: Api, service: MockService) -> None:
        first = api.post("/v1/treatments", {"patient": PATIENT, "name": "x"}, headers=self.key())
        service.advance(hours=1)
        again = api.post("/v1/treatments", {"patient": PATIENT, "name": "x"}, headers=self.key())
        assert again.content == first.content
        assert again.headers["idempotent-replayed"] == "true"
        assert "idempotent-replayed" not in first.headers
        assert len(api.get("/v1/treatments").json()["data"]) == 1

    @pytest.mark.parametrize(
        ("path", "body"), [("/v1/patients", {"phone": "+5491155550001"}), ("/v1/treatments", PATIENT)]
    )
    def test_section_7_another_request_with_the_key_is_rejected(self, api: Api, path: str, body: Any) -> None:
        api.post("/v1/patients", PATIENT, headers=self.key())
        response = api.post(path, body, headers=self.key())
        assert problem(response) == (400, "idempotency_key_reused", "Idempotency-Key")
        assert response.json()["error"]["type"] == "idempotency_error"

    def test_a_failed_call_leaves_the_key_free(self, api: Api) -> None:
        assert api.post("/v1/patients", {}, headers=self.key()).status_code == 400
        assert api.post("/v1/patients", PATIENT, headers=self.key()).status_code == 200

    def test_a_key_is_forgotten_after_24_hours_of_the_mocks_clock(self, api: Api, service: MockService) -> None:
        api.post("/v1/patients", PATIENT, headers=self.key())
        service.advance(hours=23, minutes=59)
        assert api.post("/v1/patients", {"phone": "+5491155550001"}, headers=self.key()).status_code == 400
        service.advance(minutes=1)
        assert api.post("/v1/patients", {"phone": "+5491155550001"}, headers=self.key()).status_code == 200

    def test_a_key_is_its_organizations(self, api: Api, service: MockService) -> None:
        api.post("/v1/patients", PATIENT, headers=self.key())
        other = service.create_organization().keys[0].value
        response = api.post("/v1/patients", {"phone": "+5491155550001"}, headers=self.key(), key=other)
        assert response.status_code == 200

    def test_section_7_fifty_at_once_make_one_object(self, server: MockServer) -> None:
        headers = {"Authorization": f"Bearer {server.api_key}", **self.key()}
        body = {"patient": PATIENT, "name": "x"}
        with httpx.Client(base_url=server.url, headers=headers) as http, ThreadPoolExecutor(50) as pool:
            responses = list(pool.map(lambda _: http.post("/v1/treatments", json=body), range(50)))
            assert {each.status_code for each in responses} <= {200, 409}
            assert len({each.content for each in responses if each.status_code == 200}) == 1
            assert len(http.get("/v1/treatments").json()["data"]) == 1

    def test_section_7_a_key_in_progress_is_a_409(self, server: MockServer) -> None:
        server.add_fault(operation="patients.create", kind="delay", seconds=1)
        headers = {"Authorization": f"Bearer {server.api_key}", **self.key()}
        with httpx.Client(base_url=server.url, headers=headers) as http, ThreadPoolExecutor(1) as pool:
            first = pool.submit(http.post, "/v1/patients", json=PATIENT)
            while not len(server._tenant.idempotency):
                assert not first.done()
            second = http.post("/v1/patients", json=PATIENT)
            assert problem(second) == (409, "idempotency_key_in_use", "Idempotency-Key")
            server.advance(days=2)
            third = http.post("/v1/patients", json=PATIENT)
            assert problem(third) == (409, "idempotency_key_in_use", "Idempotency-Key")
            assert second.json()["error"]["type"] == "idempotency_error"
            assert first.result().status_code == 200


class TestPages:
    def made(self, client: FollowUp, count: int) -> list[str]:
        return [client.patients.create(phone=f"+54911555500{number:02}").id for number in range(count)][::-1]

    def test_section_4_both_directions(self, client: FollowUp, api: Api) -> None:
        made = self.made(client, 9)
        following = api.get(f"/v1/patients?limit=3&startingAfter={made[2]}").json()
        assert ([each["id"] for each in following["data"]], following["hasMore"]) == (made[3:6], True)
        preceding = api.get(f"/v1/patients?limit=3&endingBefore={made[7]}").json()
        assert ([each["id"] for each in preceding["data"]], preceding["hasMore"]) == (made[4:7], True)
        nearest = api.get(f"/v1/patients?limit=3&endingBefore={made[2]}").json()
        assert ([each["id"] for each in nearest["data"]], nearest["hasMore"]) == (made[:2], False)
        assert [each.id for each in client.patients.list(limit=2)] == made
        assert [each.id for each in client.patients.list(limit=2, ending_before=made[-1])] == made[:-1][::-1]

    @pytest.mark.parametrize(
        ("query", "code", "param"),
        [
            ("limit=1.5", "parameter_invalid", "limit"),
            ("limit=", "parameter_invalid", "limit"),
            ("limit=5&limit=6", "parameter_invalid", "limit"),
            ("startingAfter=pat_none", "resource_missing", "startingAfter"),
            ("endingBefore=pat_none", "resource_missing", "endingBefore"),
            ("startingAfter=apt_1", "parameter_invalid", "startingAfter"),
            ("startingAfter=pat_1&endingBefore=pat_2", "parameter_invalid", "endingBefore"),
            ("fone=1", "parameter_unknown", "fone"),
            ("phone=x", "parameter_invalid", "phone"),
        ],
    )
    def test_section_8_a_wrong_parameter_is_named(self, api: Api, query: str, code: str, param: str) -> None:
        assert problem(api.get(f"/v1/patients?{query}")) == (400, code, param)


class TestParsing:
    @pytest.mark.parametrize(
        "content",
        [
            b"{", b"", b"[]", b"5", b"null", b'"x"', b'{"phone": NaN}', b'{"phone": "\xff"}', b"[" * 100_000,
            b'{"phone": "\\ud800"}', b'{"a":' * 40 + b"1" + b"}" * 40, b'{"phone": ' + b"9" * 5000 + b"}", b"\x00",
            b'{"phone": 1e999}', b'{"phone": ' + b"9" * 400 + b"}",
        ],
    )  # fmt: skip
    def test_no_body_makes_a_5xx(self, api: Api, content: bytes) -> None:
        response = api.request("POST", "/v1/patients", content=content, headers={"Content-Type": "application/json"})
        assert response.status_code == 400
        assert set(response.json()["error"]) == {"type", "code", "message", "param"}

    @pytest.mark.parametrize("content_type", ["text/plain", "", "application/x-www-form-urlencoded"])
    def test_another_content_type_is_a_415(self, api: Api, content_type: str) -> None:
        response = api.request(
            "POST", "/v1/patients", content=json.dumps(PATIENT).encode(), headers={"Content-Type": content_type}
        )
        assert problem(response)[0:2] == (415, "content_type_unsupported")
        headers = {"Content-Type": "application/json; charset=utf-8"}
        assert api.request("POST", "/v1/patients", json=PATIENT, headers=headers).status_code == 200

    @pytest.mark.parametrize(
        ("value", "message"),
        [
            (b"1e999", "The body holds a number that is too large."),
            (b"-1e999", "The body holds a number that is too large."),
            (b"9" * 5000, "The body holds a number that is too large."),
            (b"NaN", "The body must be JSON."),
            (b"Infinity", "The body must be JSON."),
            (b'"\\ud800"', "The body holds a lone surrogate, such as \\ud800."),
            (b'"\xff"', "The body must be UTF-8."),
        ],
    )
    def test_a_value_that_json_cannot_say_back_is_a_400(self, api: Api, value: bytes, message: str) -> None:
        body = b'{"id": "e1", "type": "order.issued", "data": {"x": %s}}' % value
        response = api.request("POST", "/v1/events", content=body, headers={"Content-Type": "application/json"})
        assert problem(response)[0:2] == (400, "body_invalid")
        assert response.json()["error"]["message"] == message

    def test_a_body_over_the_limit_is_not_looked_at_without_a_key(self, api: Api) -> None:
        response = api.request("POST", "/v1/patients", key=None, content=b"x" * 1_048_577)
        assert problem(response)[0:2] == (401, "api_key_missing")

    def test_a_body_over_the_limit_is_a_413(self, api: Api) -> None:
        response = api.post("/v1/patients", {"phone": "1", "fullName": "x" * 1_048_576})
        assert problem(response)[0:2] == (413, "body_too_large")

    def test_unknown_paths_and_methods_have_the_error_format(self, api: Api) -> None:
        assert problem(api.get("/v1/nothing"))[0:2] == (404, "path_unknown")
        assert problem(api.get("/"))[0:2] == (404, "path_unknown")
        assert problem(api.get("/v1//patients"))[0:2] == (404, "path_unknown")
        wrong = api.delete("/v1/patients")
        assert problem(wrong)[0:2] == (405, "method_not_allowed")
        assert "GET" in wrong.headers["allow"]
        assert wrong.headers["request-id"]

    def test_the_same_operations_are_under_api(self, api: Api) -> None:
        made = api.post("/api/v1/patients", PATIENT).json()["id"]
        assert api.get(f"/v1/patients/{made}").json() == api.get(f"/api/v1/patients/{made}").json()


def test_section_4_every_response_has_its_own_request_id(api: Api) -> None:
    ids = {api.get("/v1/account").headers["request-id"] for _ in range(5)}
    assert len(ids) == 5


def test_a_seed_makes_two_runs_the_same() -> None:
    def run() -> list[bytes]:
        service = MockService(seed=7, start_time="2026-09-28T12:00:00Z")
        with httpx.Client(transport=InProcessTransport(service.app)) as http:
            api = Api(http, service.api_key)
            responses = [
                api.post(f"{service.url}/v1/webhook_endpoints", {"url": "https://x.example", "enabledEvents": ["*"]}),
                api.post(f"{service.url}/v1/patients", PATIENT),
                api.get(f"{service.url}/v1/webhook_deliveries"),
            ]
            return [each.content + str(each.headers).encode() for each in responses]

    assert run() == run()
