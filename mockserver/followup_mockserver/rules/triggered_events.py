"""The events that a test triggers: about the newest object that fits their type, or about an invented one.

An invented object has all fields. The rules make it, so it is like any other; all of them concern one invented patient,
whose phone number belongs to nobody.
"""

import functools
import json
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from typing import Any

import attrs

from followup import Appointment, Event, Patient, PatientInput, WebhookDelivery, WebhookEndpoint
from followup._for_mockserver import OutboundEventType, camel, package_text
from followup_mockserver import deliveries
from followup_mockserver.deliveries import OUTBOUND_TYPES, data_of, is_subscribed
from followup_mockserver.rules import appointments, intake_requests, patients, treatments, visits, webhook_endpoints
from followup_mockserver.rules.doctors import add_roster
from followup_mockserver.rules.event_effects import patient_of_order
from followup_mockserver.rules.events import process
from followup_mockserver.world.schema.errors import invalid
from followup_mockserver.world.settings import Options
from followup_mockserver.world.state.tenant import DomainEvent, Tenant

HANDOFF_REASON = "The patient asks for a person."

_INVENTED = json.loads(package_text(__name__, "invented_objects.json"))
"""The fields of the invented objects that depend on nothing else."""

_INVENTED_PATIENT: PatientInput = _INVENTED["patient"] | {"date_of_birth": date(1980, 5, 17)}


def _new_patient(tenant: Tenant) -> Patient:
    return patients.create(tenant, **_INVENTED_PATIENT)


def _booked(tenant: Tenant, *, after: timedelta = timedelta(days=7)) -> Appointment:
    return appointments.create(
        tenant,
        patient=_new_patient(tenant).id,
        start_at=tenant.at + after,
        doctor=next((each.id for each in tenant.doctors if each.active), None),
        type="check-up",
        external_id=f"example-appointment-{len(tenant.appointments) + 1}",
    )


def _rescheduled_appointment(tenant: Tenant) -> Any:
    appointment = _booked(tenant)
    return appointments.update(tenant, appointment, start_at=appointment.start_at + timedelta(days=1))


def _visit(tenant: Tenant) -> Any:
    attended = _booked(tenant, after=timedelta(0))
    return visits.create(
        tenant,
        patient=attended.patient,
        visited_at=attended.start_at,
        doctor=attended.doctor,
        external_id=f"example-visit-{len(tenant.visits) + 1}",
        appointment=attended.id,
        **_INVENTED["visit"],
    )


def _treatment(tenant: Tenant) -> Any:
    now = tenant.at
    return treatments.create(
        tenant,
        patient=_new_patient(tenant).id,
        start_date=now,
        end_date=now + timedelta(days=7),
        **_INVENTED["treatment"],
    )


def _order(tenant: Tenant) -> Any:
    data = {"patient": {"phone": _new_patient(tenant).phone}, "order": {"kind": "lab", "description": "blood count"}}
    event = {"id": f"example-order-{len(tenant.events) + 1}", "type": "order.issued", "data": data}
    stored = tenant.events.get(process(tenant, event, "manual").event or "")
    assert stored is not None  # an order is valid whatever its data is
    return stored


def _open_intake(tenant: Tenant, **more: Any) -> Any:
    _new_patient(tenant)
    return intake_requests.create(tenant, patient=_INVENTED_PATIENT, **_INVENTED["intake_request"], **more)


@attrs.frozen(eq=False, repr=False)
class _Subject:
    """The kind of object that an event type is about.

    Attributes:
        collection: the collection of the tenant that contains these objects.
        make: makes one in the state in which the event leaves it.
        fits: whether the event may be about this object, given its current state.
    """

    collection: str
    make: Callable[[Tenant], Any] = _new_patient
    fits: Callable[[Any], bool] = lambda _: True


def _with_status(*statuses: str) -> Callable[[Any], bool]:
    return lambda each: each.status in statuses


_OPEN_INTAKE = _Subject("intake_requests", _open_intake, _with_status("new", "validating", "ready"))

_SUBJECTS: Mapping[OutboundEventType, _Subject] = {
    "intake.requested": _OPEN_INTAKE,
    "patient.upserted": _Subject("patients"),
    "appointment.created": _Subject("appointments", _booked, _with_status("confirmed", "pending")),
    "appointment.rescheduled": _Subject("appointments", _rescheduled_appointment, _with_status("rescheduled")),
    "appointment.cancelled": _Subject(
        "appointments",
        lambda tenant: appointments.cancel(tenant, _booked(tenant), reason="The patient is travelling."),
        _with_status("cancelled"),
    ),
    "visit.completed": _Subject("visits", _visit),
    "treatment.prescribed": _Subject("treatments", _treatment),
    "order.issued": _Subject("events", _order, lambda each: each.type == "order.issued"),
    "intake.created": _OPEN_INTAKE,
    "intake.ready": _Subject(
        "intake_requests", lambda tenant: _open_intake(tenant, **_INVENTED["answer"]), _with_status("ready")
    ),
    "conversation.handoff": _Subject(
        "patients", lambda tenant: patients.hand_off(tenant, _new_patient(tenant), reason=HANDOFF_REASON)
    ),
    "patient.silent": _Subject("patients", lambda tenant: patients.fall_silent(tenant, _new_patient(tenant))),
    "webhook.ping": _Subject("webhook_endpoints"),
}


def send(tenant: Tenant, event_type: OutboundEventType, data: Mapping[str, Any] | None) -> list[WebhookDelivery]:
    """Send an event to every endpoint that receives its type, with the ``data`` of the test if it is not None.

    Raises:
        ServiceError: 400: there is no such endpoint.
    """
    receivers = _receivers(tenant, event_type)
    if event_type == "webhook.ping" and data is None:
        return [webhook_endpoints.ping(tenant, each) for each in receivers]
    ref = None if data is None else _ref_in(data, event_type)
    if data is None or ref is None:
        event = event_of(tenant, event_type)
        data, ref = data_of(event) if data is None else data, event.subject.id
    return deliveries.queue(tenant, receivers, event_type, data, ref)


def _receivers(tenant: Tenant, event_type: OutboundEventType) -> list[WebhookEndpoint]:
    """Return the endpoints to send an event to: a ping reaches every enabled one."""
    enabled = [each for each in tenant.webhook_endpoints if each.status == "enabled"]
    receivers = [each for each in enabled if event_type == "webhook.ping" or is_subscribed(each, event_type)]
    if not receivers:
        problem = f"No enabled webhook endpoint is subscribed to {event_type}"
        raise invalid("webhook_endpoint_missing", f"{problem}: create or enable one, or run followup-mock listen.")
    return receivers


def event_of(tenant: Tenant, event_type: OutboundEventType) -> DomainEvent:
    """Return an event about the newest object that fits its type.

    If there is none, make one. Its reminders and messages are scheduled as usual, but no webhook is sent.
    """
    kind = _SUBJECTS[event_type]
    newest_first = reversed([*getattr(tenant, kind.collection)])
    subject = next((each for each in newest_first if kind.fits(each)), None)
    if subject is None:
        # The event that the test asked for is the only one that its receiver gets.
        with tenant.without_webhooks():
            subject = kind.make(tenant)
    details = {"conversation": {"reason": HANDOFF_REASON}} if event_type == "conversation.handoff" else {}
    patient = _patient_of(tenant, subject)
    return DomainEvent(type=event_type, subject=subject, patient=patient, details=details)


def _ref_in(data: Mapping[str, Any], event_type: OutboundEventType) -> str | None:
    """Return the id of the object that the ``data`` of a test describes, if it has one."""
    if event_type == "order.issued":
        return None
    singular = camel(_SUBJECTS[event_type].collection).removesuffix("s")
    described = data.get("intake" if event_type == "intake.ready" else singular)
    value = described.get("id") if isinstance(described, Mapping) else None
    return value if isinstance(value, str) else None


@functools.cache
def examples() -> Mapping[str, Mapping[str, Any]]:
    """Return an example of the ``data`` of every outbound type (specification, section 6.2)."""
    # Seeded and frozen, because the reference and the control API's document show these examples.
    options = Options(seed=0, start_time="2026-11-28T09:00:00Z")
    found = {}
    for event_type in OUTBOUND_TYPES:
        tenant = Tenant(options.organization("org_example"), (), options)
        with tenant.caused_by(None):
            add_roster(tenant)
            webhook_endpoints.create(tenant, url="https://clinic.example/webhooks", enabled_events=["*"])
            found[str(event_type)] = data_of(event_of(tenant, event_type))
    return found


def _patient_of(tenant: Tenant, subject: Any) -> Patient | None:
    match subject:
        case Patient():
            return subject
        case Event():
            return patient_of_order(tenant, subject.data)
        case WebhookEndpoint():
            return None
    return tenant.patients.get(subject.patient or "")
