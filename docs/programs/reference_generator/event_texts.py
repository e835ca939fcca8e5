"""When each event is sent, an example of each inbound event, and the code that uses each outbound one."""

from collections.abc import Mapping

from followup._core.api_rules import EventType, OutboundEventType

_BOOKED = """\
client.appointments.create(
    patient={"phone": "+54 9 11 5555-0000", "full_name": "Ana Pérez"},
    start_at="2026-10-05T14:30:00Z",
    external_id="A-1",
)
"""

_PATIENT = """\
    patient={
        "phone": "+54 9 11 5555-0000",
        "full_name": "Ana Pérez",
        "dni": "30.123.456",
        "external_id": "P-1",
        "email": "ana@patient.example",
        "date_of_birth": "1980-05-17",
    },
"""

SEND_WHEN: Mapping[EventType, str] = {
    "intake.requested": "someone asks for the service for a patient, such as a hospital or a relative",
    "patient.upserted": "your system creates a patient, or changes a patient's data",
    "appointment.created": "your system books an appointment",
    "appointment.rescheduled": "your system moves an appointment to another time",
    "appointment.cancelled": "your system cancels an appointment",
    "visit.completed": "a patient has been attended",
    "treatment.prescribed": "a doctor prescribes a treatment",
    "order.issued": "a doctor issues an order, such as one for a laboratory or for imaging",
}
"""When to send an inbound event: the end of a sentence."""

ID_FROM: Mapping[EventType, str] = {
    "intake.requested": "the number of the referral: each id opens one request",
    "patient.upserted": "the patient's number and the version of the record, or the time of its change",
    "appointment.created": "the number of the booking, which is created once",
    "appointment.rescheduled": "the number of the booking and the version or the time of the change: the new start is "
    "not enough, because an appointment can be moved away and back",
    "appointment.cancelled": "the number of the booking, which is cancelled once, with a word that tells it from the "
    "other events of the booking",
    "visit.completed": "the number of the visit: a visit is completed once, and an event does not change it later",
    "treatment.prescribed": "the number of the prescription: a changed prescription is another treatment",
    "order.issued": "the number of the order",
}
"""What your id of an inbound event has to contain: the end of a sentence."""

NEEDED: Mapping[EventType, str] = {
    "appointment.rescheduled": _BOOKED,
    "appointment.cancelled": _BOOKED,
    "visit.completed": _BOOKED,
}
"""Code that creates what the example of an inbound event refers to."""

BUILT: Mapping[EventType, str] = {
    "intake.requested": f"""\
event = inbound.intake_requested(
    id="referral-4711",
{_PATIENT}\
    contacts=[{{"name": "Luis Pérez", "relationship": "son", "phone": "+54 9 11 5555-0001"}}],
    coverage={{"insurer": "Salud Sur", "plan": "210", "member_id": "123"}},
    address="Calle 1",
    requested_service="home nursing",
    summary="Home nursing after a discharge.",
    hospitalized=False,
    sender={{"name": "Admissions", "organization": "Hospital Sur", "email": "admissions@hospital.example"}},
)
""",
    "patient.upserted": f"""\
event = inbound.patient_upserted(
    id="patient-1-version-2",
{_PATIENT}\
)
""",
    "appointment.created": f"""\
event = inbound.appointment_created(
    id="booking-4711",
{_PATIENT}\
    start_at="2026-10-05T14:30:00Z",
    external_id="A-1",
    type="check-up",
    doctor={{"external_id": "D-1", "full_name": "Dra. Julia Gómez", "specialty": "cardiology"}},
    occurred_at="2026-09-28T11:59:00Z",
    source={{"system": "agenda", "version": "4.2"}},
)
""",
    "appointment.rescheduled": """\
event = inbound.appointment_rescheduled(
    id="booking-4711-version-2",
    external_id="A-1",
    start_at="2026-10-06T09:00:00Z",
    occurred_at="2026-09-28T11:59:00Z",
)
""",
    "appointment.cancelled": """\
event = inbound.appointment_cancelled(
    id="booking-4711-cancelled",
    external_id="A-1",
    reason="The patient is travelling.",
    occurred_at="2026-09-28T11:59:00Z",
)
""",
    "visit.completed": f"""\
event = inbound.visit_completed(
    id="visit-4711",
{_PATIENT}\
    visited_at="2026-09-28T11:00:00Z",
    external_id="V-1",
    type="check-up",
    doctor={{"external_id": "D-1"}},
    diagnosis="No findings.",
    notes="Next check-up in a year.",
    appointment="A-1",
)
""",
    "treatment.prescribed": f"""\
event = inbound.treatment_prescribed(
    id="prescription-4711",
{_PATIENT}\
    name="ibuprofen",
    kind="medication",
    dosage="400 mg",
    frequency="every 8 h",
    instructions="After meals.",
    start_date="2026-09-28T12:00:00Z",
    end_date="2026-10-05T12:00:00Z",
)
""",
    "order.issued": f"""\
event = inbound.order_issued(
    id="order-4711",
{_PATIENT}\
    order={{"kind": "lab", "description": "blood count"}},
)
""",
}
"""Code that builds an inbound event with all of its arguments that matter."""

SENT_WHEN: Mapping[OutboundEventType, str] = {
    "intake.requested": "someone requests the service for a patient",
    "patient.upserted": "a patient is created, or their data changes",
    "appointment.created": "there is a new appointment",
    "appointment.rescheduled": "an appointment has a new time",
    "appointment.cancelled": "an appointment is cancelled",
    "visit.completed": "a patient was attended",
    "treatment.prescribed": "a treatment is prescribed",
    "order.issued": "an order is issued",
    "intake.created": "an intake request was created, by whatever route",
    "intake.ready": "an intake request has become complete, and can be loaded into your system",
    "conversation.handoff": "a conversation with a patient needs a person of your team",
    "patient.silent": "a patient stopped answering during the follow-up",
    "webhook.ping": "you call [`webhook_endpoints.ping`](../operations/webhook_endpoints.md#webhook-endpoints-ping)",
}
"""When the service sends an outbound event: the end of a sentence."""

_APPOINTMENT = """\
appointment = event.appointment
if appointment is not None:
    print(appointment.external_id, appointment.status, appointment.start_at)
"""

_INTAKE = """\
intake = event.intake_request
if intake is not None:
    print(intake.id, intake.status, intake.missing)
"""

USED: Mapping[OutboundEventType, str] = {
    "intake.requested": _INTAKE,
    "patient.upserted": """\
patient = event.patient
if patient is not None:
    print(patient.external_id, patient.stage)
""",
    "appointment.created": _APPOINTMENT,
    "appointment.rescheduled": _APPOINTMENT,
    "appointment.cancelled": _APPOINTMENT,
    "visit.completed": """\
visit = event.visit
if visit is not None:
    print(visit.external_id, visit.appointment, visit.visited_at)
""",
    "treatment.prescribed": """\
treatment = event.treatment
if treatment is not None:
    print(treatment.name, treatment.active)
""",
    "order.issued": """\
print(event.data["order"])
""",
    "intake.created": _INTAKE,
    "intake.ready": """\
print(event.data["requestedService"], event.data["intake"]["missing"])
intake_id = event.ref  # client.intake_requests.retrieve(event.ref) returns the whole request
""",
    "conversation.handoff": """\
patient = event.patient
if patient is not None:
    print(patient.id, event.data["conversation"]["reason"])
""",
    "patient.silent": """\
patient = event.patient
if patient is not None:
    print(patient.id, patient.stage)
""",
    "webhook.ping": """\
print("The endpoint works:", event.ref)
""",
}
"""Code that uses an outbound event."""
