"""Example request bodies for the OpenAPI document."""

from collections.abc import Mapping
from typing import Any

_PATIENT = {"phone": "+54 9 11 5555-0000", "fullName": "Ana Pérez", "dni": "30.123.456"}

REQUEST_EXAMPLES: Mapping[str, Mapping[str, Any]] = {
    "patients.create": {**_PATIENT, "email": "ana@clinic.example", "dateOfBirth": "1980-05-17", "externalId": "P-1"},
    "patients.update": {"email": "ana@clinic.example"},
    "appointments.create": {
        "patient": _PATIENT,
        "startAt": "2026-12-01T14:30:00Z",
        "doctor": {"externalId": "D-1"},
        "type": "check-up",
        "externalId": "A-1",
    },
    "appointments.update": {"startAt": "2026-12-02T14:30:00Z"},
    "appointments.cancel": {"reason": "The patient is travelling."},
    "visits.create": {"patient": _PATIENT, "visitedAt": "2026-12-01T15:00:00Z", "appointment": "A-1"},
    "intake_requests.create": {
        "patient": _PATIENT,
        "contacts": [{"name": "Luis Pérez", "relationship": "son", "phone": "+54 9 11 5555-0001"}],
        "coverage": {"insurer": "Salud Sur", "plan": "210", "memberId": "123"},
        "requestedService": "home nursing",
    },
    "treatments.create": {"patient": _PATIENT, "name": "ibuprofen", "dosage": "400 mg", "frequency": "every 8 h"},
    "events.create": {
        "id": "visit-1",
        "type": "visit.completed",
        "data": {"patient": _PATIENT, "visit": {"visitedAt": "2026-12-01T15:00:00Z", "externalId": "V-1"}},
    },
    "webhook_endpoints.create": {"url": "https://clinic.example/hooks", "enabledEvents": ["*"]},
    "webhook_endpoints.update": {"disabled": True},
}
"""Request bodies by operation."""
