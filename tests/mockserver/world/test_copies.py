"""What the test controls hand out and take in shares nothing with the store."""

import contextlib
from collections.abc import Callable
from typing import Any

import attrs
import httpx
import pytest
from support.http import Api

from followup import FollowUp, inbound
from followup_mockserver import MockService

HOOKS = "https://clinic.example/hooks"


def spoil(value: Any) -> None:
    """Change whatever can be changed in a value, at any depth."""
    if isinstance(value, list):
        for each in value:
            spoil(each)
        value.append("spoiled")
    elif isinstance(value, dict):
        for each in value.values():
            spoil(each)
        value["spoiled"] = ["spoiled"]
    elif attrs.has(type(value)):
        for field in attrs.fields(type(value)):
            if field.name != "last_response":
                spoil(getattr(value, field.name))
                with contextlib.suppress(attrs.exceptions.FrozenInstanceError, ValueError):
                    setattr(value, field.name, "spoiled")


SEEN = [
    "/v1/account",
    *(f"/v1/{name}" for name in ("patients", "doctors", "appointments", "intake_requests", "webhook_endpoints")),
    *(f"/_mock/{name}" for name in ("clock", "clock/jobs", "reminders", "messages", "webhook_deliveries", "attempts")),
    *(f"/_mock/{name}" for name in ("faults", "deliveries/disturb", "trigger")),
]


def seen(api: Api) -> dict[str, Any]:
    """All that can be seen of the mock over HTTP."""
    views = {path: api.get(path) for path in SEEN}
    assert {each.status_code for each in views.values()} == {200}
    journal = [each for each in api.get("/_mock/requests").json()["data"] if each["method"] != "GET"]
    return {path: each.json() for path, each in views.items()} | {"journal": journal}


@pytest.fixture
def clinic(service: MockService, client: FollowUp) -> MockService:
    """Something of everything."""
    service.mount(HOOKS, lambda _: httpx.Response(500))
    client.webhook_endpoints.create(url=HOOKS, enabled_events=["*"])
    patient: Any = {"phone": "+5491155550000", "full_name": "Ana"}
    client.intake_requests.create(patient=patient, contacts=[{"name": "Eva"}], coverage={"insurer": "OSDE"})
    client.visits.create(patient=patient, visited_at="2026-09-28T11:00:00Z")
    service.advance(hours=6)
    client.appointments.create(patient=patient, start_at="2026-10-03T12:00:00Z")
    service.add_fault(operation="webhook_endpoints.delete", kind="delay", seconds=1)
    service.disturb(kind="late", times=5)
    return service


LISTS = ("clock", "jobs", "reminders", "messages", "requests", "deliveries", "faults", "webhook_faults")


def first(api: Api, name: str) -> str:
    found: str = api.get(f"/v1/{name}").json()["data"][0]["id"]
    return found


HANDED_OUT: dict[str, Callable[[MockService, Api], Any]] = {
    **{name: lambda service, _, name=name: getattr(service, name) for name in LISTS},  # type: ignore[misc]
    "attempts": lambda service, _: service.attempts(service.deliveries[-1].id),
    "unused_faults": lambda service, _: service.unused_faults(),
    "advance": lambda service, _: service.advance(),
    "receive_event": lambda service, _: service.receive_event(
        inbound.order_issued(patient={"phone": "+5491155550000"}, order={"kind": "lab"}), source="pms"
    ),
    "update_patient": lambda service, api: service.update_patient(first(api, "patients"), stage="lost"),
    "update_organization": lambda service, _: service.update_organization(name="Lab"),
    "create_organization": lambda service, _: service.create_organization(),
    "add_api_key": lambda service, _: service.add_api_key(),
    "update_api_key": lambda service, _: service.update_api_key(service.api_key, revoked=False),
    "add_fault": lambda service, _: service.add_fault(operation="events.list", kind="status"),
    "disturb": lambda service, _: service.disturb(kind="duplicate"),
}


@pytest.mark.parametrize("name", HANDED_OUT)
def test_changing_what_was_handed_out_changes_nothing_in_the_mock(clinic: MockService, api: Api, name: str) -> None:
    result = HANDED_OUT[name](clinic, api)
    before = seen(api)
    spoil(result)
    assert seen(api) == before


def test_what_was_passed_in_can_be_changed_afterwards(clinic: MockService, api: Api) -> None:
    lines: Any = ["follow_up"]
    scopes: Any = ["patients:read"]
    hours, required = [48.0], ["dni"]
    data: Any = {
        "patient": {"dni": "30123456"},
        "contacts": [{"name": "Luz", "email": "luz@clinic.example"}],
        "coverage": {"insurer": "Galeno"},
        "sender": {"name": "Hospital"},
    }
    order: Any = {"order": {"items": ["blood count"]}}
    clinic.update_organization(service_lines=lines, reminder_hours=hours, intake_required=required)
    made = clinic.create_organization(service_lines=lines, keys=[{"name": "ci", "scopes": scopes}])
    clinic.add_api_key(scopes=scopes)
    clinic.answer_intake_request(first(api, "intake_requests"), **data)
    (triggered,) = clinic.trigger("order.issued", data=order)
    assert triggered.payload["data"] == {"order": {"items": ["blood count"]}}
    other = Api(api.http, made.keys[0].value)
    before = seen(api), other.get("/v1/account").json()
    spoil([lines, scopes, hours, required, data, order])
    assert (seen(api), other.get("/v1/account").json()) == before
