"""Example request bodies for the OpenAPI document of the control API."""

from collections.abc import Mapping
from typing import Any

_PATIENT = {"phone": "+54 9 11 5555-0000", "fullName": "Ana Pérez"}

REQUEST_EXAMPLES: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("POST", "/clock/advance"): {"hours": 3},
    ("POST", "/deliveries/disturb"): {"kind": "duplicate", "type": "appointment.created"},
    ("POST", "/webhook_endpoints"): {"url": "http://127.0.0.1:8000/hooks", "enabledEvents": ["*"]},
    ("POST", "/doctors"): {"fullName": "Dra. Julia Gómez", "externalId": "D-9"},
    ("PATCH", "/doctors/{id}"): {"active": False},
    ("PATCH", "/patients/{id}"): {"optedOut": True},
    ("POST", "/patients/{id}/handoff"): {"reason": "Asks for a person."},
    ("POST", "/appointments"): {"patient": _PATIENT, "startAt": "2030-01-01T14:30:00Z", "source": "agent"},
    ("POST", "/appointments/{id}/reschedule"): {"startAt": "2030-01-02T14:30:00Z"},
    ("POST", "/appointments/{id}/cancel"): {"reason": "The patient is travelling."},
    ("POST", "/visits"): {"patient": _PATIENT, "visitedAt": "2026-09-28T15:00:00Z"},
    ("POST", "/events"): {
        "event": {"id": "row-1", "type": "patient.upserted", "data": {"patient": _PATIENT}},
        "source": "import",
    },
    ("POST", "/intake_requests/{id}/answer"): {"address": "Calle 1", "coverage": {"insurer": "Salud Sur"}},
    ("POST", "/intake_requests/{id}/discard"): {"reason": "Another clinic has admitted the patient."},
    ("POST", "/organizations"): {"name": "Laboratory", "keys": [{"name": "tests", "scopes": ["patients:read"]}]},
    ("PATCH", "/organization"): {"serviceLines": ["follow_up"], "reminderHours": [24, 3]},
    ("POST", "/api_keys"): {"name": "read only", "scopes": ["patients:read"]},
    ("PATCH", "/api_keys/{value}"): {"revoked": True},
    ("POST", "/faults"): {"operation": "patients.create", "kind": "status", "status": 503, "times": 2},
    ("POST", "/trigger"): {"type": "webhook.ping"},
}
"""Request bodies by method and path."""
