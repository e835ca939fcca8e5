"""Faults that match nothing are visible, so that no test is green because its fault had no effect."""

from typing import Any

import httpx
import pytest
from support.http import Api, problem

from followup import FollowUp
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


def test_unused_faults_are_copies(service: MockService) -> None:
    service.add_fault(operation="*", kind="status")
    service.unused_faults()[0].matched = 9
    assert kinds(service) == ["status"]


def test_the_control_api_shows_how_often_a_fault_matched(api: Api) -> None:
    made = api.post("/_mock/faults", {"operation": "account.retrieve", "kind": "status", "times": 3, "optional": True})
    assert (made.json()["optional"], made.json()["matched"]) == (True, 0)
    api.get("/v1/account")
    (listed,) = api.get("/_mock/faults").json()["data"]
    assert (listed["times"], listed["matched"], listed["optional"]) == (2, 1, True)
    made = api.post("/_mock/deliveries/disturb", {"kind": "late", "optional": True})
    assert (made.json()["optional"], made.json()["matched"]) == (True, 0)


def test_optional_is_checked(service: MockService, api: Api) -> None:
    fault: Any = {"operation": "*", "kind": "status", "optional": "yes"}
    with pytest.raises(ValueError, match=r"^optional must be true or false"):
        service.add_fault(**fault)
    assert problem(api.post("/_mock/faults", fault)) == (400, "parameter_invalid", "optional")
    with pytest.raises(ValueError, match=r"^optional must be true or false"):
        service.disturb(kind="late", optional=1)  # type: ignore[arg-type]
    fault = {"operation": "*", "kind": "status", "matched": 3}
    assert problem(api.post("/_mock/faults", fault))[:2] == (400, "parameter_unknown")


# --- arguments that are not what they seem: each passed in silence once ------------------------------------------


@pytest.mark.parametrize(
    ("method", "arguments", "text"),
    [
        ("disturb", {"kind": "dup"}, "kind must be one of duplicate, reorder, late, wrong_signature, old_signature"),
        (
            "add_fault",
            {"operation": "patients.create", "kind": "500"},
            "kind must be one of status, delay, disconnect, truncate, event",
        ),
        (
            "add_fault",
            {"operation": "patients.list", "kind": "status", "when": "sometimes"},
            "when must be one of before, after",
        ),
    ],
)
def test_a_misspelt_argument_is_an_error(service: MockService, method: str, arguments: Any, text: str) -> None:
    with pytest.raises(ValueError, match="must be") as caught:
        getattr(service, method)(**arguments)
    assert str(caught.value).startswith(text)
    assert (service.faults, service.webhook_faults) == ([], [])


def test_a_url_without_a_scheme_cannot_be_mounted(service: MockService) -> None:
    with pytest.raises(ValueError, match=r"^url must be"):
        service.mount("clinic.example", lambda _: httpx.Response(204))
