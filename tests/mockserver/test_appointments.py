"""Appointments, visits, treatments and doctors (specification, sections 3 and 4)."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from support.http import Api, problem

from followup import FollowUp
from followup_mockserver import MockService

START = datetime(2026, 10, 1, 12, tzinfo=UTC)
WHEN = "2026-10-01T12:00:00Z"
ONE = {"phone": "+5491155550000"}


@pytest.fixture
def patient(client: FollowUp) -> str:
    return client.patients.create(phone="+5491155550000", full_name="Ana").id


class TestAppointments:
    def test_section_3_a_new_appointment(self, client: FollowUp, patient: str) -> None:
        made = client.appointments.create(
            patient=patient, start_at=START, doctor={"external_id": "D-1"}, type="check-up", external_id="A-1"
        )
        (doctor,) = client.doctors.list(external_id="D-1")
        assert (made.status, made.source, made.doctor) == ("confirmed", "api", doctor.id)
        assert (made.patient, made.start_at, made.type, made.external_id) == (patient, START, "check-up", "A-1")
        assert made.cancelled_at is None
        assert client.appointments.retrieve(made.id) == made

    def test_section_4_a_known_external_id_returns_its_appointment(self, client: FollowUp, patient: str) -> None:
        first = client.appointments.create(patient=patient, start_at=START, external_id="A-1")
        again = client.appointments.create(
            patient={"phone": "+5491155550009"}, start_at=START + timedelta(1), external_id="A-1"
        )
        assert again == first
        assert len([*client.appointments.list()]) == len([*client.patients.list()]) == 1

    def test_section_3_cancel_and_cancel_again(self, client: FollowUp, service: MockService, patient: str) -> None:
        made = client.appointments.create(patient=patient, start_at=START)
        service.advance(hours=1)
        cancelled = client.appointments.cancel(made.id, reason="travelling")
        assert cancelled.status == "cancelled"
        assert cancelled.cancelled_at == service.clock.now
        service.advance(hours=1)
        assert client.appointments.cancel(made.id) == cancelled

    def test_section_3_a_new_start_reschedules(self, client: FollowUp, patient: str) -> None:
        made = client.appointments.create(patient=patient, start_at=START)
        assert client.appointments.update(made.id, type="control").status == "confirmed"
        assert client.appointments.update(made.id, start_at=START).status == "confirmed"
        moved = client.appointments.update(made.id, start_at=START + timedelta(1))
        assert (moved.status, moved.start_at) == ("rescheduled", START + timedelta(1))

    @pytest.mark.parametrize("how", ["cancelled", "completed"])
    def test_section_3_what_is_over_cannot_be_changed(self, client: FollowUp, api: Api, patient: str, how: str) -> None:
        made = client.appointments.create(patient=patient, start_at=START)
        if how == "cancelled":
            client.appointments.cancel(made.id)
        else:
            client.visits.create(patient=patient, visited_at=START, appointment=made.id)
        before = client.appointments.retrieve(made.id)
        assert before.status == how
        rejected = api.patch(f"/v1/appointments/{made.id}", {"type": "x"})
        assert problem(rejected) == (400, "appointment_not_modifiable", None)
        assert client.appointments.retrieve(made.id) == before

    def test_section_4_list_filters(self, client: FollowUp, patient: str) -> None:
        other = client.patients.create(phone="+5491155550001").id
        made = [
            client.appointments.create(patient=each, start_at=START + timedelta(days=day), external_id=f"A-{day}")
            for day, each in enumerate([patient, patient, other, other])
        ]
        client.appointments.cancel(made[1].id)

        def found(**filters: Any) -> list[int]:
            return [[each.id for each in made].index(each.id) for each in client.appointments.list(limit=1, **filters)]

        assert found() == [3, 2, 1, 0]
        assert found(patient=patient) == [1, 0]
        assert found(status="cancelled") == [1]
        assert found(external_id="A-2") == [2]
        assert found(start_at_gte=START + timedelta(1)) == [3, 2, 1]
        assert found(start_at_lt=START + timedelta(1)) == [0]
        assert found(start_at_gte=START + timedelta(1), start_at_lt=START + timedelta(3), patient=other) == [2]

    @pytest.mark.parametrize(
        ("body", "code", "param"),
        [
            ({"patient": ONE, "startAt": "2026-10-01"}, "parameter_invalid", "startAt"),
            ({"patient": {"phone": "x"}, "startAt": WHEN}, "parameter_invalid", "patient.phone"),
            ({"patient": {"email": "x"}, "startAt": WHEN}, "parameter_invalid", "patient.email"),
            ({"patient": {"fone": "x"}, "startAt": WHEN}, "parameter_unknown", "patient.fone"),
            ({"patient": {"fullName": "x"}, "startAt": WHEN}, "parameter_missing", "patient.phone"),
            ({"patient": {"externalId": "x"}, "startAt": WHEN}, "resource_missing", "patient.externalId"),
            ({"patient": "pat_none", "startAt": WHEN}, "resource_missing", "patient"),
            ({"patient": "apt_x", "startAt": WHEN}, "parameter_invalid", "patient"),
            ({"patient": 5, "startAt": WHEN}, "parameter_invalid", "patient"),
            (
                {"patient": {"phone": "+5491155550009"}, "startAt": WHEN, "doctor": "doc_none"},
                "resource_missing",
                "doctor",
            ),
        ],
    )  # fmt: skip
    def test_a_rejected_request_names_the_field_and_leaves_nothing(
        self, api: Api, body: Any, code: str, param: str
    ) -> None:
        assert problem(api.post("/v1/appointments", body)) == (400, code, param)
        assert api.get("/v1/appointments").json()["data"] == []
        assert api.get("/v1/patients").json()["data"] == []


class TestVisits:
    def test_section_3_a_visit_completes_its_appointment(self, client: FollowUp, patient: str) -> None:
        by_id = client.appointments.create(patient=patient, start_at=START)
        by_external_id = client.appointments.create(patient=patient, start_at=START, external_id="A-1")
        first = client.visits.create(patient=patient, visited_at=START, appointment=by_id.id, notes="well")
        second = client.visits.create(patient=patient, visited_at=START, appointment="A-1")
        assert (first.appointment, second.appointment) == (by_id.id, by_external_id.id)
        assert (first.source, first.notes) == ("manual", "well")
        assert {each.status for each in client.appointments.list()} == {"completed"}

    def test_an_unknown_appointment_is_rejected(self, api: Api) -> None:
        body = {"patient": {"phone": "+5491155550000"}, "visitedAt": "2026-09-28T11:00:00Z", "appointment": "none"}
        assert problem(api.post("/v1/visits", body)) == (400, "resource_missing", "appointment")
        assert api.get("/v1/patients").json()["data"] == []

    def test_section_4_a_known_external_id_returns_its_visit(self, client: FollowUp, patient: str) -> None:
        first = client.visits.create(patient=patient, visited_at=START, external_id="V-1")
        assert client.visits.create(patient=patient, visited_at=START + timedelta(1), external_id="V-1") == first
        assert [each.id for each in client.visits.list(external_id="V-1", patient=patient)] == [first.id]


class TestTreatments:
    def test_section_4_kind_is_medication_when_left_out(self, client: FollowUp, patient: str) -> None:
        made = client.treatments.create(patient=patient, name="ibuprofen", dosage="400 mg", start_date=START)
        assert (made.kind, made.active, made.dosage, made.start_date) == ("medication", True, "400 mg", START)
        ended = client.treatments.create(
            patient=patient, name="rest", kind="lifestyle", end_date="2026-09-01T00:00:00Z"
        )
        assert (ended.kind, ended.active) == ("lifestyle", False)
        assert [each.id for each in client.treatments.list(active=True)] == [made.id]
        assert [each.id for each in client.treatments.list(active=False, patient=patient)] == [ended.id]
        assert client.treatments.retrieve(made.id) == made

    def test_a_treatment_is_active_until_its_end(self, client: FollowUp, service: MockService, patient: str) -> None:
        made = client.treatments.create(patient=patient, name="ibuprofen", end_date=START)
        service.advance(to=START - timedelta(milliseconds=1))
        assert client.treatments.retrieve(made.id).active is True
        (job,) = service.advance(to=START).jobs
        assert (job.kind, job.about) == ("treatment_end", made.id)
        ended = client.treatments.retrieve(made.id)
        assert (ended.active, ended.updated_at) == (False, START)
        assert client.treatments.list(active=True).data == []

    def test_section_1_no_reminders_follow_from_a_treatment(
        self, client: FollowUp, service: MockService, patient: str
    ) -> None:
        client.treatments.create(patient=patient, name="ibuprofen", frequency="every 8 h")
        service.advance(days=10)
        assert service.messages == []


class TestDoctors:
    def test_section_4_the_roster_is_read_only_and_filtered(
        self, client: FollowUp, service: MockService, api: Api
    ) -> None:
        everybody = [*client.doctors.list()]
        inactive = [*client.doctors.list(active=False)]
        assert len(everybody) == 4
        assert [each.active for each in inactive] == [False]
        assert client.doctors.retrieve(inactive[0].id) == inactive[0]
        assert problem(api.post("/v1/doctors", {"fullName": "x"}))[0] == 405


class TestWhatBelongsTogether:
    def test_a_visit_may_not_name_the_appointment_of_another_patient(self, api: Api, client: FollowUp) -> None:
        client.appointments.create(patient=client.patients.create(**ONE).id, start_at=START, external_id="A-1")
        for patient in ({"phone": "+5491155550009"}, {"phone": "+5491155550009", "dni": "1"}):
            body = {"patient": patient, "visitedAt": "2026-09-28T11:00:00Z", "appointment": "A-1"}
            assert problem(api.post("/v1/visits", body)) == (400, "parameter_invalid", "appointment")
        other = client.patients.create(phone="+5491155550008").id
        body = {"patient": other, "visitedAt": "2026-09-28T11:00:00Z", "appointment": "A-1"}
        assert problem(api.post("/v1/visits", body)) == (400, "parameter_invalid", "appointment")
        assert [*client.visits.list()] == []
        assert len([*client.patients.list()]) == 2
        assert [each.status for each in client.appointments.list()] == ["confirmed"]

    def test_an_event_about_it_is_invalid(self, api: Api, client: FollowUp) -> None:
        client.appointments.create(patient=client.patients.create(**ONE).id, start_at=START, external_id="A-1")
        data = {
            "patient": {"phone": "+5491155550009"},
            "visit": {"visitedAt": "2026-09-28T11:00:00Z", "appointment": "A-1"},
        }
        response = api.post("/v1/events", {"id": "e-1", "type": "visit.completed", "data": data})
        (result,) = response.json()["results"]
        assert (response.status_code, result["status"]) == (400, "invalid")
        assert result["error"].startswith("data.visit.appointment: ")
        assert (len([*client.visits.list()]), len([*client.patients.list()])) == (0, 1)

    def test_a_change_to_a_doctor_whom_nobody_knows_leaves_the_doctor(
        self, client: FollowUp, api: Api, patient: str
    ) -> None:
        made = client.appointments.create(patient=patient, start_at=START, doctor={"external_id": "D-1"})
        assert made.doctor is not None
        for unknown in ({"full_name": "nobody"}, {"external_id": "D-99"}, {"specialty": "cardiology"}, {}):
            changed = client.appointments.update(made.id, doctor=unknown, type="x")  # type: ignore[arg-type]
            assert (changed.doctor, changed.type) == (made.doctor, "x")
        rejected = api.patch(f"/v1/appointments/{made.id}", {"doctor": "doc_none"})
        assert problem(rejected) == (400, "resource_missing", "doctor")
        rejected = api.patch(f"/v1/appointments/{made.id}", {"doctor": {"fullName": ""}})
        assert problem(rejected) == (400, "parameter_invalid", "doctor.fullName")
        (other,) = client.doctors.list(external_id="D-2")
        assert client.appointments.update(made.id, doctor={"external_id": "D-2"}).doctor == other.id
        assert client.appointments.update(made.id, doctor=None).doctor is None


@pytest.mark.parametrize(
    ("bound", "at_or_after"),
    [
        ("2026-10-05T12:00:00.000Z", True),
        ("2026-10-05T12:00:00.000000Z", True),
        ("2026-10-05T12:00:00.000500Z", False),
        ("2026-10-05T09:00:00.0000000001-03:00", False),
        ("2026-10-05T11:59:59.999001Z", True),
        ("2026-10-05T11:59:60.0005Z", None),
        ("9998-12-31T23:59:59.999999Z", False),
    ],
)
def test_a_filter_compares_at_the_precision_of_the_request(api: Api, bound: str, at_or_after: bool | None) -> None:
    body = {"patient": {"phone": "+5491155550000"}, "startAt": "2026-10-05T12:00:00Z"}
    assert api.post("/v1/appointments", body).status_code == 200
    after, before = (api.get("/v1/appointments", params={name: bound}) for name in ("startAtGte", "startAtLt"))
    if at_or_after is None:
        assert problem(after) == (400, "parameter_invalid", "startAtGte")
    else:
        assert (len(after.json()["data"]), len(before.json()["data"])) == (at_or_after, not at_or_after)
