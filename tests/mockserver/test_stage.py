"""The stage of a patient, as time passes (specification, sections 2 and 3)."""

from datetime import UTC, datetime, timedelta

from followup import FollowUp
from followup_mockserver import MockService

START = datetime(2026, 9, 29, 12, tzinfo=UTC)
"""A day after the service's clock was started."""

JUST = timedelta(milliseconds=1)


def test_section_3_an_appointment_whose_time_passes_is_not_ahead_any_more(
    client: FollowUp, service: MockService
) -> None:
    patient = client.patients.create(phone="+5491155550000")
    client.webhook_endpoints.create(url="https://clinic.example", enabled_events=["*"])
    client.appointments.create(patient=patient.id, start_at=START)
    service.advance(to=START)
    assert client.patients.retrieve(patient.id).stage == "scheduled"
    before = len(client.webhook_deliveries.list().data)
    (job,) = service.advance(seconds=1).jobs
    assert (job.at, job.kind, job.about) == (START + JUST, "stage", client.appointments.list().data[0].id)
    passed = client.patients.retrieve(patient.id)
    assert (passed.stage, passed.updated_at) == ("pending_follow_up", START + JUST)
    assert len(client.webhook_deliveries.list().data) == before, "the stage is the service's own mark"
    assert client.appointments.list().data[0].status == "confirmed"


def test_section_3_a_patient_who_was_seen_before_goes_back_to_periodic_follow_up(
    client: FollowUp, service: MockService
) -> None:
    patient = client.patients.create(phone="+5491155550000")
    client.visits.create(patient=patient.id, visited_at="2026-09-01T12:00:00Z")
    client.appointments.create(patient=patient.id, start_at=START)
    service.advance(days=2)
    assert client.patients.retrieve(patient.id).stage == "periodic_follow_up"


def test_section_3_another_appointment_ahead_keeps_the_patient_scheduled(
    client: FollowUp, service: MockService
) -> None:
    patient = client.patients.create(phone="+5491155550000")
    for days in (0, 3):
        client.appointments.create(patient=patient.id, start_at=START + timedelta(days=days))
    service.advance(days=2)
    assert client.patients.retrieve(patient.id).stage == "scheduled"
    service.advance(days=3)
    assert client.patients.retrieve(patient.id).stage == "pending_follow_up"


def test_section_3_a_moved_appointment_passes_at_its_new_time(client: FollowUp, service: MockService) -> None:
    patient = client.patients.create(phone="+5491155550000")
    appointment = client.appointments.create(patient=patient.id, start_at=START)
    client.appointments.update(appointment.id, start_at=START + timedelta(days=5))
    assert [each.at for each in service.jobs if each.kind == "stage"] == [START + timedelta(days=5) + JUST]
    service.advance(days=3)
    assert client.patients.retrieve(patient.id).stage == "scheduled"


def test_section_3_what_is_cancelled_or_attended_does_not_come_up_later(client: FollowUp, service: MockService) -> None:
    patient = client.patients.create(phone="+5491155550000")
    cancelled = client.appointments.create(patient=patient.id, start_at=START)
    attended = client.appointments.create(patient=patient.id, start_at=START)
    client.appointments.cancel(cancelled.id)
    client.visits.create(patient=patient.id, visited_at=service.clock.now, appointment=attended.id)
    assert [each.kind for each in service.jobs] == ["post_visit"]


def test_a_stage_that_the_team_set_stays_where_no_appointment_passes(client: FollowUp, service: MockService) -> None:
    patient = client.patients.create(phone="+5491155550000")
    service.update_patient(patient.id, stage="lost")
    service.advance(days=10)
    assert client.patients.retrieve(patient.id).stage == "lost"
