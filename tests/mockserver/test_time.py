"""What the service does later: reminders, messages and stages, and the clock that is moved (sections 1 to 3)."""

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from support.waiting import wait_for

from followup import FollowUp
from followup_mockserver import MockServer, MockService, ServiceError

START = datetime(2026, 10, 1, 12, tzinfo=UTC)


def book(client: FollowUp, **fields: Any) -> str:
    patient = {"phone": "+5491155550000", "full_name": "Ana Pérez"}
    return client.appointments.create(**{"patient": patient, "start_at": START, **fields}).id


def waiting(service: MockService) -> list[timedelta]:
    return [START - each.send_at for each in service.reminders]


class TestReminders:
    def test_section_1_scheduled_with_the_appointment_and_sent_in_time(
        self, client: FollowUp, service: MockService
    ) -> None:
        appointment = book(client)
        assert waiting(service) == [timedelta(hours=24), timedelta(hours=3)]
        service.advance(to=START - timedelta(hours=24, seconds=1))
        assert service.messages == []
        service.advance(seconds=1)
        (message,) = service.messages
        assert (message.kind, message.about, message.phone) == ("reminder", appointment, "+5491155550000")
        assert message.sent_at == START - timedelta(hours=24)
        assert message.text == "Hola Ana. Le recordamos su turno del 01/10/2026 a las 09:00 en Clínica de prueba."
        service.advance(to=START)
        assert [each.kind for each in service.messages] == ["reminder", "reminder"]
        assert service.reminders == []

    def test_the_hours_are_the_organizations(self, client: FollowUp, service: MockService) -> None:
        service.update_organization(
            reminder_hours=[48, 2, 0.5], language="en", time_zone="Asia/Tokyo", name="Tokyo Clinic"
        )
        book(client)
        assert waiting(service) == [timedelta(hours=48), timedelta(hours=2), timedelta(minutes=30)]
        service.advance(to=START)
        assert "01 October 2026 at 21:00 at Tokyo Clinic" in service.messages[0].text


class TestPostVisit:
    def test_section_1_some_hours_after_the_visit(self, client: FollowUp, service: MockService) -> None:
        visit = client.visits.create(patient={"phone": "+5491155550000"}, visited_at=service.clock.now)
        service.advance(hours=4)
        (message,) = service.messages
        assert (message.kind, message.about, message.sent_at) == ("post_visit", visit.id, service.clock.now)

    def test_at_once_where_that_is_past(self, client: FollowUp, service: MockService) -> None:
        client.visits.create(patient={"phone": "+5491155550000"}, visited_at="2026-09-01T12:00:00Z")
        service.advance()
        assert [each.kind for each in service.messages] == ["post_visit"]


class TestClock:
    def test_it_never_goes_back(self, service: MockService) -> None:
        now = service.clock.now
        with pytest.raises(ValueError, match="seconds must be 0 or more: the clock never goes back"):
            service.advance(seconds=-1)
        with pytest.raises(ValueError, match="hours must be 0 or more: the clock never goes back"):
            service.advance(days=1, hours=-1)
        with pytest.raises(
            ValueError,
            match=r"to must be the current time, 2026-09-28T12:00:00\.000Z, or later: the clock never goes back",
        ):
            service.advance(to=now - timedelta(milliseconds=1))
        assert service.advance(to=now).now == now

    def test_the_time_that_it_shows_is_not_past(self) -> None:
        """The wire shows milliseconds; a clock that stands between two of them can be advanced to what it shows."""
        service = MockService(start_time=datetime(2026, 9, 28, 12, 0, 0, 123_456, tzinfo=UTC))
        assert service.advance(to=service.clock.now).now == service.clock.now

    def test_a_running_clock_can_be_moved_forward_and_runs_on(self) -> None:
        service = MockService()
        assert not service.clock.frozen
        before = datetime.now(UTC)
        moved = service.advance(days=1)
        assert timedelta(days=1) <= moved.now - before + timedelta(milliseconds=1) < timedelta(days=1, minutes=1)
        assert service.clock.now >= moved.now

    def test_jobs_run_in_time_order_each_at_its_own_time(self, client: FollowUp, service: MockService) -> None:
        book(client)
        client.visits.create(patient={"phone": "+5491155550000"}, visited_at=START - timedelta(hours=20))
        advanced = service.advance(days=10)
        assert [each.kind for each in advanced.jobs] == ["reminder", "post_visit", "reminder", "stage"]
        assert [each.sent_at for each in service.messages] == [each.at for each in advanced.jobs[:3]]
        assert [each.at for each in advanced.jobs] == sorted(each.at for each in advanced.jobs)

    @pytest.mark.parametrize(
        "options",
        [
            {"seconds": float("inf")},
            {"days": 10**9},
            {"to": "x"},
            {"to": "2026-10-01"},
            {"to": "2026-10-01 12:00:00+00:00"},  # ISO 8601 as Python takes it, but not RFC 3339
            {"to": "9999-12-31T23:59:59Z"},
        ],
    )
    def test_an_invalid_duration_or_time_is_rejected(self, service: MockService, options: Any) -> None:
        with pytest.raises(ServiceError):
            service.advance(**options)

    def test_reset_begins_again(self, client: FollowUp, service: MockService) -> None:
        book(client)
        service.advance(days=1)
        service.add_fault(operation="*", kind="status")
        service.reset()
        assert service.clock.now == datetime(2026, 9, 28, 12, tzinfo=UTC)
        assert (service.faults, service.messages, service.reminders, service.requests) == ([], [], [], [])
        assert [*client.patients.list()] == []
        assert book(client).startswith("apt_")


class TestServer:
    def test_a_running_clock_runs_the_jobs_that_become_due(self) -> None:
        with MockServer() as server, server.client() as client:
            server.update_organization(post_visit_hours=0.2 / 3600)
            client.visits.create(patient={"phone": "+5491155550000"}, visited_at=datetime.now(UTC))
            assert [each.kind for each in wait_for(lambda: server.messages)] == ["post_visit"]

    def test_wait_ends_when_something_comes(self) -> None:
        with MockServer() as server, server.client() as client:
            threading.Timer(0.1, lambda: client.account.retrieve()).start()
            url = f"{server.url}/_mock/requests?operation=account.retrieve"
            for more in ("&wait=10", "&wait=0.01&seen=1"):
                response = httpx.get(f"{url}{more}", timeout=20, trust_env=False)
                assert [each["operation"] for each in response.json()["data"]] == ["account.retrieve"]


TOMORROW = datetime(2026, 9, 29, 12, tzinfo=UTC)
"""A day after the service's clock was started."""

JUST = timedelta(milliseconds=1)


def test_section_3_an_appointment_whose_time_passes_is_not_ahead_any_more(
    client: FollowUp, service: MockService
) -> None:
    patient = client.patients.create(phone="+5491155550000")
    client.webhook_endpoints.create(url="https://clinic.example", enabled_events=["*"])
    client.appointments.create(patient=patient.id, start_at=TOMORROW)
    service.advance(to=TOMORROW)
    assert client.patients.retrieve(patient.id).stage == "scheduled"
    before = len(client.webhook_deliveries.list().data)
    (job,) = service.advance(seconds=1).jobs
    assert (job.at, job.kind, job.about) == (TOMORROW + JUST, "stage", client.appointments.list().data[0].id)
    passed = client.patients.retrieve(patient.id)
    assert (passed.stage, passed.updated_at) == ("pending_follow_up", TOMORROW + JUST)
    assert len(client.webhook_deliveries.list().data) == before, "the stage is the service's own mark"
    assert client.appointments.list().data[0].status == "confirmed"


def test_section_3_what_is_cancelled_or_attended_does_not_come_up_later(client: FollowUp, service: MockService) -> None:
    patient = client.patients.create(phone="+5491155550000")
    cancelled = client.appointments.create(patient=patient.id, start_at=TOMORROW)
    attended = client.appointments.create(patient=patient.id, start_at=TOMORROW)
    client.appointments.cancel(cancelled.id)
    client.visits.create(patient=patient.id, visited_at=service.clock.now, appointment=attended.id)
    assert [each.kind for each in service.jobs] == ["post_visit"]


def test_a_stage_that_the_team_set_stays_where_no_appointment_passes(client: FollowUp, service: MockService) -> None:
    patient = client.patients.create(phone="+5491155550000")
    service.update_patient(patient.id, stage="lost")
    service.advance(days=10)
    assert client.patients.retrieve(patient.id).stage == "lost"
