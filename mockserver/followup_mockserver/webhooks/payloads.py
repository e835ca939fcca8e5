"""The ``data`` of webhook bodies (specification, section 6.2, Request body)."""

from collections.abc import Callable
from typing import Any

from followup._for_mockserver import encode
from followup_mockserver.state.tenant import DomainEvent


def data_of(event: DomainEvent) -> dict[str, Any]:
    """Return the ``data`` of the webhook for a domain event."""
    special = _SPECIAL_DATA.get(event.type)
    if special is not None:
        return special(event)
    data = {event.name: encode(event.subject)}
    if event.patient is not None:
        data["patient"] = encode(event.patient)
    return {**data, **event.details}


def _intake_ready_data(event: DomainEvent) -> dict[str, Any]:
    intake, patient = event.subject, event.patient
    requested = intake.data.get("patient", {})
    return {
        "patient": {
            "fullName": (patient.full_name if patient else None) or requested.get("fullName"),
            "dni": (patient.dni if patient else None) or requested.get("dni"),
        },
        "requestedService": intake.data.get("requestedService"),
        "intake": {"id": intake.id, "missing": list(intake.missing)},
    }


def _order_issued_data(event: DomainEvent) -> dict[str, Any]:
    """Return the data of the inbound event, with the patient as the service knows them, if it does."""
    return {**event.subject.data, **({"patient": encode(event.patient)} if event.patient else {})}


_SPECIAL_DATA: dict[str, Callable[[DomainEvent], dict[str, Any]]] = {
    "intake.ready": _intake_ready_data,
    "order.issued": _order_issued_data,
}
"""Functions for the types whose ``data`` is not simply the object and its patient."""
