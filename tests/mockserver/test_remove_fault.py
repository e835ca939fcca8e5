"""A single fault is removed by its id; the others stay."""

import json

import pytest
from support.http import Api, problem

from followup import FollowUp
from followup_mockserver import MockService


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


def test_an_unknown_fault_is_a_404(api: Api, service: MockService) -> None:
    fault = service.add_fault(operation="patients.create", kind="status")
    service.remove_fault(fault.id)
    assert problem(api.delete(f"/_mock/faults/{fault.id}"))[0:2] == (404, "resource_missing")
    assert problem(api.delete("/_mock/faults/flt_x"))[0:2] == (404, "resource_missing")


def test_a_removed_fault_has_no_effect_and_is_not_unused(service: MockService, client: FollowUp) -> None:
    fault = service.add_fault(operation="patients.create", kind="status")
    service.remove_fault(fault.id)
    client.patients.create(phone="+5491155550000")
    assert service.unused_faults() == []


def test_a_fault_leaves_no_record_in_the_history(service: MockService) -> None:
    service.remove_fault(service.add_fault(operation="*", kind="status").id)
    service.disturb(kind="late")
    assert len(service._tenant.history.records) == 0


@pytest.mark.parametrize("seed", [1, None])
def test_ids_survive_a_snapshot_and_older_snapshots_get_some(seed: int | None) -> None:
    service = MockService(seed=seed)
    ids = [service.add_fault(operation="*", kind="status").id, service.disturb(kind="late").id]
    state = json.loads(json.dumps(service.save()))
    same = MockService.load(state)
    assert [each.id for each in [*same.faults, *same.webhook_faults]] == ids
    assert same.add_fault(operation="*", kind="status").id not in ids
    (organization,) = state["organizations"]
    for fault in (*organization["faults"]["pending"], *organization["webhookFaults"]["pending"]):
        del fault["id"]
    older = MockService.load(state)
    for fault in [*older.faults, *older.webhook_faults]:
        older.remove_fault(fault.id)
    assert [*older.faults, *older.webhook_faults] == []
