"""Faults: what they respond with, single events that fail, faults that match nothing, and their removal."""

from typing import Any

import pytest
from support.http import Api, problem

from followup import EventInput, FollowUp
from followup_mockserver import MockService


def kinds(service: Any) -> list[str]:
    return [each.kind for each in service.unused_faults()]


def test_a_fault_is_unused_until_it_has_matched(service: MockService, client: FollowUp) -> None:
    service.add_fault(operation="patients.list", kind="delay", seconds=1, times=2, skip=1)
    service.disturb(kind="late", type="patient.upserted", times=2)
    client.account.retrieve()
    client.patients.list()  # this call is skipped, and the fault had no effect
    assert kinds(service) == ["delay", "late"]
    client.patients.list()
    assert kinds(service) == ["late"]
    assert [(each.times, each.matched) for each in service.faults] == [(1, 1)]
    client.webhook_endpoints.create(url="https://clinic.example/hooks", enabled_events=["*"])
    client.patients.create(phone="+5491155550000")
    assert [(each.times, each.matched) for each in service.webhook_faults] == [(1, 1)]
    assert kinds(service) == []


def test_optional_faults_and_those_of_chance_may_remain_unused(service: MockService) -> None:
    service.add_fault(operation="*", kind="disconnect", optional=True)
    service.add_fault(operation="*", kind="truncate", probability=0.999)
    service.disturb(kind="duplicate", optional=True)
    assert kinds(service) == []
    service.add_fault(operation="*", kind="status", optional=False)
    assert kinds(service) == ["status"]


def test_a_fault_that_the_test_removes_is_not_unused(service: MockService) -> None:
    service.add_fault(operation="*", kind="status")
    service.disturb(kind="duplicate")
    service.clear_faults()
    assert kinds(service) == ["duplicate"]
    service.clear_webhook_faults()
    assert kinds(service) == []
    service.add_fault(operation="*", kind="status")
    service.disturb(kind="duplicate")
    service.reset()
    assert kinds(service) == []


def test_the_faults_of_all_organizations_are_listed(service: MockService) -> None:
    key = service.create_organization(name="other").keys[0].value
    service.organization(key).add_fault(operation="*", kind="truncate")
    assert kinds(service) == ["truncate"]
    assert kinds(service.organization(key)) == ["truncate"]
    assert kinds(service.organization(service.api_key)) == []


def test_optional_is_checked_and_what_the_mock_counts_cannot_be_set(service: MockService, api: Api) -> None:
    with pytest.raises(ValueError, match=r"^optional must be true or false"):
        service.disturb(kind="late", optional=1)  # type: ignore[arg-type]
    fault = {"operation": "*", "kind": "status", "matched": 3}
    assert problem(api.post("/_mock/faults", fault))[:2] == (400, "parameter_unknown")


# --- arguments that are not what they seem: each passed in silence once ------------------------------------------


def test_each_fault_has_an_id_and_is_removed_alone(api: Api, service: MockService) -> None:
    first, second = (api.post("/_mock/faults", {"operation": "*", "kind": "disconnect"}).json()["id"] for _ in "ab")
    webhook = api.post("/_mock/deliveries/disturb", {"kind": "late"}).json()["id"]
    assert len({first, second, webhook}) == 3
    assert all(each.startswith("flt_") for each in (first, second, webhook))
    assert api.delete(f"/_mock/faults/{first}").json() == {"status": "ok"}
    assert [each["id"] for each in api.get("/_mock/faults").json()["data"]] == [second]
    assert [each.id for each in service.webhook_faults] == [webhook]
    service.remove_fault(webhook)
    assert service.webhook_faults == []
    assert [each.id for each in service.faults] == [second]
    service.remove_fault(second)
    assert api.post("/v1/patients", {"phone": "+5491155550000"}).status_code == 200
    assert kinds(service) == []
    for gone in (second, "flt_x"):
        assert problem(api.delete(f"/_mock/faults/{gone}"))[0:2] == (404, "resource_missing")


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


@pytest.mark.parametrize("content", [b"", b"{", b"[1, {}]", b'{"events": 5}', b"\xff"])
def test_a_500_of_events_comes_whatever_the_body_is(api: Api, service: MockService, content: bytes) -> None:
    service.add_fault(operation="events.create", kind="status", status=500)
    response = api.request("POST", "/v1/events", content=content, headers={"content-type": "application/json"})
    assert (response.status_code, response.json()["object"]) == (500, "event_batch")
    assert isinstance(response.json()["results"], list)


def event(number: int, **data: Any) -> EventInput:
    patient = {"phone": f"+54911555500{number:02}", **data}
    return {"id": f"e-{number}", "type": "patient.upserted", "data": {"patient": patient}}


def statuses(results: Any) -> list[str]:
    return [each.status for each in results]


def test_the_next_events_fail_and_the_others_of_the_batch_go_on(service: MockService, client: FollowUp) -> None:
    service.add_fault(operation="events.create", kind="event", times=2, skip=1)
    batch = client.events.create([event(number) for number in range(5)])
    assert statuses(batch.results) == ["processed", "failed", "failed", "processed", "processed"]
    failed = batch.results[1]
    assert (failed.accepted, failed.result, failed.error) == (False, None, "This error was injected by a fault.")
    assert failed.event is not None
    stored = client.events.retrieve(failed.event)
    assert (stored.status, stored.error, stored.processed_at) == ("failed", failed.error, None)
    assert [each.source_ref for each in client.events.list(status="failed")] == ["e-2", "e-1"]
    assert len([*client.patients.list()]) == 3
    assert service.unused_faults() == service.faults == []


def test_only_events_that_would_be_processed_are_counted(service: MockService, client: FollowUp) -> None:
    client.events.create(event(1))
    service.add_fault(operation="events.create", kind="event", skip=1)
    invalid: Any = {"id": "e-9", "type": "patient.upserted", "data": {"patient": {"phone": 5}}}
    batch = client.events.create([event(1), invalid, event(2), event(3), event(4)])
    assert statuses(batch.results) == ["duplicate", "invalid", "processed", "failed", "processed"]


def test_a_fault_of_events_leaves_calls_alone_and_the_other_way_round(service: MockService, client: FollowUp) -> None:
    service.add_fault(operation="events.create", kind="status", status=503)
    service.add_fault(operation="events.create", kind="delay", seconds=1, times=None)
    service.add_fault(operation="events.create", kind="event")
    assert [each.status for each in client.events.list()] == []
    with service.client() as patient_client:
        batch = patient_client.events.create([event(1), event(2)])  # the first attempt is the 503
    assert statuses(batch.results) == ["failed", "processed"]
    assert [each.status for each in service.requests] == [200, 503, 200]
    assert [(each.kind, each.matched) for each in service.faults] == [("delay", 1)]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"operation": "patients.create"}, "operation must be events.create for a fault of kind event"),
        ({"when": "after"}, "when must be before for a fault of kind event"),
    ],
)
def test_a_fault_of_kind_event_is_one_of_events_create(
    service: MockService, api: Api, change: dict[str, Any], text: str
) -> None:
    fault: Any = {"operation": "events.create", "kind": "event", **change}
    with pytest.raises(ValueError, match=text):
        service.add_fault(**fault)
    assert problem(api.post("/_mock/faults", fault)) == (400, "parameter_invalid", next(iter(change)))
    assert service.faults == []
