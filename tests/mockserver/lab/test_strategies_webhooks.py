"""The Hypothesis strategies for webhooks: as the mock sends them, of all types, and signed."""

import json
import re
import time
from datetime import datetime
from typing import Any, cast

import freezegun
import pytest
from contract import specification as spec
from hypothesis import Phase, find, given, settings

from followup import construct_event, verify_signature
from followup._for_mockserver import OutboundEventType
from followup_mockserver.strategies import signed_webhook, webhook_event

SECRET = "whsec_strategies"
FIRST = settings(max_examples=1, phases=[Phase.generate], database=None)

each_type = pytest.mark.parametrize("type", spec.OUTBOUND_TYPES)

VIEWS: dict[str, tuple[str, ...]] = {
    "intake.requested": ("intake_request",),
    "patient.upserted": ("patient",),
    "appointment.created": ("appointment", "patient"),
    "appointment.rescheduled": ("appointment", "patient"),
    "appointment.cancelled": ("appointment", "patient"),
    "visit.completed": ("visit", "patient"),
    "treatment.prescribed": ("treatment", "patient"),
    "order.issued": (),
    "intake.created": ("intake_request",),
    "intake.ready": (),
    "conversation.handoff": ("patient",),
    "patient.silent": ("patient",),
    "webhook.ping": (),
}
"""The typed views of the data that are never None."""


def drawn(type: str | None, number: int = 60) -> list[tuple[bytes, dict[str, str]]]:
    """Return signed webhooks of a type, with the same bodies in every run."""
    found: list[tuple[bytes, dict[str, str]]] = []

    @settings(max_examples=number, database=None, derandomize=True)
    @given(signed_webhook(SECRET, cast("OutboundEventType | None", type)))
    def draw(webhook: tuple[bytes, dict[str, str]]) -> None:
        found.append(webhook)

    draw()
    return found


@each_type
def test_a_body_is_one_of_the_service(type: str) -> None:
    for body, headers in drawn(type):
        event = construct_event(body, headers, SECRET)
        raw = json.loads(body)
        assert list(raw) == [each.name for each in spec.WEBHOOK_BODY]
        assert (raw["object"], raw["type"], raw["apiVersion"]) == ("event", type, "2026-09-28")
        assert re.fullmatch("whd_[0-9A-Za-z]{24}", event.id)
        assert body == json.dumps(raw, ensure_ascii=False, separators=(",", ":")).encode()
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", raw["occurredAt"])
        views = {name: getattr(event, name) for name in VIEWS[type]}
        assert all(view is not None for view in views.values()), views


@pytest.mark.parametrize(
    ("field", "value"), [*(("type", each) for each in spec.OUTBOUND_TYPES), ("livemode", True), ("livemode", False)]
)
def test_all_types_and_both_modes_occur(field: str, value: str | bool) -> None:
    # It looks until it has found one: which webhooks the first few hundred are depends on the version of Hypothesis,
    # and on the constants in the code.
    generating = settings(max_examples=5000, database=None, derandomize=True, phases=[Phase.generate])
    assert find(webhook_event(None), lambda body: json.loads(body)[field] == value, settings=generating)


def test_the_objects_vary() -> None:
    booked = [json.loads(body)["data"] for body, _ in drawn("appointment.created", 200)]
    assert {each["appointment"]["source"] for each in booked} == {"api", "pms", "agent", "manual"}
    assert {each["patient"]["optedOut"] for each in booked} == {True, False}
    for name in ("doctor", "type", "externalId"):
        assert len({each["appointment"][name] for each in booked}) > 2, name
    for name in ("fullName", "phone", "email", "dni", "externalId", "dateOfBirth"):
        assert len({each["patient"][name] for each in booked}) > 2, name


def test_the_headers_are_those_of_the_service() -> None:
    found = drawn(None)
    for body, headers in found:
        assert {*spec.WEBHOOK_HEADERS, "content-type"} == {*headers}
        assert headers["user-agent"] == spec.WEBHOOK_USER_AGENT
        assert headers["x-service-event-type"] == json.loads(body)["type"]
        assert headers["content-type"] == "application/json"
        verify_signature(body, headers, SECRET, tolerance=60)
    attempts = {headers["x-service-delivery-attempt"] for _, headers in found}
    assert attempts <= {str(each) for each in range(1, 10)}
    assert len(attempts) > 3


def test_a_webhook_is_signed_at_the_time_at_which_it_is_drawn() -> None:
    strategy = signed_webhook(SECRET, "patient.upserted")
    for moment in ("2031-05-17T12:00:00Z", "2035-01-01T00:00:00Z"):
        with freezegun.freeze_time(moment):
            body, headers = find(strategy, lambda _: True, settings=FIRST)
            verify_signature(body, headers, SECRET, tolerance=0)
        assert headers["x-service-timestamp"] == str(int(datetime.fromisoformat(moment).timestamp()))
    assert abs(int(find(strategy, lambda _: True, settings=FIRST)[1]["x-service-timestamp"]) - time.time()) < 60


@pytest.mark.parametrize("type", ["patient.updated", "", "*"])
def test_an_unknown_type(type: Any) -> None:
    for strategy in (lambda: webhook_event(type), lambda: signed_webhook(SECRET, type)):
        with pytest.raises(ValueError, match="there is no event type") as caught:
            strategy()
        assert repr(type) in str(caught.value)
        assert all(each in str(caught.value) for each in spec.OUTBOUND_TYPES)


@pytest.mark.parametrize("secret", ["", None, b"whsec_x", ["whsec_x"]])
def test_a_secret_that_is_none(secret: Any) -> None:
    with pytest.raises(ValueError, match="secret must be a non-empty string"):
        signed_webhook(secret)
