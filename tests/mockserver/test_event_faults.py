"""Faults of kind ``event``: single events of a batch fail, so that a test can check that they are sent again."""

from typing import Any

import pytest
from support.http import Api, problem

from followup import EventBatchError, EventInput, FollowUp
from followup_mockserver import MockService


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


def test_a_failed_event_succeeds_when_it_is_sent_again(service: MockService, client: FollowUp) -> None:
    service.add_fault(operation="events.create", kind="event")
    first = client.events.create([event(1), event(2)])
    again = client.events.create([event(1), event(2)])
    assert (statuses(first.results), statuses(again.results)) == (["failed", "processed"], ["processed", "duplicate"])
    assert again.results[0].event == first.results[0].event
    stored = client.events.retrieve(str(again.results[0].event))
    assert (stored.status, stored.error) == ("processed", None)
    assert stored.processed_at is not None


def test_send_all_sends_only_the_failed_events_again(service: MockService) -> None:
    service.add_fault(operation="events.create", kind="event", times=2)
    with service.client() as client:
        results = [*client.events.send_all(event(number) for number in range(3))]
    assert statuses(results) == ["processed"] * 3
    assert len(service.requests) == 2
    assert len(service.waits) == 1


def test_section_4_a_batch_whose_events_all_fail_is_a_500_with_their_results(
    service: MockService, client: FollowUp, api: Api
) -> None:
    service.add_fault(operation="events.create", kind="event", times=None)
    with pytest.raises(EventBatchError) as caught:
        client.events.create([event(1), event(2)])
    assert caught.value.status_code == 500
    assert statuses(caught.value.results) == ["failed", "failed"]
    assert [each.status for each in client.events.list()] == ["failed", "failed"]
    assert [each["matched"] for each in api.get("/_mock/faults").json()["data"]] == [2]
    service.clear_faults()
    assert statuses(client.events.create([event(1), event(2)]).results) == ["processed", "processed"]


def test_only_events_that_would_be_processed_are_counted(service: MockService, client: FollowUp) -> None:
    client.events.create(event(1))
    service.add_fault(operation="events.create", kind="event", skip=1)
    invalid: Any = {"id": "e-9", "type": "patient.upserted", "data": {"patient": {"phone": 5}}}
    batch = client.events.create([event(1), invalid, event(2), event(3), event(4)])
    assert statuses(batch.results) == ["duplicate", "invalid", "processed", "failed", "processed"]


def test_an_event_without_an_effect_can_fail_too(service: MockService, client: FollowUp) -> None:
    service.add_fault(operation="events.create", kind="event")
    order: EventInput = {"id": "o-1", "type": "order.issued", "data": {"order": {}}}
    batch = client.events.create([order, event(1)])
    assert statuses(batch.results) == ["failed", "processed"]
    assert statuses(client.events.create(order).results) == ["unhandled"]


def test_events_of_other_sources_are_not_concerned(service: MockService) -> None:
    service.add_fault(operation="events.create", kind="event")
    assert service.receive_event(event(1), source="pms").status == "processed"
    assert [each.kind for each in service.unused_faults()] == ["event"]


def test_a_probability_is_that_of_each_event(service: MockService, client: FollowUp) -> None:
    service.add_fault(operation="events.create", kind="event", probability=0.5, times=None)
    batch = client.events.create([event(number) for number in range(100)])
    assert 25 < statuses(batch.results).count("failed") < 75


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
        ({"operation": "*"}, "operation must be events.create for a fault of kind event"),
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


def test_events_can_fail_over_http(api: Api) -> None:
    fault = {"operation": "events.create", "kind": "event", "times": 1, "skip": 1}
    assert api.post("/_mock/faults", fault).json()["kind"] == "event"
    results = api.post("/v1/events", [event(1), event(2)]).json()["results"]
    assert [each["status"] for each in results] == ["processed", "failed"]
