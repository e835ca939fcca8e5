"""Names of objects in the dashboard."""

from datetime import UTC, datetime

import pytest

from followup import FollowUp
from followup_mockserver import MockService
from followup_mockserver.control import access_to
from followup_mockserver.dashboard.objects import Name, name_of

PHONE = "+5491155550001"


def test_each_kind_of_object_has_a_name(service: MockService, client: FollowUp) -> None:
    booked = client.appointments.create(
        patient={"phone": PHONE, "full_name": "Ana Díaz"}, start_at="2026-10-01T12:00:00Z"
    )
    visit = client.visits.create(patient=booked.patient, visited_at="2026-09-28T11:00:00Z")
    treatment = client.treatments.create(patient=booked.patient, name="ibuprofen")
    intake = client.intake_requests.create(patient={"phone": "+5491155550002", "full_name": "Eva Sosa"})
    endpoint = client.webhook_endpoints.create(url="https://clinic.example/hooks/?key=1", enabled_events=["*"])
    event = client.events.create({"id": "e1", "type": "order.issued", "data": {}}).results[0].event
    client.patients.create(phone="+5491155550003")
    doctor = next(iter(client.doctors.list()))
    request_id = intake.last_response.request_id
    assert (event, request_id) != (None, None)
    start = datetime(2026, 10, 1, 12, tzinfo=UTC)
    visited = datetime(2026, 9, 28, 11, tzinfo=UTC)
    names = {
        booked.patient: Name("Ana Díaz"), booked.id: Name("Ana Díaz", start), visit.id: Name("Ana Díaz", visited),
        treatment.id: Name("ibuprofen"), intake.id: Name("Eva Sosa"), endpoint.id: Name("clinic.example/hooks"),
        event: Name("order.issued"), service.deliveries[0].id: Name("patient.upserted"),
        doctor.id: Name(doctor.full_name), request_id: Name("intake_requests.create"),
    }  # fmt: skip
    tenant = access_to(service).tenant
    assert {each: name_of(tenant, each or "") for each in names} == names


def test_a_patient_without_a_name_goes_by_the_phone(service: MockService, client: FollowUp) -> None:
    patient = client.patients.create(phone=PHONE)
    booked = client.appointments.create(patient=patient.id, start_at="2026-10-01T12:00:00Z")
    nameless = client.intake_requests.create(patient={"dni": "30123456"})
    tenant = access_to(service).tenant
    assert name_of(tenant, patient.id) == Name(PHONE)
    assert name_of(tenant, booked.id) == Name(PHONE, datetime(2026, 10, 1, 12, tzinfo=UTC))
    assert name_of(tenant, nameless.id) is None


@pytest.mark.parametrize("id", ["pat_gone", "req_gone", "msg_1", "text", "", "apt_"])
def test_what_does_not_exist_has_no_name(service: MockService, id: str) -> None:
    assert name_of(access_to(service).tenant, id) is None
