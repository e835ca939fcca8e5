"""What the probes find at the mock: its behaviour as docs/open-points.md describes it, and each change of it."""

from collections.abc import Callable
from typing import Any

import pytest
from calibration.conftest import OPTIONS, Reply, altered, ask
from contract import specification

from followup_mockserver import MockServer
from followup_mockserver.judge.calibration.probes import POINTS

INVALID = "400 invalid_request_error parameter_invalid"

AT_THE_MOCK = {
    "error_object": "fields code, message, param, type; path of a nested field: patient.phone",
    "missing_object": "404 invalid_request_error resource_missing; "
    "the 409 was not asked, because it needs two requests at the same moment",
    "unknown_path": "unknown path: 404 invalid_request_error path_unknown; "
    "wrong method: 405 invalid_request_error method_not_allowed",
    "unreadable_body": "no JSON: 400 invalid_request_error body_invalid; "
    "over 1 MiB: 413 invalid_request_error body_too_large; "
    "text/plain: 415 invalid_request_error content_type_unsupported",
    "unknown_fields": "in a body: 400 invalid_request_error parameter_unknown (followupCalibrate); "
    "in a query: 400 invalid_request_error parameter_unknown (followupCalibrate)",
    "repeated_parameter": INVALID,
    "null_fields": f"in a creation: {INVALID}; in a PATCH: clears the field",
    "empty_strings": f"a name: {INVALID}; the external id of a filter: {INVALID}",
    "email_addresses": f"a@b: accepted; quoted: accepted; not ASCII: {INVALID}",
    "control_characters": "a tab: stored; NUL: stored",
    "timestamps": f"without an offset: {INVALID}; without seconds: {INVALID}; a date: {INVALID}; "
    "in lower case: accepted; a leap second: accepted; microseconds: cut",
    "extreme_years": f"0001-01-01: {INVALID}; 9999-12-31: {INVALID}",
    "wrong_id_type": INVALID,
    "order_of_checks": "no key and an unknown version: 401; an unknown version and an unknown object: 400; "
    "an unknown object and an invalid body: 404",
    "service_version": "unknown: 400 invalid_request_error version_unknown; absent: 2026-09-28",
    "lengths": f"5,000 characters: accepted; 5,001 characters: {INVALID}",
    "id_format": "24 letters and digits",
    "messages": "times in America/Argentina/Buenos_Aires, the time zone of the account; "
    "the language was not asked, because no operation returns a message",
    "cursors": f"both: {INVALID}; unknown: 400 invalid_request_error resource_missing; of another type: {INVALID}",
    "has_more_backwards": "the nearest one, hasMore true; all before it: in order, hasMore false",
    "changed_phone": "400 invalid_request_error parameter_unchangeable",
    "patient_by_external_id": "by a known external id: found; "
    "by an unknown one: 400 invalid_request_error resource_missing (patient.externalId)",
    "shared_external_id": "a second patient; the external id of a filter finds 2",
    "phone_of_one_dni_of_another": "the phone decides; the other patient is unchanged",
    "phone_for_dni": "the same patient, with the phone",
    "documents": "x-00 1.2 becomes X-0012; as a filter: found",
    "whole_phones": f"letters: {INVALID}; an extension: {INVALID}; possible only within an area: {INVALID}",
    "phone_formats": f"returned in E.164; impossible: {INVALID}; without a country code: AR",
    "stage": "at first: pending_follow_up; with an appointment: scheduled; after its cancellation: pending_follow_up; "
    "after a visit: periodic_follow_up",
    "appointment_status": "new: confirmed; after a new start: rescheduled; new with the start that it has: confirmed",
    "closed_appointment": "cancelled: 400 invalid_request_error appointment_not_modifiable; "
    "completed: 400 invalid_request_error appointment_not_modifiable",
    "cancel_completed": "cancelled",
    "visit_source": "manual",
    "visit_of_unknown_appointment": "unknown: 400 invalid_request_error resource_missing (appointment), no visit; "
    "cancelled: accepted, the appointment is cancelled",
    "visit_of_another_patient": f"{INVALID} (appointment)",
    "known_external_id": "appointment: the existing one, unchanged; visit: the existing one, unchanged",
    "unknown_doctor": "an object: no doctor; an unknown id: 400 invalid_request_error resource_missing",
    "changed_doctor": "an object: the doctor stays; null: no doctor",
    "any_year": "1900: accepted; 2900: accepted",
    "treatment_dates": "accepted",
    "treatment_active": "without an end: active; ended yesterday: inactive",
    "idempotency_keys": "another body: 400 idempotency_error idempotency_key_reused; "
    "another path: 400 idempotency_error idempotency_key_reused; after a failure: free; "
    "a replay: the same bytes, Idempotent-Replayed: true; how long a key is remembered was not asked, "
    "because it takes a day",
    "intake_required": "fullName, dni, phone, coverage.insurer, address, requestedService",
    "intake_names_only": "accepted, without a patient",
    "intake_status": "validating, as soon as the service has asked for what is missing",
    "intake_webhooks": "complete: intake.created, intake.ready, intake.requested; "
    "incomplete: intake.created, intake.requested",
    "intake_patient_filter": "accepted; it matches nothing",
    "unknown_event_keys": "an unknown key: processed; another spelling of a key: invalid",
    "misplaced_event_keys": "frequency beside treatment: invalid",
    "patient_objects": "an id: invalid",
    "order_data": "empty: unhandled; an order that is a text: invalid",
    "null_in_events": "processed, the field is unchanged",
    "mixed_batch": "200 processed, invalid",
    "patient_of_an_event": "phone and DNI of two patients: the phone decides; "
    "DNI and external id of two patients: the DNI decides",
    "event_data": "patient.upserted: processed; appointment.created: processed; appointment.rescheduled: processed; "
    "appointment.cancelled: processed; visit.completed: processed; treatment.prescribed: processed; "
    "order.issued: unhandled; intake.requested: processed",
    "upserted_patient": "a field that is set: overwritten",
    "resent_event": "with other data: duplicate; with another type: duplicate",
    "invalid_or_failed": "an appointment that does not exist: failed, stored; "
    "data that is no object: invalid, not stored",
    "event_status": "right after it was accepted: processed; stored again when it is resent: no",
    "rest_calls_as_events": "no",
    "duplicates_only": "200 duplicate, duplicate; accepted: true, true",
    "none_accepted": "invalid and failed: 500 invalid, failed; only invalid: 400 invalid",
    "batch_size": f"empty: {INVALID}; 101 events: {INVALID}",
    "failed_batch_with_key": "first: 200 processed, failed; with the same key: 200 processed, failed; "
    "with another: 200 duplicate, failed",
    "endpoint_without_events": INVALID,
    "repeated_event_types": "stored once",
    "ref": "the id of the object that is described",
    "webhook_urls": f"http: {INVALID}; with a user name: {INVALID}",
    "disabled_endpoint": "a pending delivery: failed, without a next attempt; "
    "a ping: 400 invalid_request_error webhook_endpoint_disabled; disabled: false: enabled",
    "outbound_data": "appointment.created: appointment, patient; visit.completed: patient, visit; "
    "treatment.prescribed: patient, treatment",
    "upserted_webhook": "a new patient: sent; a change of the name: sent; the same name again: not sent",
    "not_yet_sent": "order.issued: not sent",
}
"""By point: what docs/open-points.md says about the mock, in the words of the finding."""

SCOPES = {operation.name: operation.scope for operation in specification.OPERATIONS}

WRITTEN = {
    "patient": "patients",
    "appointment": "appointments",
    "visit": "visits",
    "intake_request": "intake requests",
    "treatment": "treatments",
    "event": "events",
    "webhook_endpoint": "webhook endpoints",
}


def test_each_point_has_an_expectation() -> None:
    assert [each.id for each in POINTS] == [*AT_THE_MOCK]


@pytest.mark.parametrize("point", AT_THE_MOCK)
def test_a_probe_finds_what_the_mock_does_with_the_scopes_that_it_names(point: str) -> None:
    declared = next(each for each in POINTS if each.id == point)
    with MockServer(**OPTIONS) as server:
        key = server.add_api_key(scopes=[*declared.scopes]).value
        run, finding = ask(server, point, key=key)
        # A delivery, a message or a cancelled appointment is not a call; the clean-up needs no scope of its own.
        used = {SCOPES[each.operation] for each in server.requests} - {None}
    assert finding.text == f"found: {AT_THE_MOCK[point]} (the mock: the same)"
    assert finding.outcome == "same"
    assert used == set(declared.scopes)
    assert {WRITTEN[each.kind] for each in run.created.values()} <= set(declared.writes)


def sets(path: str, value: Any) -> Callable[[Reply], None]:
    """Return a rule that sets a value in the body of a success."""
    *parents, last = path.split(".")

    def change(reply: Reply) -> None:
        target = reply.body
        if reply.status == 200 and isinstance(target, dict):
            for name in parents:
                target = target[name]
            target[last] = value

    return change


def rejects(status: int, code: str, type: str = "invalid_request_error") -> Callable[[Reply], None]:
    """Return a rule that rejects what the mock accepts or rejects in another way."""

    def change(reply: Reply) -> None:
        reply.status, reply.body = status, {"error": {"type": type, "code": code, "message": "No.", "param": None}}

    return change


def only_errors(change: Callable[[Reply], None]) -> Callable[[Reply], None]:
    """Return a rule that applies to errors alone."""
    return lambda reply: change(reply) if reply.status >= 400 else None


def ignores(reply: Reply) -> None:
    """Accept what the mock rejects."""
    if reply.status == 400:
        reply.status, reply.body = 200, {"object": "list", "data": [], "hasMore": False, "url": "/v1/patients"}


def no_code(reply: Reply) -> None:
    reply.body = {"error": {"type": "bad", "detail": "No."}}


def no_replay_header(reply: Reply) -> None:
    reply.headers.pop("Idempotent-Replayed", None)


def results(status: str) -> Callable[[Reply], None]:
    """Return a rule that gives every event of a batch this status."""

    def change(reply: Reply) -> None:
        for each in reply.body.get("results", []):
            each["status"] = status

    return change


def drops(event_type: str) -> Callable[[Reply], None]:
    """Return a rule that leaves deliveries of a type out of a list."""

    def change(reply: Reply) -> None:
        reply.body["data"] = [each for each in reply.body["data"] if each["eventType"] != event_type]

    return change


ELSEWHERE: list[tuple[str, str, str, Callable[[Reply], None], str]] = [
    ("error_object", "POST", "/v1/appointments", no_code, "fields detail, type; path of a nested field: null"),
    (
        "missing_object",
        "GET",
        "/v1/patients/.*",
        rejects(404, "not_found", "not_found_error"),
        "404 not_found_error not_found",
    ),
    ("unknown_path", "PUT", "/v1/account", rejects(404, "x"), "wrong method: 404 invalid_request_error x"),
    (
        "unreadable_body",
        "POST",
        "/v1/patients",
        rejects(422, "y"),
        "no JSON: 422 invalid_request_error y;",
    ),
    ("unknown_fields", "GET", "/v1/patients", ignores, "in a query: ignored"),
    ("null_fields", "PATCH", "/v1/patients/.*", only_errors(ignores), "in a PATCH: clears the field"),
    ("empty_strings", "GET", "/v1/patients", ignores, "the external id of a filter: accepted"),
    ("timestamps", "GET", "/v1/appointments", ignores, "without an offset: accepted; without seconds: accepted"),
    ("timestamps", "POST", "/v1/appointments", sets("startAt", "2027-01-01T00:00:00.124Z"), "microseconds: rounded"),
    ("extreme_years", "GET", "/v1/appointments", ignores, "0001-01-01: accepted; 9999-12-31: accepted"),
    ("wrong_id_type", "GET", "/v1/patients/apt_.*", rejects(404, "gone"), "404 invalid_request_error gone"),
    ("order_of_checks", "PATCH", "/v1/patients/.*", rejects(400, "z"), "an unknown object and an invalid body: 400"),
    ("service_version", "GET", "/v1/account", ignores, "unknown: accepted"),
    ("lengths", "PATCH", "/v1/appointments/.*", ignores, "5,001 characters: accepted"),
    ("id_format", "POST", "/v1/patients", sets("id", "pat_0-1"), "3 characters"),
    ("cursors", "GET", "/v1/patients", ignores, "both: accepted; unknown: accepted; of another type: accepted"),
    ("has_more_backwards", "GET", "/v1/appointments", sets("hasMore", False), "the nearest one, hasMore false"),
    ("changed_phone", "PATCH", "/v1/patients/.*", ignores, "accepted"),
    ("phone_formats", "POST", "/v1/patients", sets("phone", "2025550143"), "returned in another format"),
    (
        "stage",
        "GET",
        "/v1/patients/.*",
        sets("stage", "discharged"),
        "at first: discharged; with an appointment: discharged",
    ),
    (
        "appointment_status",
        "POST",
        "/v1/appointments",
        sets("status", "pending"),
        "new: pending; after a new start: rescheduled",
    ),
    ("appointment_status", "PATCH", "/v1/.*", sets("status", "confirmed"), "after a new start: confirmed"),
    (
        "closed_appointment",
        "PATCH",
        "/v1/.*",
        rejects(409, "closed"),
        "cancelled: 409 invalid_request_error closed; completed: 409",
    ),
    ("cancel_completed", "POST", "/v1/.*/cancel", sets("status", "completed"), "completed"),
    ("visit_source", "POST", "/v1/visits", sets("source", "pms"), "pms"),
    ("visit_of_unknown_appointment", "POST", "/v1/visits", only_errors(ignores), "unknown: accepted, no visit"),
    ("visit_of_another_patient", "POST", "/v1/visits", only_errors(ignores), "accepted"),
    ("known_external_id", "POST", "/v1/visits", sets("type", "control"), "visit: the existing one, changed"),
    ("unknown_doctor", "POST", "/v1/appointments", sets("doctor", "doc_1"), "an object: a doctor"),
    ("changed_doctor", "PATCH", "/v1/.*", sets("doctor", None), "an object: no doctor; null: no doctor"),
    ("treatment_active", "POST", "/v1/treatments", sets("active", True), "ended yesterday: active"),
    ("idempotency_keys", "POST", "/v1/.*", no_replay_header, "a replay: the same bytes, Idempotent-Replayed: absent"),
    ("intake_names_only", "POST", "/v1/intake_requests", sets("patient", "pat_1"), "accepted, with a patient"),
    ("intake_status", "*", "/v1/intake_requests.*", sets("status", "new"), "new, at first and after five seconds"),
    (
        "intake_webhooks",
        "GET",
        "/v1/webhook_deliveries",
        drops("intake.requested"),
        "complete: intake.created, intake.ready;",
    ),
    ("intake_patient_filter", "GET", "/v1/intake_requests", rejects(400, "q"), "400 invalid_request_error q"),
    ("unknown_event_keys", "POST", "/v1/events", results("processed"), "another spelling of a key: processed"),
    ("null_in_events", "GET", "/v1/patients/.*", sets("email", None), "processed, the field is cleared"),
    ("mixed_batch", "POST", "/v1/events", results("failed"), "200 failed, failed"),
    (
        "event_data",
        "POST",
        "/v1/events",
        results("unhandled"),
        "patient.upserted: unhandled; appointment.created: unhandled",
    ),
    ("upserted_patient", "GET", "/v1/patients/.*", sets("fullName", "Ana"), "a field that is set: kept"),
    (
        "resent_event",
        "POST",
        "/v1/events",
        results("processed"),
        "with other data: processed; with another type: processed",
    ),
    ("invalid_or_failed", "POST", "/v1/events", results("failed"), "data that is no object: failed, not stored"),
    ("event_status", "GET", "/v1/events/.*", sets("status", "received"), "right after it was accepted: received"),
    ("duplicates_only", "POST", "/v1/events", results("processed"), "200 processed, processed; accepted: true, true"),
    ("batch_size", "POST", "/v1/events", ignores, "empty: accepted; 101 events: accepted"),
    ("endpoint_without_events", "POST", "/v1/webhook_endpoints", ignores, "accepted"),
    ("webhook_urls", "POST", "/v1/webhook_endpoints", ignores, "http: accepted; with a user name: accepted"),
    ("disabled_endpoint", "POST", "/v1/.*/ping", only_errors(ignores), "a ping: accepted"),
    (
        "outbound_data",
        "GET",
        "/v1/webhook_deliveries",
        drops("visit.completed"),
        "visit.completed: no delivery about it",
    ),
    ("upserted_webhook", "GET", "/v1/webhook_deliveries", drops("patient.upserted"), "a new patient: not sent"),
]
"""Points, a rule that changes what the mock does, and a part of what is then found."""


@pytest.mark.parametrize(("point", "method", "path", "change", "found"), ELSEWHERE)
def test_a_probe_finds_what_another_service_does(
    server: MockServer, point: str, method: str, path: str, change: Callable[[Reply], None], found: str
) -> None:
    altered(server).on(method, path, change)
    _, finding = ask(server, point)
    assert found in finding.text.partition(" (the mock: ")[0]
    if point != "null_fields":
        assert finding.outcome == "different"


def test_an_activated_order_is_found(server: MockServer) -> None:
    server.update_organization(activated_events=["order.issued"])
    assert ask(server, "not_yet_sent")[1].text.startswith("found: order.issued: sent (the mock: order.issued: not sent")


def test_a_service_whose_ref_is_the_inbound_event_sets_the_option(server: MockServer) -> None:
    server.update_organization(ref="trigger")
    run, finding = ask(server, "ref")
    assert finding.text == (
        "found: the id of the inbound event (the mock: the id of the object that is described, "
        "without ref of [settings])"
    )
    assert run.settings == {"ref": "trigger"}
