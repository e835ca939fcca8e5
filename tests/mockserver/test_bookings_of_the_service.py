"""Appointments and visits that do not come from the API (specification, sections 2 and 3)."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from support.http import Api, problem

from followup import Appointment, FollowUp
from followup_mockserver import MockService, ServiceError

PATIENT: Any = {"phone": "+5491155550000", "full_name": "Ana Pérez"}
NOON = datetime(2026, 9, 28, 12, tzinfo=UTC)
START = NOON + timedelta(days=7)


@pytest.fixture(autouse=True)
def endpoint(client: FollowUp) -> None:
    client.webhook_endpoints.create(url="https://clinic.example", enabled_events=["*"])


def sent(service: MockService) -> list[tuple[str, str]]:
    """Return the type and the ref of every webhook, oldest first, but for those of patients."""
    found = [(each.event_type, each.payload["ref"]) for each in reversed(service.deliveries)]
    return [each for each in found if each[0] != "patient.upserted"]


def reminded_at(service: MockService, appointment: Appointment) -> list[datetime]:
    return [each.send_at for each in service.reminders if each.appointment == appointment.id]


@pytest.mark.parametrize("source", ["agent", "manual", "pms"])
def test_section_2_an_appointment_of_each_source_is_one_like_any_other(
    client: FollowUp, service: MockService, source: Any
) -> None:
    doctor = client.doctors.list(external_id="D-1").data[0]
    made = service.add_appointment(
        patient=PATIENT,
        start_at=START,
        doctor={"external_id": "D-1"},
        type="check-up",
        external_id="A-1",
        source=source,
    )
    assert made == client.appointments.retrieve(made.id)
    assert client.appointments.list(external_id="A-1").data == [made]
    assert (made.source, made.status, made.doctor, made.type) == (source, "confirmed", doctor.id, "check-up")
    assert reminded_at(service, made) == [START - timedelta(hours=24), START - timedelta(hours=3)]
    assert client.patients.retrieve(made.patient).stage == "scheduled"
    assert sent(service) == [("appointment.created", made.id)]
    (delivery, _) = service.deliveries
    told = delivery.payload["data"]["appointment"]
    assert (told["id"], told["source"], told["startAt"]) == (made.id, source, "2026-10-05T12:00:00.000Z")
    assert service.add_appointment(patient=PATIENT, start_at=START, external_id="A-1") == made
    assert client.events.list().data == []


def test_section_3_a_pending_appointment_is_confirmed_later(client: FollowUp, service: MockService) -> None:
    made = service.add_appointment(patient=PATIENT, start_at=START, status="pending")
    assert client.appointments.list(status="pending").data == [made]
    assert len(reminded_at(service, made)) == 2
    service.advance(hours=1)
    confirmed = service.confirm_appointment(made.id)
    assert (confirmed.status, confirmed.updated_at) == ("confirmed", NOON + timedelta(hours=1))
    assert client.appointments.list(status="pending").data == []
    assert client.appointments.list(status="confirmed").data == [confirmed]
    assert service.confirm_appointment(made.id) == confirmed
    assert sent(service) == [("appointment.created", made.id)]
    service.advance(days=7)
    assert [each.kind for each in service.messages] == ["reminder", "reminder"]


def test_section_3_the_agent_reschedules_and_cancels(client: FollowUp, service: MockService) -> None:
    made = client.appointments.create(patient=PATIENT, start_at=START)
    moved = service.reschedule_appointment(made.id, start_at=START + timedelta(days=1))
    assert (moved.status, moved.start_at, moved.source) == ("rescheduled", START + timedelta(days=1), "api")
    assert reminded_at(service, made) == [START, START + timedelta(hours=21)]
    cancelled = service.cancel_appointment(made.id, reason="the patient asked for it")
    assert (cancelled.status, cancelled.cancelled_at) == ("cancelled", NOON)
    assert service.reminders == []
    assert service.cancel_appointment(made.id) == cancelled == client.appointments.retrieve(made.id)
    assert client.patients.retrieve(made.patient).stage == "pending_follow_up"
    assert [each for each, _ in sent(service)] == [
        "appointment.created", "appointment.rescheduled", "appointment.cancelled",
    ]  # fmt: skip
    assert {ref for _, ref in sent(service)} == {made.id}


def test_section_3_what_is_cancelled_or_completed_is_neither_confirmed_nor_moved(
    client: FollowUp, service: MockService
) -> None:
    cancelled = service.add_appointment(patient=PATIENT, start_at=START)
    service.cancel_appointment(cancelled.id)
    attended = service.add_appointment(patient=PATIENT, start_at=START)
    service.add_visit(patient=PATIENT, visited_at=NOON, appointment=attended.id)
    for each in (cancelled, attended):
        for act in (service.confirm_appointment, lambda each: service.reschedule_appointment(each, start_at=NOON)):
            with pytest.raises(ServiceError) as caught:
                act(each.id)
            assert caught.value.code == "appointment_not_modifiable"


@pytest.mark.parametrize(("source", "expected"), [(None, "pms"), ("pms", "pms"), ("manual", "manual")])
def test_section_2_a_visit_of_the_practice_system(
    client: FollowUp, service: MockService, source: Any, expected: str
) -> None:
    booked = client.appointments.create(patient=PATIENT, start_at=NOON, external_id="A-1")
    made = service.add_visit(
        patient=PATIENT, visited_at=NOON, doctor={"external_id": "D-1"}, type="check-up", diagnosis="healthy",
        notes="none", external_id="V-1", appointment="A-1", **({} if source is None else {"source": source}),
    )  # fmt: skip
    assert made == client.visits.retrieve(made.id)
    assert (made.source, made.appointment, made.diagnosis) == (expected, booked.id, "healthy")
    assert client.appointments.retrieve(booked.id).status == "completed"
    assert sent(service)[-1] == ("visit.completed", made.id)
    service.advance(hours=4)
    assert [(each.kind, each.about) for each in service.messages] == [("post_visit", made.id)]


def test_section_2_the_agent_books_active_doctors_only(client: FollowUp, service: MockService) -> None:
    (inactive,) = client.doctors.list(active=False)
    with pytest.raises(ServiceError) as caught:
        service.add_appointment(patient=PATIENT, start_at=START, doctor=inactive.id)
    assert (caught.value.code, caught.value.param) == ("doctor_inactive", "doctor")
    assert client.patients.list().data == []
    made = service.add_appointment(patient=PATIENT, start_at=START, doctor=inactive.id, source="manual")
    assert made.doctor == inactive.id


def test_a_patient_who_opted_out_gets_no_message(client: FollowUp, service: MockService) -> None:
    patient = client.patients.create(**PATIENT)
    service.update_patient(patient.id, opted_out=True)
    service.add_appointment(patient=patient.id, start_at=START)
    service.add_visit(patient=patient.id, visited_at=NOON)
    outcomes = {job.outcome for job in service.advance(days=8).jobs if job.kind in ("reminder", "post_visit")}
    assert outcomes == {"not sent: the patient has opted out"}
    assert service.messages == []


BOOKING: Any = {"patient": PATIENT, "start_at": START}


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"source": "api"}, "source must be one of agent, manual, pms"),
        ({"status": "cancelled"}, "status must be one of confirmed, pending"),
        ({"start_at": "tomorrow"}, "start_at must be an RFC 3339 timestamp"),
        ({"start_at": datetime(2026, 10, 1)}, "start_at is a naive datetime"),  # noqa: DTZ001
        ({"external_id": ""}, "external_id must be a non-empty string"),
        ({"type": "x" * 5_001}, "type must be at most 5000 characters long"),
        ({"patient": "apt_1"}, "patient must be an id that begins with pat_"),
        ({"patient": {"phone": "+5491155550000", "full_name": ""}}, "patient.full_name must be a non-empty string"),
        ({"patient": {"phone": "12"}}, "patient.phone must be a valid phone number"),
        ({"patient": {"full_name": "Ana"}}, "patient.phone must be valid: A patient needs a phone"),
    ],
)
def test_an_invalid_argument_is_a_value_error_that_names_it(
    client: FollowUp, service: MockService, change: Any, text: str
) -> None:
    with pytest.raises(ValueError, match=r"must be|is a naive") as caught:
        service.add_appointment(**{**BOOKING, **change})
    assert str(caught.value).startswith(text)
    assert client.appointments.list().data == client.patients.list().data == []


def test_arguments_of_the_wrong_type_are_type_errors(service: MockService) -> None:
    booked = service.add_appointment(**BOOKING)
    none: Any = None
    for act, name in [
        (lambda: service.add_appointment(patient=none, start_at=START), "patient"),
        (lambda: service.add_appointment(patient=PATIENT, start_at=none), "start_at"),
        (lambda: service.reschedule_appointment(booked.id, start_at=none), "start_at"),
        (lambda: service.add_visit(patient=PATIENT, visited_at=none), "visited_at"),
    ]:
        with pytest.raises(TypeError, match=f"^{name} must be "):
            act()


def test_an_error_over_http_names_the_field(api: Api, service: MockService) -> None:
    body = {"patient": {"phone": "+5491155550000"}, "startAt": "2026-10-05T12:00:00Z"}
    made = service.add_appointment(**BOOKING).id
    service.cancel_appointment(made)
    assert problem(api.post(f"/_mock/appointments/{made}/confirm")) == (400, "appointment_not_modifiable", None)
    assert problem(api.post("/_mock/appointments/apt_none/confirm")) == (404, "resource_missing", "id")
    for call, json, param in [
        ("appointments", {"patient": body["patient"]}, "startAt"),
        ("appointments", {**body, "source": "api"}, "source"),
        ("appointments", {**body, "patient": {"phone": "+5491155550000", "fullName": ""}}, "patient.fullName"),
        (f"appointments/{made}/reschedule", {}, "startAt"),
        ("visits", {"patient": body["patient"], "visitedAt": "now"}, "visitedAt"),
    ]:
        status, _, where = problem(api.post(f"/_mock/{call}", json))
        assert (status, where) == (400, param)
