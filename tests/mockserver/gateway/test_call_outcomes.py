"""The journal of calls: what became of each, and the details of the latest."""

from typing import Any

import pytest
from support.http import Api

from followup import APIStatusError, EventBatchError, FollowUp
from followup_mockserver import MockService
from followup_mockserver.control import access_to
from followup_mockserver.world.state import journal as journal_module
from followup_mockserver.world.state.journal import CallOutcome, RecordedCall

ANA = "+5491155550001"


def calls(service: MockService) -> list[RecordedCall]:
    return list(access_to(service).tenant.journal.recorded_newest_first())


def last(service: MockService) -> CallOutcome:
    return calls(service)[0].outcome._replace(fingerprint=None)


def test_a_call_is_about_the_object_that_it_created_or_named(service: MockService, client: FollowUp) -> None:
    patient = client.patients.create(phone=ANA)
    assert last(service) == CallOutcome(about=patient.id)
    client.patients.retrieve(patient.id)
    assert last(service).about == patient.id
    with pytest.raises(APIStatusError):
        client.patients.retrieve("pat_gone")
    assert last(service) == CallOutcome(about="pat_gone")
    assert (service.requests[0].error_code, service.requests[0].param) == ("resource_missing", "id")
    client.patients.list()
    assert last(service) == CallOutcome()
    with pytest.raises(APIStatusError):
        client.patients.create(phone="12")
    assert (last(service).about, service.requests[0].error_code) == (None, "parameter_invalid")
    assert service.requests[0].param == "phone"


def test_a_replay_is_about_the_same_object(service: MockService, client: FollowUp) -> None:
    first = client.patients.create(phone=ANA, idempotency_key="k")
    assert (service.requests[0].replayed, service.requests[0].attempt) == (False, 1)
    original = service.requests[0].request_id
    client.patients.create(phone=ANA, idempotency_key="k")
    assert last(service) == CallOutcome(about=first.id, replay_of=original)
    assert (service.requests[0].replayed, service.requests[0].attempt) == (True, 2)
    client.events.create({"id": "e1", "type": "order.issued", "data": {}}, idempotency_key="e")
    original = service.requests[0].request_id
    client.events.create({"id": "e1", "type": "order.issued", "data": {}}, idempotency_key="e")
    assert last(service) == CallOutcome(replay_of=original)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_fault_is_kept_as_it_was(service: MockService, client: FollowUp, when: Any) -> None:
    service.add_fault(operation="patients.create", kind="status", status=500, when=when, times=2)
    with pytest.raises(APIStatusError):
        client.patients.create(phone=ANA)
    outcome = last(service)
    assert (service.requests[0].error_code, service.requests[0].fault) == ("fault", "status")
    assert outcome.fault is not None
    assert (outcome.fault.status, outcome.fault.when, outcome.fault.times) == (500, when, 1)
    with pytest.raises(APIStatusError):
        client.patients.create(phone=ANA)
    client.patients.create(phone=ANA)
    assert [each.outcome.fault is not None for each in calls(service)] == [False, True, True]
    assert outcome.fault.times == 1
    # The object exists in spite of the error, if the fault follows the rule.
    assert (outcome.about is not None) is (when == "after")


def test_the_refused_events_of_a_batch_are_counted(service: MockService, client: FollowUp) -> None:
    order: Any = {"type": "order.issued", "data": {}}
    invalid: Any = {"type": "patient.upserted", "data": {}}
    client.events.create([{"id": "e1", **order}, {"id": "e2", **invalid}, {"id": "e3", **invalid}])
    client.events.create({"id": "e1", **order})  # a duplicate is accepted
    with pytest.raises(EventBatchError):
        client.events.create({"id": "e2", **invalid})
    client.account.retrieve()
    assert [(each.refused, each.events) for each in service.requests] == [(0, 0), (1, 1), (0, 1), (2, 3)]
    assert "2 of 3 events refused" in repr(service.requests[3])
    (request, *_) = service.explain(service.requests[3].request_id)
    assert request.outcome == "events.create: 200, 2 of 3 events refused"


def test_an_attempt_has_the_key_the_method_and_the_path_of_those_before(service: MockService, client: FollowUp) -> None:
    client.patients.create(phone=ANA, idempotency_key="k")
    with pytest.raises(APIStatusError):
        client.treatments.create(patient="pat_x", name="ibuprofen", idempotency_key="k")
    client.patients.create(phone=ANA, idempotency_key="k")
    with pytest.raises(APIStatusError):
        client.patients.create(phone=ANA, full_name="Another", idempotency_key="k")
    client.patients.create(phone=ANA, idempotency_key="k")
    assert [each.attempt for each in service.requests] == [3, 1, 2, 1, 1]


def test_calls_have_numbers_and_the_control_api_returns_its_documented_fields(
    service: MockService, client: FollowUp, api: Api
) -> None:
    for _ in range(3):
        client.account.retrieve()
    assert [each.number for each in calls(service)] == [3, 2, 1]
    assert calls(service)[0].entry == service.requests[0]
    fields = {"operation", "method", "path", "status", "requestId", "idempotencyKey", "at"}
    fields |= {"errorCode", "param", "attempt", "replayed", "fault", "events", "refused"}
    assert set(api.get("/_mock/requests").json()["data"][0]) == fields


def test_the_details_of_the_latest_calls_are_kept(
    service: MockService, client: FollowUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "DETAILED", 3)
    order: Any = {"type": "order.issued", "data": {"order": {"text": "x" * 100_000}}}
    for number in range(5):
        client.events.create({"id": f"e-{number}", **order})
    journal = service._tenant.journal
    details = [journal.details(entry) for entry in journal.newest_first()]
    assert [each is None for each in details] == [False, False, False, True, True]
    assert [len(each.request_body or b"") for each in details if each] == [65_536] * 3
