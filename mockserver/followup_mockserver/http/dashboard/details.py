"""What the dashboard shows of one object beside its fields: what belongs to it, what happened to it and what will."""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from operator import attrgetter
from typing import Any, get_args

import attrs

from followup import IntakeRequest, Patient, WebhookDelivery, WebhookEndpoint
from followup._for_mockserver import MAX_WEBHOOK_ATTEMPTS, PatientStage, encode, wire_fields
from followup_mockserver.http.dashboard.tables import page_of
from followup_mockserver.state.records import Attempt
from followup_mockserver.state.tenant import Tenant
from followup_mockserver.webhooks import deliveries

FEW = 10
"""So many of the objects that belong to another are shown with it."""

LONGEST_CONVERSATION = 200


@attrs.frozen(kw_only=True)
class Line:
    """One line of the conversation with a patient.

    Attributes:
        kind: that of a message, or ``appointment`` for a booking, which is no message.
        text: None for a message that will be sent, and does not have one yet.
        about: id of what caused it.
        pending: whether it lies ahead.
    """

    at: datetime
    kind: str
    text: str | None
    about: str
    pending: bool = False


@attrs.frozen(kw_only=True)
class AttemptShown:
    """An attempt to deliver, with the headers that it had."""

    made: Attempt
    headers: Mapping[str, str]


def fields_of(obj: Any) -> dict[str, Any]:
    """The fields of an object by their names on the wire; what has fields of its own as JSON."""
    shown = {}
    for name, wire_name in wire_fields(type(obj)).items():
        value = getattr(obj, name)
        shown[wire_name] = encode(value) if attrs.has(type(value)) else value
    return shown


def _of_patient(tenant: Tenant, patient: Patient) -> dict[str, Any]:
    return {
        "stages": get_args(PatientStage),
        "conversation": sorted(_conversation(tenant, patient), key=attrgetter("at"))[-LONGEST_CONVERSATION:],
        "belongings": [
            page_of(tenant, name, {"patient": patient.id}, FEW)
            for name in ("appointments", "visits", "treatments", "intake_requests")
        ],
    }


def _conversation(tenant: Tenant, patient: Patient) -> Iterator[Line]:
    for message in tenant.messages:
        if message.patient == patient.id:
            yield Line(at=message.sent_at, kind=message.kind, text=message.text, about=message.about)
    for collection in (tenant.appointments, tenant.visits, tenant.intake_requests):
        for cause in collection.find_all("patient", patient.id):
            for timer in tenant.scheduler.pending(about=cause.id):
                yield Line(at=timer.at, kind=timer.job.kind, text=None, about=cause.id, pending=True)
    for appointment in tenant.appointments.find_all("patient", patient.id):
        yield Line(at=appointment.created_at, kind="appointment", text=appointment.status, about=appointment.id)


def _of_delivery(tenant: Tenant, delivery: WebhookDelivery) -> dict[str, Any]:
    return {
        "attempts": [
            AttemptShown(
                made=attempt,
                headers=deliveries.headers_of(
                    event_type=attempt.event_type,
                    number=attempt.number,
                    timestamp=attempt.timestamp,
                    signature=attempt.signature,
                ),
            )
            for attempt in tenant.attempts.get(delivery.id, ())
        ],
        "most_attempts": MAX_WEBHOOK_ATTEMPTS,
        "body": deliveries.body_of(delivery).decode(),
    }


def _of_intake_request(tenant: Tenant, intake: IntakeRequest) -> dict[str, Any]:
    return {
        "questions": {_FIELD_OF.get(name, name): name for name in intake.missing},
        "open": intake.status not in ("loaded", "discarded"),
        "messages": [message for message in tenant.messages if message.about == intake.id],
    }


_FIELD_OF = {"fullName": "patient.fullName", "dni": "patient.dni", "phone": "patient.phone"}
"""What can be missing to where it stands in the body of an answer, where the two differ."""


def _of_endpoint(tenant: Tenant, endpoint: WebhookEndpoint) -> dict[str, Any]:
    return {"belongings": [page_of(tenant, "webhook_deliveries", {"webhook_endpoint": endpoint.id}, FEW)]}


DETAILS: Mapping[str, Callable[[Tenant, Any], dict[str, Any]]] = {
    "patients": _of_patient,
    "webhook_deliveries": _of_delivery,
    "intake_requests": _of_intake_request,
    "webhook_endpoints": _of_endpoint,
}
