"""Names of objects for people: a patient's name, an appointment's patient and start, instead of an id."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

import attrs

from followup import (
    Appointment,
    Doctor,
    Event,
    IntakeRequest,
    Patient,
    Treatment,
    Visit,
    WebhookDelivery,
    WebhookEndpoint,
)
from followup_mockserver.dashboard.tables import VIEW_OF_PREFIX, collection_of
from followup_mockserver.state.journal import REQUEST_ID_PREFIX
from followup_mockserver.state.tenant import Tenant


@attrs.frozen
class Name:
    """The name of an object.

    Attributes:
        text: the name, such as ``Ana Díaz``.
        at: a time that belongs to the name, such as the start of an appointment; None if there is none.
    """

    text: str
    at: datetime | None = None


def name_of(tenant: Tenant, id: str) -> Name | None:
    """Return the name of an object or a call; None if it has none, or does not exist any more.

    Args:
        tenant: the state of the organization.
        id: id of any object of the API, or of a call (``req_…``).
    """
    if id.startswith(REQUEST_ID_PREFIX):
        call = tenant.journal.find(id)
        return None if call is None or call.operation is None else Name(call.operation)
    prefix, underscore, _ = id.partition("_")
    view = VIEW_OF_PREFIX.get(prefix + underscore)
    obj = None if view is None else collection_of(tenant, view).get(id)
    return None if view is None or obj is None else _NAMES[view](tenant, obj)


def patient_name(tenant: Tenant, id: str | None) -> str | None:
    """Return a patient's name, or else the phone; None if there is neither."""
    patient = None if id is None else tenant.patients.get(id)
    return None if patient is None else patient.full_name or patient.phone


def address(url: str) -> str:
    """Return host and path of a URL: what distinguishes the endpoints of an organization."""
    parts = urlsplit(url)
    return f"{parts.netloc}{parts.path}".rstrip("/")


def _patient(tenant: Tenant, patient: Patient) -> Name | None:
    text = patient_name(tenant, patient.id)
    return None if text is None else Name(text)


def _doctor(_: Tenant, doctor: Doctor) -> Name:
    return Name(doctor.full_name)


def _appointment(tenant: Tenant, appointment: Appointment) -> Name:
    return Name(patient_name(tenant, appointment.patient) or "Appointment", appointment.start_at)


def _visit(tenant: Tenant, visit: Visit) -> Name:
    return Name(patient_name(tenant, visit.patient) or "Visit", visit.visited_at)


def _treatment(_: Tenant, treatment: Treatment) -> Name:
    return Name(treatment.name)


def _intake_request(tenant: Tenant, intake: IntakeRequest) -> Name | None:
    text = intake.data.get("patient", {}).get("fullName") or patient_name(tenant, intake.patient) or intake.summary
    return None if not text else Name(text)


def _event(_: Tenant, event: Event) -> Name:
    return Name(event.type)


def _webhook_endpoint(_: Tenant, endpoint: WebhookEndpoint) -> Name:
    return Name(address(endpoint.url))


def _webhook_delivery(_: Tenant, delivery: WebhookDelivery) -> Name:
    return Name(delivery.event_type)


_NAMES: Mapping[str, Callable[[Tenant, Any], Name | None]] = {
    "patients": _patient,
    "doctors": _doctor,
    "appointments": _appointment,
    "visits": _visit,
    "treatments": _treatment,
    "intake_requests": _intake_request,
    "events": _event,
    "webhook_endpoints": _webhook_endpoint,
    "webhook_deliveries": _webhook_delivery,
}
