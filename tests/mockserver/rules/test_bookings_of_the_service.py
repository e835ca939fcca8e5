"""Appointments and visits that do not come from the API (specification, sections 2 and 3)."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from support.http import Api, problem

from followup import FollowUp
from followup_mockserver import MockService, ServiceError

PATIENT: Any = {"phone": "+5491155550000", "full_name": "Ana Pérez"}
NOON = datetime(2026, 9, 28, 12, tzinfo=UTC)
START = NOON + timedelta(days=7)


def test_each_method_does_what_its_call_of_the_control_api_does(client: FollowUp, service: MockService) -> None:
    made = service.add_appointment(patient=PATIENT, start_at=START, status="pending", source="manual")
    assert made == client.appointments.retrieve(made.id)
    assert (made.source, made.status, made.start_at) == ("manual", "pending", START)
    assert service.confirm_appointment(made.id).status == "confirmed"
    moved = service.reschedule_appointment(made.id, start_at=START + timedelta(days=1))
    assert (moved.status, moved.start_at) == ("rescheduled", START + timedelta(days=1))
    visit = service.add_visit(patient=PATIENT, visited_at=NOON, appointment=made.id, source="manual")
    assert (visit.source, visit.appointment, visit == client.visits.retrieve(visit.id)) == ("manual", made.id, True)
    assert service.cancel_appointment(made.id, reason="x") == client.appointments.retrieve(made.id)
    with pytest.raises(ServiceError) as caught:
        service.confirm_appointment(made.id)
    assert caught.value.code == "appointment_not_modifiable"


BOOKING: Any = {"patient": PATIENT, "start_at": START}


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"source": "api"}, "source must be one of agent, manual, pms"),
        ({"status": "cancelled"}, "status must be one of confirmed, pending"),
        ({"start_at": "tomorrow"}, "start_at must be an RFC 3339 timestamp"),
        ({"start_at": datetime(2026, 10, 1)}, "start_at is a naive datetime"),  # noqa: DTZ001
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
