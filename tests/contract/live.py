"""A mock with one object of each kind, and the requests that its operations accept."""

import json
from collections.abc import Iterable
from typing import Any

import httpx
from contract import specification as spec
from contract.samples import object_of
from contract.specification import Field, Operation
from support.http import Api

PATIENT = {"phone": "+54 9 11 5555-0000", "fullName": "Ana Pérez"}
VISIT = {"visitedAt": "2026-09-28T10:00:00Z"}

DATA_OF_EVENTS: dict[str, Any] = {
    "intake.requested": {"patient": PATIENT},
    "patient.upserted": {"patient": PATIENT},
    "appointment.created": {"patient": PATIENT, "appointment": {"startAt": "2026-10-01T10:00:00Z"}},
    "appointment.rescheduled": {"appointment": {"externalId": "A-1", "startAt": "2026-10-02T10:00:00Z"}},
    "appointment.cancelled": {"appointment": {"externalId": "A-1"}},
    "visit.completed": {"patient": PATIENT, "visit": VISIT},
    "treatment.prescribed": {"patient": PATIENT, "treatment": {"name": "ibuprofen"}},
    "order.issued": {"patient": PATIENT, "order": {"kind": "lab"}},
}
"""The mock's schemas for the data of events that the specification does not describe."""

REFERENCES = {"patient": "pat_", "doctor": "doc_", "appointment": "apt_"}


class LiveService:
    """A mock with one object of each kind; ``ids`` has their ids by prefix.

    Args:
        api: sends requests with a key of all scopes.
    """

    def __init__(self, api: Api) -> None:
        self.api = api
        self.ids: dict[str, str] = {}
        create = self._create
        create("/v1/webhook_endpoints", {"url": "https://clinic.example/hooks", "enabledEvents": [spec.ALL_TYPES]})
        patient = {"patient": create("/v1/patients", PATIENT)}
        create("/v1/appointments", {**patient, "startAt": "2026-10-01T10:00:00Z", "externalId": "A-1"})
        create("/v1/visits", {**patient, **VISIT})
        create("/v1/treatments", {**patient, "name": "ibuprofen"})
        create("/v1/intake_requests", {"patient": PATIENT})
        api.post("/v1/events", {"id": "e1", "type": "order.issued", "data": {}})
        for path in ("/v1/doctors", "/v1/events", "/v1/webhook_deliveries"):
            self._keep(api.get(path).json()["data"][0]["id"])

    def _create(self, path: str, body: Any) -> str:
        response = self.api.post(path, body)
        assert response.status_code == 200, response.text
        return self._keep(response.json()["id"])

    def _keep(self, id: str) -> str:
        self.ids[id[: id.index("_") + 1]] = id
        return id

    def path(self, operation: Operation) -> str:
        return operation.path.replace("{id}", self.ids.get(operation.id or "", ""))

    def body(self, operation: Operation) -> Any:
        """Return the smallest body that an operation accepts; None if it has no body."""
        if operation.whole_body:
            return self.event("order.issued")
        if operation.name == "intake_requests.create":
            return {"patient": PATIENT}
        return self.values(each for each in operation.body if each.required) if operation.body_required else None

    def values(self, fields: Iterable[Field]) -> dict[str, Any]:
        """Return valid values for fields of a request; references are ids."""
        fields = [*fields]
        body = object_of(fields)
        for field in fields:
            prefix = REFERENCES.get(field.name)
            if prefix and not field.type.fields:
                body[field.name] = self.ids[prefix]
        return body

    def event(self, type: str, id: str = "e2") -> dict[str, Any]:
        """Return an event of this type that the mock processes."""
        return {"id": id, "type": type, "data": DATA_OF_EVENTS[type]}

    def send(self, operation: Operation, body: Any = None, *, query: str = "", **request: Any) -> httpx.Response:
        """Call an operation on the object of its kind, with the smallest body unless another is passed."""
        body = self.body(operation) if body is None else body
        if body is not None:
            request["content"] = json.dumps(body).encode()
            request["headers"] = {"Content-Type": "application/json", **request.get("headers", {})}
        return self.api.request(operation.method, self.path(operation) + query, **request)
