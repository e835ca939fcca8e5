"""Possible duplicates: what an integration sent twice under another idempotency key or another id."""

from typing import Any

import pytest

from followup import FollowUp
from followup_mockserver import MockService

from .html import Views
from .test_overview import panels

ANA = {"phone": "+5491155550001", "full_name": "Ana Díaz"}
START = "2026-10-01T12:30:00Z"
DUPLICATES = "calls?show=possible_duplicates"


def visit(id: str, phone: str = ANA["phone"]) -> Any:
    data = {"patient": {"phone": phone}, "visit": {"visitedAt": "2026-09-28T11:00:00Z"}}
    return {"id": id, "type": "visit.completed", "data": data}


class TestRequests:
    def test_the_same_request_under_another_key_is_marked_and_linked(
        self, service: MockService, client: FollowUp, views: Views
    ) -> None:
        first = client.treatments.create(patient=ANA, name="ibuprofen")  # type: ignore[arg-type]
        client.doctors.list()
        client.treatments.create(patient=ANA, name="ibuprofen")  # type: ignore[arg-type]
        assert views.tabs("calls")["Possible duplicates"] == 1
        (row,) = views.rows(DUPLICATES)
        assert (row["no."], row["status"]) == ("3", "200 possible duplicate")
        assert row["error code, attempt"] == "same request as no. 1"
        original = f"calls/{first.last_response.request_id}"
        assert views.link(DUPLICATES, "no. 1") == original
        page = f"calls/{service.requests[0].request_id}"
        assert "Possible duplicate. The same request as no. 1 ." in views.text(page)
        assert f'Call <a href="#/{page}">' in views.html(original)
        (shown,) = panels(views)["Possible duplicates 1"]
        assert shown.startswith("treatments.create req_")
        assert shown.endswith("The same request as no. 1 .")
        assert "0 errors, 1 possible duplicate" in views.text("overview")
        assert "No problems" not in views.text("overview")

    @pytest.mark.parametrize(
        ("calls", "minutes", "marked"),
        [
            ([{"idempotency_key": "a"}, {"idempotency_key": "a"}], 0, 0),  # a replay
            ([{"idempotency_key": "a"}, {"idempotency_key": "b"}], 10, 1),
            ([{"idempotency_key": "a"}, {"idempotency_key": "b"}], 11, 0),
            ([{}, {"dosage": "1 every 8 h"}], 0, 0),
        ],
    )
    def test_body_key_and_time_decide(
        self, service: MockService, client: FollowUp, views: Views, calls: list[Any], minutes: int, marked: int
    ) -> None:
        for arguments in calls:
            client.treatments.create(patient=ANA, name="ibuprofen", **arguments)  # type: ignore[arg-type]
            service.advance(minutes=minutes)
        assert views.tabs("calls")["Possible duplicates"] == marked


class TestAppointments:
    @pytest.mark.parametrize("by_event", [False, True])
    def test_two_of_one_patient_at_one_start(self, client: FollowUp, views: Views, by_event: bool) -> None:
        first = client.appointments.create(patient=ANA, start_at=START, external_id="T-1")  # type: ignore[arg-type]
        client.appointments.create(patient={"phone": "+5491155550002"}, start_at=START)
        if by_event:
            data = {"patient": {"phone": ANA["phone"]}, "appointment": {"externalId": "T-2", "startAt": START}}
            client.events.create({"id": "e1", "type": "appointment.created", "data": data})
        else:
            client.appointments.create(patient=first.patient, start_at=START, external_id="T-2")
        second = next(iter(client.appointments.list()))
        operation = "events.create" if by_event else "appointments.create"
        assert views.column(DUPLICATES, "operation") == [operation]
        assert f'same start as <a href="#/appointments/{first.id}">' in views.html(DUPLICATES)
        assert [bool(row["possible duplicate"]) for row in views.rows("appointments")] == [True, False, True]
        assert "Possible duplicate. The same patient and start as Ana Díaz" in views.text(f"appointments/{first.id}")
        assert f'<a href="#/appointments/{second.id}"' in views.html(f"appointments/{first.id}")
        client.appointments.cancel(first.id)
        assert views.tabs("calls")["Possible duplicates"] == 0
        assert "possible duplicate" not in views.rows("appointments")[0]

    @pytest.mark.parametrize(
        ("types", "marked"),
        [
            (("consultation", "electrocardiogram"), 0),
            (("consultation", None), 1),
            ((None, "consultation"), 1),
            (("consultation", "electrocardiogram", "consultation"), 1),
        ],
    )
    def test_two_types_of_procedure_are_two_appointments(
        self, client: FollowUp, service: MockService, views: Views, types: tuple[Any, ...], marked: int
    ) -> None:
        for number, procedure in enumerate(types):
            booked: Any = {"patient": ANA, "start_at": START, "external_id": f"T-{number}"}
            client.appointments.create(**booked, **({"type": procedure} if procedure else {}))
        assert views.tabs("calls")["Possible duplicates"] == marked
        assert [each.possible_duplicate_of is not None for each in service.requests].count(True) == marked


def test_a_duplicate_with_other_data_is_on_the_call_the_list_the_event_and_the_overview(
    service: MockService, client: FollowUp, views: Views
) -> None:
    (accepted,) = client.events.create(visit("e-1")).results
    client.events.create(visit("e-1"))
    assert (views.tabs("calls")["Changed duplicates"], "Changed duplicates" in views.text("overview")) == (0, False)
    client.events.create(visit("e-1", phone="+5491155550002"))
    lost = "before, with other data. The change was not taken over: the id of an event must contain what changes."
    assert f"Other data. The service had accepted e-1 {lost}" in views.text(f"calls/{service.requests[0].request_id}")
    (row,) = views.rows("calls?show=changed_duplicates")
    assert (row["no."], row["status"]) == ("3", "200 other data")
    (shown,) = panels(views)["Changed duplicates 1"]
    assert shown.endswith(f"The service had accepted e-1 {lost}")
    assert "event resent" in views.text(f"events/{accepted.event}")
    assert "the change was not taken over" in views.text(f"events/{accepted.event}")
