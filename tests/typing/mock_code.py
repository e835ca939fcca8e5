"""Tests of a user's code, as they use the mock: type checkers accept them, and see exact types."""

from typing import assert_type

from followup_mockserver import Fault, MockService, WebhookFault


def inject_faults(service: MockService) -> None:
    fault = service.add_fault(operation="events.create", kind="event", times=2, skip=1, optional=True)
    assert_type(fault, Fault)
    assert_type(fault.matched, int)
    assert_type(service.disturb(kind="late", optional=True), WebhookFault)
    assert_type(service.unused_faults(), list[Fault | WebhookFault])
    assert_type(service.waits, list[float])
    assert_type(service.organization("fu_test_mock").waits, list[float])
