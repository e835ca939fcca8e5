"""An example of each operation, as users would write it. The examples of a group run one after the other.

``OBJECTS`` has the code that a group's examples need before, which its page shows first.
"""

import re
from collections.abc import Mapping

OBJECTS: Mapping[str, str] = {
    "visits": """
appointment = client.appointments.create(
    patient={"phone": "+54 9 11 5555-0000", "full_name": "Ana Pérez"},
    start_at="2026-10-05T14:30:00Z",
    external_id="A-1",
)
""",
    "treatments": """
patient = client.patients.create(phone="+54 9 11 5555-0000", full_name="Ana Pérez")
""",
    "webhook_deliveries": """
endpoint = client.webhook_endpoints.create(url="https://clinic.example/webhooks", enabled_events=["*"])
ping = client.webhook_endpoints.ping(endpoint.id)
""",
}
"""Code by group."""

EXAMPLES: Mapping[str, str] = {
    "account.retrieve": """
account = client.account.retrieve()
print(account.name, account.livemode, account.api_key.scopes)
""",
    "patients.create": """
patient = client.patients.create(
    phone="+54 9 11 5555-0000",
    full_name="Ana Pérez",
    dni="30.123.456",
    external_id="P-1",
    email="ana@patient.example",
    date_of_birth="1980-05-17",
)
print(patient.id, patient.stage)
""",
    "patients.retrieve": """
patient = client.patients.retrieve(patient.id)
print(patient.opted_out)
""",
    "patients.update": """
patient = client.patients.update(patient.id, full_name="Ana Pérez Soto", email=None)
assert patient.email is None
""",
    "patients.list": """
for patient in client.patients.list(phone="11 5555-0000"):
    print(patient.id, patient.stage)
""",
    "doctors.retrieve": """
doctor = client.doctors.list(limit=1).data[0]
doctor = client.doctors.retrieve(doctor.id)
print(doctor.full_name, doctor.specialty)
""",
    "doctors.list": """
for doctor in client.doctors.list(active=True, limit=2):
    print(doctor.id, doctor.full_name)
""",
    "appointments.create": """
appointment = client.appointments.create(
    patient={"phone": "+54 9 11 5555-0000", "full_name": "Ana Pérez"},
    start_at=datetime(2026, 10, 5, 14, 30, tzinfo=UTC),
    doctor={"external_id": "D-1"},
    type="check-up",
    external_id="A-1",
)
print(appointment.id, appointment.status)
""",
    "appointments.retrieve": """
appointment = client.appointments.retrieve(appointment.id)
print(appointment.start_at)
""",
    "appointments.update": """
later = appointment.start_at + timedelta(days=1)
appointment = client.appointments.update(appointment.id, start_at=later)
print(appointment.status)
""",
    "appointments.cancel": """
appointment = client.appointments.cancel(appointment.id, reason="The patient is travelling.")
assert appointment.status == "cancelled"
""",
    "appointments.list": """
october = datetime(2026, 10, 1, tzinfo=UTC)
for appointment in client.appointments.list(start_at_gte=october, status="cancelled"):
    print(appointment.id, appointment.start_at)
""",
    "visits.create": """
visit = client.visits.create(
    patient=appointment.patient,
    visited_at="2026-10-05T15:00:00Z",
    appointment=appointment.id,
    diagnosis="No findings.",
    external_id="V-1",
)
print(visit.id)
""",
    "visits.retrieve": """
visit = client.visits.retrieve(visit.id)
print(visit.visited_at)
""",
    "visits.list": """
for visit in client.visits.list(patient=appointment.patient):
    print(visit.id, visit.visited_at)
""",
    "intake_requests.create": """
intake = client.intake_requests.create(
    patient={"phone": "+54 9 11 5555-0000", "full_name": "Ana Pérez"},
    contacts=[{"name": "Luis Pérez", "relationship": "son", "phone": "+54 9 11 5555-0001"}],
    coverage={"insurer": "Salud Sur", "plan": "210", "member_id": "123"},
    requested_service="home nursing",
)
print(intake.status, intake.missing)
""",
    "intake_requests.retrieve": """
intake = client.intake_requests.retrieve(intake.id)
print(intake.status, intake.missing)
""",
    "intake_requests.list": """
for intake in client.intake_requests.list(status="validating"):
    print(intake.id, intake.missing)
""",
    "treatments.create": """
treatment = client.treatments.create(
    patient=patient.id,
    name="ibuprofen",
    dosage="400 mg",
    frequency="every 8 h",
    end_date="2026-10-12T00:00:00Z",
)
print(treatment.id, treatment.active)
""",
    "treatments.retrieve": """
treatment = client.treatments.retrieve(treatment.id)
print(treatment.name)
""",
    "treatments.list": """
for treatment in client.treatments.list(patient=patient.id):
    print(treatment.id, treatment.name)
""",
    "events.create": """
visit = inbound.visit_completed(
    id="visit-4711",
    patient={"phone": "+54 9 11 5555-0000", "full_name": "Ana Pérez"},
    visited_at="2026-09-28T11:00:00Z",
    external_id="V-4711",
)
batch = client.events.create([visit])
for result in batch.results:
    print(result.id, result.status, result.error)
""",
    "events.retrieve": """
event = client.events.retrieve(batch.results[0].event or "")
print(event.status, event.result)
""",
    "events.list": """
for event in client.events.list(type="visit.completed", status="processed"):
    print(event.source_ref, event.received_at)
""",
    "events.send_all": """
patient = {"phone": "+54 9 11 5555-0000"}
visits = [inbound.visit_completed(patient=patient, visited_at="2026-09-28T11:30:00Z") for _ in range(3)]
for result in client.events.send_all(visits):
    print(result.id, result.status, result.error)
""",
    "webhook_endpoints.create": """
endpoint = client.webhook_endpoints.create(
    url="https://clinic.example/webhooks",
    enabled_events=["appointment.created", "intake.ready"],
)
secret = endpoint.secret  # store it: it is not shown again
""",
    "webhook_endpoints.retrieve": """
endpoint = client.webhook_endpoints.retrieve(endpoint.id)
print(endpoint.last_delivered_at, endpoint.last_error)
""",
    "webhook_endpoints.update": """
endpoint = client.webhook_endpoints.update(endpoint.id, enabled_events=["*"])
""",
    "webhook_endpoints.ping": """
delivery = client.webhook_endpoints.ping(endpoint.id)
print(delivery.id, delivery.status)
""",
    "webhook_endpoints.delete": """
former = client.webhook_endpoints.create(url="https://clinic.example/former", enabled_events=["*"])
deleted = client.webhook_endpoints.delete(former.id)
assert deleted.deleted
""",
    "webhook_endpoints.list": """
for endpoint in client.webhook_endpoints.list():
    print(endpoint.id, endpoint.url, endpoint.status)
""",
    "webhook_deliveries.retrieve": """
delivery = client.webhook_deliveries.retrieve(ping.id)
print(delivery.status, delivery.attempts, delivery.last_error)
""",
    "webhook_deliveries.list": """
for delivery in client.webhook_deliveries.list(webhook_endpoint=endpoint.id, limit=20):
    print(delivery.id, delivery.event_type, delivery.status)
""",
}
"""Code by operation."""


def asynchronous(code: str) -> str:
    """Return an example as users of ``AsyncFollowUp`` would write it."""
    code = re.sub(r"\bFollowUp\b", "AsyncFollowUp", code)
    code = re.sub(r"^for (.*) in client\.", r"async for \1 in client.", code, flags=re.MULTILINE)
    code = re.sub(r"= (client\.\w+\.list\([^)]*\))\.", r"= (await \1).", code)
    return re.sub(r"= client\.", "= await client.", code)
