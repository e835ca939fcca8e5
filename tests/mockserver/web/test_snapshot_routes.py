"""Snapshots over HTTP: the whole mock or one organization, their size, and who may load them."""

import contextlib
import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from support.http import Api, problem
from support.receivers import Inbox, listening
from support.waiting import wait_for

from followup import FollowUpError
from followup_mockserver import MockServer, MockService

MEBIBYTE = 1024 * 1024
PHONE = "+5491155550000"


@pytest.fixture
def http(server: MockServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=60, trust_env=False) as client:
        yield client


class Receiver(Inbox):
    """A receiver that responds once it is not held any more; ``wait`` returns its bodies once there are so many."""

    url = ""

    def __init__(self) -> None:
        super().__init__(status_for=lambda _: 204 if self.hold.wait(60) else 500)
        self.hold = threading.Event()
        self.hold.set()

    @property
    def bodies(self) -> list[Any]:
        return [json.loads(each.content) for each in self.requests]

    def wait(self, number: int) -> list[Any]:
        wait_for(lambda: len(self.requests) >= number)
        return self.bodies


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    with listening(found) as found.url:
        yield found
        found.hold.set()


class TestInProcess:
    def test_without_a_key_it_is_the_whole_mock(self, api: Api, service: MockService) -> None:
        service.create_organization()
        saved = api.get("/_mock/snapshot", key=None).json()
        assert saved == service.save()
        assert len(saved["organizations"]) == 2
        api.post("/v1/patients", {"phone": PHONE})
        assert api.request("PUT", "/_mock/snapshot", key=None, json=saved).json() == {"status": "ok"}
        assert service.save() == saved

    def test_with_a_key_it_is_that_organization_alone(self, api: Api, service: MockService) -> None:
        keys = [service.create_organization(name=name).keys[0].value for name in ("One", "Two")]
        for key in keys:
            api.post("/v1/patients", {"phone": PHONE}, key=key)
        (organization,) = api.get("/_mock/snapshot", key=keys[0]).json()["organizations"]
        assert organization["organization"]["name"] == "One"
        empty = api.get("/_mock/snapshot").json()
        assert api.request("PUT", "/_mock/snapshot", key=keys[0], json=empty).status_code == 200
        assert [len(api.get("/v1/patients", key=key).json()["data"]) for key in keys] == [0, 1]

    @pytest.mark.parametrize("method", ["GET", "PUT"])
    def test_an_unknown_key_is_rejected(self, api: Api, method: str) -> None:
        assert problem(api.request(method, "/_mock/snapshot", key="fu_test_none"))[:2] == (401, "api_key_invalid")

    def test_an_invalid_snapshot_is_a_400_that_names_the_place(self, api: Api, service: MockService) -> None:
        api.post("/v1/patients", {"phone": PHONE})
        saved = service.save()
        saved["organizations"][0]["patients"][0]["phone"] = 5
        response = api.request("PUT", "/_mock/snapshot", key=None, json=saved)
        assert problem(response) == (400, "snapshot_invalid", "organizations[0].patients[0].phone")
        assert response.json()["error"]["message"] == "This must be null or a string."
        response = api.request("PUT", "/_mock/snapshot", key=None, json={**saved, "version": saved["version"] + 1})
        assert problem(response) == (400, "snapshot_newer", "version")

    @pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff", b"[" * 100_000, b'{"format": NaN}'])
    def test_a_body_that_is_no_snapshot(self, api: Api, body: bytes) -> None:
        headers = {"Content-Type": "application/json"}
        response = api.request("PUT", "/_mock/snapshot", key=None, content=body, headers=headers)
        assert problem(response)[:2] == (400, "snapshot_invalid")


class TestServer:
    def test_more_than_64_mebibytes_is_a_413(self, http: httpx.Client) -> None:
        response = http.put(
            "/_mock/snapshot", content=b" " * (64 * MEBIBYTE + 1), headers={"Content-Type": "application/json"}
        )
        assert problem(response) == (413, "body_too_large", None)
        assert response.json()["error"]["message"] == "A body has at most 67108864 bytes."

    def test_the_token_is_required(self) -> None:
        with MockServer(host="0.0.0.0") as server:
            port = server.url.rpartition(":")[2]
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as http:
                saved = json.dumps(server.save()) + " " * (2 * MEBIBYTE)
                headers = {"Content-Type": "application/json"}
                assert http.put("/_mock/snapshot", content=saved, headers=headers).status_code == 403
                assert http.get("/_mock/snapshot").status_code == 403
                headers["Mock-Token"] = str(server.token)
                assert http.put("/_mock/snapshot", content=saved, headers=headers).json() == {"status": "ok"}

    def test_loaded_jobs_run_in_the_background(
        self, http: httpx.Client, server: MockServer, service: MockService, receiver: Receiver
    ) -> None:
        client = service.client()
        client.webhook_endpoints.create(url=receiver.url, enabled_events=["patient.upserted"])
        client.patients.create(phone=PHONE)
        assert http.put("/_mock/snapshot", json=service.save()).json() == {"status": "ok"}
        (body,) = receiver.wait(1)
        assert body["data"]["patient"]["phone"] == PHONE

    def test_nothing_of_the_replaced_state_is_sent_afterwards(
        self, http: httpx.Client, server: MockServer, receiver: Receiver
    ) -> None:
        empty, running = server.save(), server.client()
        receiver.hold.clear()
        running.webhook_endpoints.create(url=receiver.url, enabled_events=["patient.upserted"])
        for number in range(8):  # twice as many as are sent to one receiver at the same time
            running.patients.create(phone=f"+54911555500{number:02}")
        receiver.wait(4)
        assert http.put("/_mock/snapshot", json=empty).json() == {"status": "ok"}
        receiver.hold.set()
        running.webhook_endpoints.create(url=receiver.url, enabled_events=["patient.upserted"])
        running.patients.create(phone=PHONE)
        server.advance()
        phones = {body["data"]["patient"]["phone"] for body in receiver.bodies[4:]}
        assert phones == {PHONE}
        assert len(server.deliveries) == 1
        running.close()

    def test_a_request_in_progress_counts_as_not_begun(self, server: MockServer) -> None:
        server.add_fault(operation="patients.create", kind="delay", seconds=3600)
        with server.client(max_retries=0, timeout=60) as client:

            def create() -> None:
                with contextlib.suppress(FollowUpError):  # the server stops before the delay ends
                    client.patients.create(phone=PHONE, idempotency_key="key-1")

            thread = threading.Thread(target=create)
            thread.start()
            wait_for(lambda: server._tenant.idempotency._records)  # until the request has claimed the key
            saved = server.save()
            server.stop()
            thread.join(timeout=60)
        assert "key-1" not in {record["key"] for record in saved["organizations"][0]["idempotency"]}
        loaded = MockService.load(saved)
        loaded.clear_faults()
        with loaded.client() as client:
            assert client.patients.create(phone=PHONE, idempotency_key="key-1").phone == PHONE
