"""The details of an object in addition to its fields: related objects, history and pending jobs."""

from collections.abc import Callable, Mapping
from typing import Any, get_args

import attrs

from followup import IntakeRequest, Patient
from followup._for_mockserver import PatientStage, encode, wire_fields
from followup_mockserver.dashboard.deliveries import delivery_details
from followup_mockserver.dashboard.endpoints import endpoint_details
from followup_mockserver.dashboard.inbound_events import event_details
from followup_mockserver.dashboard.tables import page_of
from followup_mockserver.state.tenant import Tenant

RELATED_ROWS = 10
"""Rows per table of related objects."""

_OF_PATIENT = ("appointments", "visits", "treatments", "intake_requests")


def fields_of(obj: Any) -> dict[str, Any]:
    """Return the fields of an object by their wire names, nested objects as JSON values."""
    fields = {}
    for name, wire_name in wire_fields(type(obj)).items():
        value = getattr(obj, name)
        fields[wire_name] = encode(value) if attrs.has(type(value)) else value
    return fields


def _patient_details(tenant: Tenant, patient: Patient) -> dict[str, Any]:
    return {
        "stages": get_args(PatientStage),
        **_related(tenant, patient),
    }


def _related(tenant: Tenant, patient: Patient) -> dict[str, Any]:
    """Return the tables of the patient's objects: those with rows, and the others."""
    pages = [page_of(tenant, name, {"patient": patient.id}, RELATED_ROWS) for name in _OF_PATIENT]
    return {
        "related": [page for page in pages if page.rows],
        "none_related": [page for page in pages if not page.rows],
    }


def _intake_request_details(_: Tenant, intake: IntakeRequest) -> dict[str, Any]:
    return {
        "questions": {_FIELD_OF_ANSWER.get(name, name): name for name in intake.missing},
        "is_open": intake.status not in ("loaded", "discarded"),
    }


_FIELD_OF_ANSWER = {"fullName": "patient.fullName", "dni": "patient.dni", "phone": "patient.phone"}
"""Name in ``missing`` to the path of the field in the body of an answer, if the two differ."""


DETAILS: Mapping[str, Callable[[Tenant, Any], dict[str, Any]]] = {
    "events": event_details,
    "patients": _patient_details,
    "webhook_deliveries": delivery_details,
    "intake_requests": _intake_request_details,
    "webhook_endpoints": endpoint_details,
}
