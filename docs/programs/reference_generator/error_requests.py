"""Provokes every error of the mock, so that the reference shows what a client receives.

A cause and a remedy are written here; status, type, code and message are those of the response.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from followup_mockserver import MockService
from followup_mockserver.control import access_to
from followup_mockserver.gateway.pipeline import INTERNAL_ERROR
from followup_mockserver.web.app import http_error
from followup_mockserver.web.control import Guard
from followup_mockserver.world.schema.errors import ServiceError
from followup_mockserver.world.schema.shapes import MAX_BODY_BYTES
from followup_mockserver.world.state.registry import DEFAULT_KEY
from followup_mockserver.world.state.snapshots import MAX_BYTES

from .raw_requests import JsonResponse, Requests
from .traffic import NOW, RECEIVER

_PHONE = "+54 9 11 5555-0000"
_PATIENT = {"phone": _PHONE}
_APPOINTMENT = {"patient": _PATIENT, "startAt": "2026-10-05T14:30:00Z", "externalId": "A-1"}


@attrs.frozen
class Provocation:
    """An error, and how to provoke it.

    Attributes:
        cause: the condition, and what to do about it.
        request: provokes the error.
        options: options of the mock.
    """

    cause: str
    request: Callable[[Requests], JsonResponse]
    options: Mapping[str, Any] = attrs.field(factory=dict)


def _of(error: ServiceError) -> JsonResponse:
    return JsonResponse(error.status, error.as_json())


def _key(**changes: Any) -> Callable[[Requests], JsonResponse]:
    """Use a key that a test control has changed."""

    def request(requests: Requests) -> JsonResponse:
        requests.service.update_api_key(DEFAULT_KEY, **changes)
        return requests.get("/v1/account")

    return request


def _without_scope(requests: Requests) -> JsonResponse:
    key = requests.service.add_api_key(scopes=["patients:read"])
    return requests.post("/v1/patients", _PATIENT, Authorization=f"Bearer {key.value}")


def _without_line(requests: Requests) -> JsonResponse:
    requests.service.update_organization(service_lines=["network"])
    return requests.post("/v1/patients", _PATIENT)


def _changed_phone(requests: Requests) -> JsonResponse:
    patient = requests.created("/v1/patients", _PATIENT)
    return requests.send("PATCH", f"/v1/patients/{patient}", _PATIENT)


def _cancelled_appointment(requests: Requests) -> JsonResponse:
    path = f"/v1/appointments/{requests.created('/v1/appointments', _APPOINTMENT)}"
    requests.post(f"{path}/cancel")
    return requests.send("PATCH", path, {"type": "check-up"})


def _disabled_endpoint(requests: Requests) -> JsonResponse:
    path = _endpoint(requests)
    requests.send("PATCH", path, {"disabled": True})
    return requests.post(f"{path}/ping")


def _endpoint(requests: Requests) -> str:
    body = {"url": RECEIVER, "enabledEvents": ["intake.ready"]}
    return f"/v1/webhook_endpoints/{requests.created('/v1/webhook_endpoints', body)}"


def _reused_key(requests: Requests) -> JsonResponse:
    requests.post("/v1/patients", _PATIENT, Idempotency_Key="visit-1")
    return requests.post("/v1/patients", {"phone": "+54 9 11 5555-0001"}, Idempotency_Key="visit-1")


def _key_in_use(requests: Requests) -> JsonResponse:
    requests.post("/v1/patients", _PATIENT, Idempotency_Key="visit-1")
    tenant = access_to(requests.service).tenant
    record = tenant.idempotency.find("visit-1", tenant.now())
    assert record is not None
    record.response = None  # as while the first request is in progress
    return requests.post("/v1/patients", _PATIENT, Idempotency_Key="visit-1")


def _second_request(requests: Requests) -> JsonResponse:
    requests.get("/v1/account")
    return requests.get("/v1/account")


def _failed_event(requests: Requests) -> JsonResponse:
    data = {"appointment": {"externalId": "A-9"}}
    return requests.post("/v1/events", {"id": "row-1", "type": "appointment.cancelled", "data": data})


def _fault(requests: Requests) -> JsonResponse:
    requests.service.add_fault(operation="account.retrieve", kind="status", status=503)
    return requests.get("/v1/account")


def _intake(action: str, body: Any = None) -> Callable[[Requests], JsonResponse]:
    """Load an intake request that is not ready, or discard one twice."""

    def request(requests: Requests) -> JsonResponse:
        path = f"/_mock/intake_requests/{requests.created('/v1/intake_requests', {'patient': {'fullName': 'Ana'}})}"
        if action == "discard":
            requests.post(f"{path}/discard")
        return requests.post(f"{path}/{action}", body)

    return request


def _silent_without_phone(requests: Requests) -> JsonResponse:
    patient = requests.created("/v1/visits", {"patient": {"dni": "30.123.456"}, "visitedAt": NOW})
    found = requests.get(f"/v1/visits/{patient}").body["patient"]
    return requests.post(f"/_mock/patients/{found}/silence")


def _inactive_doctor(requests: Requests) -> JsonResponse:
    doctor = requests.service.add_doctor(full_name="Dra. Julia Gómez", active=False)
    return requests.post("/_mock/appointments", {**_APPOINTMENT, "doctor": doctor.id})


def _raised(error_class: type[ServiceError], call: Callable[[], object]) -> JsonResponse:
    try:
        call()
    except error_class as error:
        return _of(error)
    raise AssertionError("there was no error")


def _without_token(_: Requests) -> JsonResponse:
    guard = Guard(name="mock", token="token")  # noqa: S106 - no secret
    return _raised(ServiceError, lambda: guard.check({"HTTP_HOST": "mock"}))


def _key_of_another(requests: Requests) -> JsonResponse:
    """Load a snapshot of an organization in which a key has the value of another organization's key."""
    other = requests.service.create_organization()
    snapshot = json.dumps(requests.get("/_mock/snapshot").body)
    changed = snapshot.replace(DEFAULT_KEY, other.keys[0].value)
    return requests.send("PUT", "/_mock/snapshot", json.loads(changed))


def _large_snapshot(_: Requests) -> JsonResponse:
    return _raised(ServiceError, lambda: MockService.load(bytes(MAX_BYTES + 1)))


def _of_socket(status: int) -> Callable[[Requests], JsonResponse]:
    """Return the error of the server for a request that does not reach the application."""
    return lambda _: _of(http_error(status))


SERVICE: Mapping[str, Provocation] = {
    "body_missing": Provocation("The operation needs a body.", lambda r: r.post("/v1/patients")),
    "body_invalid": Provocation(
        "The body is not JSON in UTF-8, or is nested too deeply.",
        lambda r: r.post("/v1/patients", b"{", Content_Type="application/json"),
    ),
    "request_malformed": Provocation("The request is not valid HTTP.", _of_socket(400)),
    "parameter_missing": Provocation(
        "A required field is missing: `param` names it.", lambda r: r.post("/v1/patients", {})
    ),
    "parameter_invalid": Provocation(
        "A field, a query parameter or a header has an invalid value: `param` names it.",
        lambda r: r.post("/v1/patients", {"phone": 1}),
    ),
    "parameter_unknown": Provocation(
        "There is no such field or query parameter: check the spelling. "
        "[`refuse_unknown_fields`](mock/index.md#mockoptions) turns the check off.",
        lambda r: r.post("/v1/patients", {**_PATIENT, "full_name": "Ana"}),
    ),
    "parameter_unchangeable": Provocation("A field that an update cannot change, such as the phone.", _changed_phone),
    "resource_missing": Provocation(
        "The object in the path does not exist (404), or one that the body or a cursor names (400).",
        lambda r: r.get("/v1/patients/pat_0"),
    ),
    "version_unknown": Provocation(
        "There is no such `Service-Version`: use one of those that the message lists.",
        lambda r: r.get("/v1/account", Service_Version="2020-01-01"),
    ),
    "appointment_not_modifiable": Provocation("The appointment is cancelled or completed.", _cancelled_appointment),
    "webhook_endpoint_disabled": Provocation(
        "A disabled endpoint gets no ping and no resend: enable it with `disabled=False`.", _disabled_endpoint
    ),
    "events_invalid": Provocation(
        "No event of the batch is valid: fix each one according to its result, and send it again.",
        lambda r: r.post("/v1/events", {"id": "row-1"}),
    ),
    "idempotency_key_reused": Provocation(
        "The key was used for another request: use a new key for each new request.", _reused_key
    ),
    "api_key_missing": Provocation("The request has no API key.", lambda r: r.get("/v1/account", Authorization="")),
    "api_key_invalid": Provocation(
        "There is no such key, or it belongs to the other environment: check the key and the base URL.",
        lambda r: r.get("/v1/account", Authorization="Bearer fu_test_other"),
    ),
    "api_key_revoked": Provocation("The key was revoked: use a new one.", _key(revoked=True)),
    "api_key_expired": Provocation("The key has expired: use a new one.", _key(expires_at=NOW)),
    "scope_missing": Provocation("The key lacks the scope of the operation, which the message names.", _without_scope),
    "service_line_missing": Provocation("The organization lacks the service line `follow_up`.", _without_line),
    "foreign_origin": Provocation(
        "The request comes from a web page, or its `Host` is not the mock: use the base URL that `serve` prints.",
        lambda r: r.get("/_mock/clock", Origin="https://page.example"),
    ),
    "path_unknown": Provocation("No operation has this path.", lambda r: r.get("/v1/other")),
    "method_not_allowed": Provocation(
        "No operation with this path has this method: `Allow` lists those that there are.",
        lambda r: r.send("DELETE", "/v1/patients"),
    ),
    "idempotency_key_in_use": Provocation(
        "A request with this key is in progress. The retry gets its response.", _key_in_use
    ),
    "body_too_large": Provocation(
        "The body is larger than 1 MiB: send fewer events at once, as `send_all` does.",
        lambda r: r.post("/v1/patients", bytes(MAX_BODY_BYTES + 1), Content_Type="application/json"),
    ),
    "content_type_unsupported": Provocation(
        "The `Content-Type` is not `application/json`.",
        lambda r: r.post("/v1/patients", b"{}", Content_Type="text/plain"),
    ),
    "rate_limit_exceeded": Provocation(
        "More requests in a minute than allowed: wait as long as `Retry-After` says, or set `requests_per_minute`.",
        _second_request,
        {"rate_limit": 1},
    ),
    "headers_too_large": Provocation("The request line and the headers are too large.", _of_socket(431)),
    "events_failed": Provocation(
        "No event of the batch could be processed: send the events again under their ids, as `send_all` does.",
        _failed_event,
    ),
    "internal_error": Provocation("The mock failed, which is a bug: see its log.", lambda _: _of(INTERNAL_ERROR)),
    "fault": Provocation(
        "A [fault](../how-to/faults.md) that a test has added, with the status that the test chose.", _fault
    ),
}
"""The errors of the operations, by code."""

CONTROL: Mapping[str, Provocation] = {
    "intake_request_not_loadable": Provocation("Only an intake request that is ready can be loaded.", _intake("load")),
    "intake_request_closed": Provocation(
        "The intake request has been loaded or discarded.", _intake("discard", {"reason": "Duplicate"})
    ),
    "patient_without_phone": Provocation("A patient without a phone has no conversation.", _silent_without_phone),
    "doctor_inactive": Provocation("The agent books active doctors only.", _inactive_doctor),
    "webhook_endpoint_missing": Provocation(
        "No enabled endpoint is subscribed to the type that is triggered.",
        lambda r: r.post("/_mock/trigger", {"type": "webhook.ping"}),
    ),
    "snapshot_invalid": Provocation(
        "This is no snapshot of the mock, or it was changed: `param` names the place.",
        lambda r: r.send("PUT", "/_mock/snapshot", {}),
    ),
    "snapshot_newer": Provocation(
        "A newer release saved the snapshot: upgrade.",
        lambda r: r.send("PUT", "/_mock/snapshot", {**r.service.save(), "version": 10**6}),
    ),
    "control_token_missing": Provocation(
        "The mock listens on an address that other machines can reach, and the call lacks its token.", _without_token
    ),
    "api_key_in_use": Provocation("A key of the snapshot belongs to another organization.", _key_of_another),
    "snapshot_too_large": Provocation("The snapshot is larger than 64 MiB.", _large_snapshot),
}
"""The errors that only the control API has, by code."""


def provoked(provocation: Provocation) -> JsonResponse:
    """Return the response to the request that provokes an error."""
    return provocation.request(Requests(provocation.options))
