"""The ``data`` of triggered webhooks: of the newest object that fits the type, or an example."""

import copy
import functools
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

import attrs

from followup import Appointment, IntakeRequest, Patient, Treatment, Visit, WebhookEndpoint
from followup._for_mockserver import encode
from followup_mockserver.state.domain_events import DomainEvent
from followup_mockserver.state.tenant import Tenant
from followup_mockserver.webhooks.payloads import data_of

_CREATED = datetime(2026, 11, 28, 9, tzinfo=UTC)
_TIMES: dict[str, Any] = {"created_at": _CREATED, "updated_at": _CREATED}
_START = datetime(2026, 12, 1, 14, 30, tzinfo=UTC)

_PATIENT = Patient(
    id="pat_example",
    object="patient",
    full_name="Ana Pérez",
    phone="+5491155550000",
    email="ana@mail.example",
    dni="30123456",
    external_id="P-1",
    date_of_birth=date(1980, 5, 17),
    stage="scheduled",
    opted_out=False,
    **_TIMES,
)
_APPOINTMENT = Appointment(
    id="apt_example",
    object="appointment",
    patient=_PATIENT.id,
    start_at=_START,
    status="confirmed",
    type="check-up",
    external_id="A-1",
    source="api",
    **_TIMES,
)
_VISIT = Visit(
    id="vis_example",
    object="visit",
    patient=_PATIENT.id,
    visited_at=_START,
    external_id="V-1",
    source="manual",
    created_at=_CREATED,
)
_TREATMENT = Treatment(
    id="trt_example",
    object="treatment",
    patient=_PATIENT.id,
    kind="medication",
    name="ibuprofen",
    dosage="400 mg",
    frequency="every 8 h",
    active=True,
    **_TIMES,
)
_INTAKE = IntakeRequest(
    id="int_example",
    object="intake_request",
    status="new",
    patient=_PATIENT.id,
    missing=["coverage.insurer", "address"],
    data={
        "patient": {"fullName": _PATIENT.full_name, "dni": _PATIENT.dni, "phone": _PATIENT.phone},
        "requestedService": "home nursing",
    },
    **_TIMES,
)
_ENDPOINT = WebhookEndpoint(
    id="we_example",
    object="webhook_endpoint",
    url="https://clinic.example/webhooks",
    enabled_events=["*"],
    status="enabled",
    created_at=_CREATED,
)


def _example(name: str, object: Any, **changes: Any) -> dict[str, Any]:
    return {name: encode(attrs.evolve(object, **changes)), "patient": encode(_PATIENT)}


@functools.cache
def examples() -> Mapping[str, Mapping[str, Any]]:
    """Return an example of the ``data`` of every outbound type (specification, section 6.2)."""
    return {
        "intake.requested": _example("intakeRequest", _INTAKE),
        "patient.upserted": {"patient": encode(_PATIENT)},
        "appointment.created": _example("appointment", _APPOINTMENT),
        "appointment.rescheduled": _example("appointment", _APPOINTMENT, status="rescheduled"),
        "appointment.cancelled": _example("appointment", _APPOINTMENT, status="cancelled", cancelled_at=_CREATED),
        "visit.completed": _example("visit", _VISIT),
        "treatment.prescribed": _example("treatment", _TREATMENT),
        "order.issued": {"order": {"kind": "lab", "description": "blood count"}, "patient": encode(_PATIENT)},
        "intake.created": _example("intakeRequest", _INTAKE),
        "intake.ready": {
            "patient": {"fullName": _PATIENT.full_name, "dni": _PATIENT.dni},
            "requestedService": "home nursing",
            "intake": {"id": _INTAKE.id, "missing": []},
        },
        "conversation.handoff": {
            "conversation": {"reason": "The patient asks for a person."},
            "patient": encode(_PATIENT),
        },
        "patient.silent": {"patient": encode(_PATIENT)},
        "webhook.ping": {"webhookEndpoint": encode(_ENDPOINT)},
    }


_COLLECTIONS = {
    "intake": ("intake_requests", "intakeRequest"),
    "patient": ("patients", "patient"),
    "appointment": ("appointments", "appointment"),
    "visit": ("visits", "visit"),
    "treatment": ("treatments", "treatment"),
    "webhook": ("webhook_endpoints", "webhookEndpoint"),
}

_REQUIRED_STATUS = {
    "appointment.created": "confirmed",
    "appointment.rescheduled": "rescheduled",
    "appointment.cancelled": "cancelled",
    "intake.ready": "ready",
}
"""The status that the object of an event has, for the types where not every object fits."""


def newest_or_example(tenant: Tenant, event_type: str) -> tuple[Mapping[str, Any], str]:
    """Return the ``data`` and the ``ref`` of an event about the newest object that fits, or an example."""
    collection, name = _COLLECTIONS.get(event_type.split(".")[0], ("", ""))
    newest = _newest(tenant, collection, _REQUIRED_STATUS.get(event_type)) if collection else None
    if newest is None:
        return copy.deepcopy(examples()[event_type]), "trigger"
    patient = newest if collection == "patients" else tenant.patients.get(getattr(newest, "patient", None) or "")
    return data_of(DomainEvent(type=event_type, name=name, subject=newest, patient=patient)), newest.id


def _newest(tenant: Tenant, collection: str, status: str | None) -> Any:
    found, _ = getattr(tenant, collection).page(limit=1, where={"status": status} if status else {})
    return found[0] if found else None
