"""What a fault responds with is what the service would (specification, section 7)."""

from typing import Any

import pytest
from support.http import Api, problem

from followup import EventBatchError, FollowUp, NotFoundError
from followup_mockserver import MockService

EVENTS = [
    {"id": f"e-{number}", "type": "patient.upserted", "data": {"patient": {"phone": f"+549115555000{number}"}}}
    for number in range(2)
]


@pytest.mark.parametrize("when", ["before", "after"])
def test_section_7_a_404_has_the_code_resource_missing(api: Api, service: MockService, when: Any) -> None:
    patient = api.post("/v1/patients", {"phone": "+5491155550000"}).json()["id"]
    service.add_fault(operation="patients.retrieve", kind="status", status=404, when=when)
    response = api.get(f"/v1/patients/{patient}")
    assert problem(response)[:2] == (404, "resource_missing")
    assert response.json()["error"]["type"] == "invalid_request_error"


def test_section_7_a_fault_of_another_status_says_that_it_is_one(api: Api, service: MockService) -> None:
    for status in (400, 403, 500):
        service.add_fault(operation="*", kind="status", status=status)
        assert problem(api.get("/v1/patients"))[:2] == (status, "fault")


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("form", ["one", "array", "object"])
def test_section_4_a_500_of_events_has_a_result_for_each_event(
    api: Api, service: MockService, form: str, when: Any
) -> None:
    service.add_fault(operation="events.create", kind="status", status=500, when=when)
    body: Any = {"one": EVENTS[0], "array": EVENTS, "object": {"events": EVENTS}}[form]
    response = api.post("/v1/events", body)
    assert problem(response)[:2] == (500, "fault")
    assert response.json()["object"] == "event_batch"
    results = response.json()["results"]
    assert [each["id"] for each in results] == ["e-0"] if form == "one" else ["e-0", "e-1"]
    assert {(each["accepted"], each["status"], each["event"], each["result"]) for each in results} == {
        (False, "failed", None, None)
    }
    assert all(each["error"] for each in results)


def test_a_500_before_the_events_are_read_has_their_results_in_spite_of_an_unknown_field(
    api: Api, service: MockService
) -> None:
    service.add_fault(operation="events.create", kind="status", status=500)
    response = api.post("/v1/events", {"events": EVENTS, "shoe": 1})
    assert [each["id"] for each in response.json()["results"]] == ["e-0", "e-1"]


@pytest.mark.parametrize("content", [b"", b"{", b"[1, {}]", b'{"events": 5}', b"\xff"])
def test_a_500_of_events_comes_whatever_the_body_is(api: Api, service: MockService, content: bytes) -> None:
    service.add_fault(operation="events.create", kind="status", status=500)
    response = api.request("POST", "/v1/events", content=content, headers={"content-type": "application/json"})
    assert (response.status_code, response.json()["object"]) == (500, "event_batch")
    assert isinstance(response.json()["results"], list)


def test_the_sdk_raises_what_it_would_raise_of_the_service(client: FollowUp, service: MockService) -> None:
    service.add_fault(operation="events.create", kind="status", status=500)
    with pytest.raises(EventBatchError) as caught:
        client.events.create(EVENTS)  # type: ignore[arg-type]
    assert [(each.id, each.status) for each in caught.value.results] == [("e-0", "failed"), ("e-1", "failed")]
    assert [each.status for each in client.events.create(EVENTS).results] == ["processed"] * 2  # type: ignore[arg-type]
    service.add_fault(operation="patients.retrieve", kind="status", status=404)
    with pytest.raises(NotFoundError) as missing:
        client.patients.retrieve("pat_x")
    assert missing.value.code == "resource_missing"
