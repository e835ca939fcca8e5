"""The strip over the mock's time: what it counts, and the time that is selected on it."""

import json
import re
from html import unescape
from typing import Any

import httpx
import pytest

from followup import FollowUp, InvalidRequestError
from followup_mockserver import MockService

from .conftest import ANA, HOOKS
from .html import Views

START = 1790596800  # 2026-09-28T12:00:00Z
HOUR, DAY = 3_600, 86_400


def strip(views: Views, path: str) -> dict[str, Any]:
    found = re.search("data-strip='([^']*)'", views.html(path))
    assert found is not None
    return dict(json.loads(unescape(found[1])))


def counts(shown: dict[str, Any]) -> dict[tuple[str, float, str], int]:
    """Return the marks of a strip by row, hours since the start, and tone."""
    begins, step = (shown["start"] - START) / HOUR, shown["step"] / HOUR
    return {(row, begins + column * step, tone): count for row, column, tone, count in shown["marks"]}


def test_everything_is_counted_on_the_overview(service: MockService, client: FollowUp, views: Views) -> None:
    responses = iter([500, 204])
    service.mount(HOOKS, lambda _: httpx.Response(next(responses)))
    client.webhook_endpoints.create(url=HOOKS, enabled_events=["appointment.created"])
    booked = client.appointments.create(patient={"phone": ANA["phone"]}, start_at="2026-09-30T12:00:00Z")
    service.advance(hours=2)
    with pytest.raises(InvalidRequestError):
        client.patients.create(phone="12")
    client.events.create(
        [{"id": "e1", "type": "order.issued", "data": {}}, {"id": "e2", "type": "visit.completed", "data": {}}]
    )
    service.add_fault(operation="patients.retrieve", kind="delay", seconds=0.001)
    client.patients.retrieve(booked.patient)
    service.advance(hours=23)
    service.update_patient(booked.patient, opted_out=True)
    service.advance(hours=3)
    client.webhook_endpoints.ping(next(iter(client.webhook_endpoints.list())).id)
    shown = strip(views, "overview")
    assert (shown["start"], round(shown["now"]), shown["step"]) == (START, START + 28 * HOUR, HOUR)
    assert counts(shown) == {
        ("API calls", 0, "done"): 2,
        ("API calls", 2, "done"): 1,
        ("API calls", 2, "failed"): 2,
        ("API calls", 28, "done"): 2,
        ("Inbound events", 2, "done"): 1,
        ("Webhook attempts", 0, "failed"): 1,
        ("Webhook attempts", 0, "done"): 1,
        ("Webhook attempts", 28, "due"): 1,
        ("Messages", 24, "done"): 1,
        ("Messages", 45, "due"): 1,
        ("Test controls", 0, "advanced"): 1,
        ("Test controls", 2, "advanced"): 1,
        ("Test controls", 25, "done"): 1,
    }
