"""Tests of a user's code, as they use the mock: type checkers accept them, and see exact types."""

from typing import Any, assert_type

from hypothesis.strategies import SearchStrategy

from followup_mockserver import Fault, MockService, WebhookFault
from followup_mockserver.strategies import operation, signed_webhook, webhook_event


def inject_faults(service: MockService) -> None:
    fault = service.add_fault(operation="events.create", kind="event", times=2, skip=1, optional=True)
    assert_type(fault, Fault)
    assert_type(fault.matched, int)
    assert_type(service.disturb(kind="late", optional=True), WebhookFault)
    assert_type(service.unused_faults(), list[Fault | WebhookFault])
    assert_type(service.waits, list[float])
    assert_type(service.organization("fu_test_mock").waits, list[float])


def draw() -> None:
    assert_type(operation("patients.create"), SearchStrategy[tuple[tuple[Any, ...], dict[str, Any]]])
    assert_type(webhook_event(), SearchStrategy[bytes])
    assert_type(webhook_event("intake.ready"), SearchStrategy[bytes])
    assert_type(signed_webhook("whsec_x", "webhook.ping"), SearchStrategy[tuple[bytes, dict[str, str]]])
