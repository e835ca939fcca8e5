"""Inbound events (specification, sections 4 and 6.1)."""

from typing import Any

import pytest
from support.http import Api, problem

from followup import EventBatchError, FollowUp, IntakeRequest
from followup_mockserver import MockService

PATIENT = {"phone": "+5491155550000", "fullName": "Ana"}
BOOKING = {"startAt": "2026-10-05T12:00:00Z", "externalId": "A-1"}
VISIT = {"patient": PATIENT, "visit": {"visitedAt": "2026-09-28T11:00:00Z", "externalId": "V-1"}}


def event(type: str = "visit.completed", data: Any = None, id: str = "e-1", **fields: Any) -> Any:
    return {"id": id, "type": type, "data": VISIT if data is None else data, **fields}


@pytest.mark.parametrize("form", ["one", "array", "object"])
def test_section_4_the_three_forms_of_a_batch(api: Api, form: str) -> None:
    one = event()
    body = {"one": one, "array": [one], "object": {"events": [one]}}[form]
    response = api.post("/v1/events", body).json()
    assert response["object"] == "event_batch"
    (result,) = response["results"]
    assert (result["id"], result["accepted"], result["status"], result["error"]) == ("e-1", True, "processed", None)
    assert result["result"]["object"] == "visit"
    stored = api.get(f"/v1/events/{result['event']}").json()
    assert (stored["source"], stored["sourceRef"], stored["status"]) == ("api", "e-1", "processed")
    assert stored["data"] == one["data"]
    assert stored["occurredAt"] == stored["receivedAt"] == stored["processedAt"] == "2026-09-28T12:00:00.000Z"


def test_section_6_1_each_type_does_what_its_operation_does(client: FollowUp, service: MockService) -> None:
    client.webhook_endpoints.create(url="https://clinic.example", enabled_events=["*"])
    batch = client.events.create(
        [
            event("patient.upserted", {"patient": {**PATIENT, "externalId": "P-1"}}, "1"),
            event("appointment.created", {"patient": PATIENT, "appointment": BOOKING}, "2"),
            event("appointment.rescheduled", {"appointment": {**BOOKING, "startAt": "2026-10-06T12:00:00Z"}}, "3"),
            event("appointment.cancelled", {"appointment": {"externalId": "A-1"}}, "4"),
            event(id="5"),
            event("treatment.prescribed", {"patient": PATIENT, "treatment": {"name": "ibuprofen"}}, "6"),
            event("intake.requested", {"patient": PATIENT, "requestedService": "nursing"}, "7"),
            event("order.issued", {"patient": PATIENT, "order": {"kind": "lab"}}, "8"),
        ]
    )  # fmt: skip
    assert [each.status for each in batch.results] == ["processed"] * 7 + ["unhandled"]
    assert [each.result and each.result.object for each in batch.results] == [
        "patient", "appointment", "appointment", "appointment", "visit", "treatment", "intake_request", None,
    ]  # fmt: skip
    (patient,) = client.patients.list()
    (appointment,) = client.appointments.list()
    (visit,) = client.visits.list()
    assert (patient.external_id, appointment.status, visit.external_id) == ("P-1", "cancelled", "V-1")
    assert (appointment.source, visit.source) == ("api", "manual")
    assert {each.source for each in client.events.list()} == {"api"}
    assert next(iter(client.treatments.list())).name == "ibuprofen"
    intake: IntakeRequest = next(iter(client.intake_requests.list()))
    assert intake.patient == patient.id
    assert service.reminders == []
    sent = [each.event_type for each in client.webhook_deliveries.list()][::-1]
    assert sent == [
        "patient.upserted", "appointment.created", "appointment.rescheduled", "appointment.cancelled",
        "visit.completed", "treatment.prescribed", "intake.requested", "intake.created",
    ]  # fmt: skip


def test_section_4_an_accepted_id_repeats_nothing(client: FollowUp) -> None:
    first = client.events.create(event()).results[0]
    again = client.events.create([event(), event(id="e-2"), event(id="e-2")]).results
    assert [each.status for each in again] == ["duplicate", "processed", "duplicate"]
    assert all(each.accepted for each in again)
    assert (again[0].event, again[0].result) == (first.event, first.result)
    assert len([*client.visits.list()]) == 1
    only_duplicates = client.events.create(event())
    assert (only_duplicates.results[0].accepted, only_duplicates.results[0].status) == (True, "duplicate")


def test_section_3_a_failed_event_is_sent_again_under_its_id(client: FollowUp) -> None:
    cancel = event("appointment.cancelled", {"appointment": {"externalId": "A-1"}})
    with pytest.raises(EventBatchError) as caught:
        client.events.create(cancel)
    assert caught.value.status_code == 500
    (failed,) = caught.value.results
    assert (failed.accepted, failed.status) == (False, "failed")
    (stored,) = client.events.list(status="failed")
    assert (stored.id, stored.processed_at) == (failed.event, None)
    assert stored.error
    client.appointments.create(patient={"phone": "1155550000"}, start_at="2026-10-05T12:00:00Z", external_id="A-1")
    (done,) = client.events.create(cancel).results
    assert (done.status, done.event) == ("processed", failed.event)
    stored = client.events.retrieve(failed.event or "")
    assert (stored.status, stored.error) == ("processed", None)


WITHOUT_A_NUMBER = event("patient.upserted", {"patient": {"phone": "12"}})


def test_an_invalid_event_takes_no_id_from_the_events_after_it(client: FollowUp) -> None:
    (bad, good) = client.events.create([WITHOUT_A_NUMBER, event(id="e-2")]).results
    with MockService(start_time="2026-09-28T12:00:00Z", rate_limit=0, seed=1).client() as other:
        (alone,) = other.events.create(event(id="e-2")).results
    assert (bad.status, bad.event, good.event) == ("invalid", None, alone.event)


def test_a_failed_event_that_is_invalid_when_it_is_sent_again_keeps_its_id(client: FollowUp) -> None:
    cancel = event("appointment.cancelled", {"appointment": {"externalId": "A-1"}})
    with pytest.raises(EventBatchError):
        client.events.create(cancel)
    (failed,) = client.events.list()
    (bad, good) = client.events.create([WITHOUT_A_NUMBER, event(id="e-2")]).results
    assert (bad.status, good.status) == ("invalid", "processed")
    assert [each.id for each in client.events.list()] == [good.event, failed.id]


@pytest.mark.parametrize(
    ("bad", "where"),
    [
        ({"id": "", "type": "visit.completed", "data": VISIT}, "id"),
        ({"id": 5, "type": "visit.completed", "data": VISIT}, "id"),
        ({"id": "1", "type": "visit.done", "data": VISIT}, "type"),
        (event(schemaVersion=2), "schemaVersion"),
        (event(unknown=1), "unknown"),
        (event(data={"patient": {"phone": "x"}, "visit": VISIT["visit"]}), "data.patient.phone"),
        (event("intake.requested", {}), "data.patient"),
        ("x", ""),
        (None, ""),
    ],
)
def test_section_4_an_invalid_event_names_its_field(api: Api, bad: Any, where: str) -> None:
    response = api.post("/v1/events", [bad])
    assert problem(response) == (400, "events_invalid", None)
    body = response.json()
    assert body["object"] == "event_batch"
    (result,) = body["results"]
    assert (result["accepted"], result["status"], result["event"]) == (False, "invalid", None)
    place, _, reason = result["error"].rpartition(": ")
    assert place == where
    assert reason
    for path in ("/v1/events", "/v1/patients", "/v1/visits"):
        assert api.get(path).json()["data"] == []


def test_some_invalid_and_some_failed_is_a_500(api: Api) -> None:
    failing = event("appointment.cancelled", {"appointment": {"externalId": "no"}})
    assert api.post("/v1/events", [failing, {}]).status_code == 500


def test_unknown_keys_in_data_are_kept(client: FollowUp) -> None:
    data = {**VISIT, "more": {"x": 1}, "visit": {**VISIT["visit"], "room": "5"}}
    (result,) = client.events.create(event(data=data)).results
    assert result.status == "processed"
    assert client.events.retrieve(result.event or "").data == data


def test_an_upsert_changes_what_is_sent_and_keeps_the_phone(client: FollowUp) -> None:
    patient = client.patients.create(phone="+5491155550000", full_name="Ana", dni="1")
    client.events.create(
        event("patient.upserted", {"patient": {"dni": "1", "phone": "+5491155550009", "fullName": "Eva"}})
    )
    changed = client.patients.retrieve(patient.id)
    assert (changed.full_name, changed.phone) == ("Eva", "+5491155550000")


def test_section_4_list_filters(client: FollowUp, api: Api) -> None:
    client.events.create([event(id="1"), event("order.issued", {}, "2")])
    assert [each.source_ref for each in client.events.list(type="order.issued")] == ["2"]
    assert [each.source_ref for each in client.events.list(status="processed", source="api")] == ["1"]
    assert [*client.events.list(source="email")] == []
    assert problem(api.get("/v1/events?status=lost")) == (400, "parameter_invalid", "status")


def outcome_of(api: Api, type: str, data: Any, id: str = "e-1") -> tuple[str, str | None]:
    """Return the status of an event, and the path in its error."""
    (result,) = api.post("/v1/events", event(type, data, id)).json()["results"]
    return result["status"], result["error"] and result["error"].partition(":")[0]


@pytest.mark.parametrize("patient", ["id", "text", ["+5491155550000"], 5])
@pytest.mark.parametrize(
    ("type", "rest"),
    [
        ("patient.upserted", {}),
        ("appointment.created", {"appointment": BOOKING}),
        ("visit.completed", {"visit": VISIT["visit"]}),
        ("treatment.prescribed", {"treatment": {"name": "rest"}}),
        ("intake.requested", {}),
        ("order.issued", {"order": {}}),
    ],
)
def test_section_6_1_the_patient_of_an_event_is_an_object(
    api: Api, client: FollowUp, type: str, rest: Any, patient: Any
) -> None:
    known = client.patients.create(phone="+5491155550000")
    data = {"patient": known.id if patient == "id" else patient, **rest}
    assert outcome_of(api, type, data) == ("invalid", "data.patient")
    assert client.events.list().data == []


def closed(client: FollowUp, status: str) -> str:
    booked = client.appointments.create(
        patient={"phone": "+5491155550000"}, start_at=BOOKING["startAt"], external_id="A-1"
    )
    if status == "cancelled":
        client.appointments.cancel(booked.id)
    else:
        client.visits.create(patient=booked.patient, visited_at=BOOKING["startAt"], appointment=booked.id)
    return booked.id


@pytest.mark.parametrize("status", ["cancelled", "completed"])
@pytest.mark.parametrize("type", ["appointment.rescheduled", "appointment.cancelled"])
def test_an_event_that_changes_a_closed_appointment_is_invalid(
    api: Api, client: FollowUp, status: str, type: str
) -> None:
    booked = closed(client, status)
    data = {"appointment": {**BOOKING, "startAt": "2026-10-06T12:00:00Z"}}
    response = api.post("/v1/events", event(type, data))
    assert problem_of_batch(response) == (400, "events_invalid", ["invalid"])
    assert client.events.list().data == []
    assert client.appointments.retrieve(booked).status == status


def problem_of_batch(response: Any) -> tuple[int, str, list[str]]:
    body = response.json()
    return response.status_code, body["error"]["code"], [each["status"] for each in body["results"]]


def test_an_event_fails_only_as_long_as_it_may_succeed_later(api: Api, client: FollowUp) -> None:
    data = {"appointment": {"externalId": "A-1"}}
    assert outcome_of(api, "appointment.cancelled", data) == ("failed", "data.appointment.externalId")
    closed(client, "cancelled")
    assert outcome_of(api, "appointment.cancelled", data)[0] == "invalid"
    booking = {"patient": PATIENT, "appointment": {**BOOKING, "externalId": "A-2", "doctor": "doc_nobody"}}
    assert outcome_of(api, "appointment.created", booking, "e-2") == ("invalid", "data.appointment.doctor")
    visit = {"patient": PATIENT, "visit": {**VISIT["visit"], "doctor": "doc_nobody"}}
    assert outcome_of(api, "visit.completed", visit, "e-3") == ("invalid", "data.visit.doctor")
    visit = {"patient": PATIENT, "visit": {**VISIT["visit"], "appointment": "A-9"}}
    assert outcome_of(api, "visit.completed", visit, "e-4") == ("failed", "data.visit.appointment")


@pytest.mark.parametrize("name", ["patient", "order"])
@pytest.mark.parametrize("value", ["x", 5, [], True])
def test_the_patient_and_the_order_of_an_order_are_objects_where_they_are_present(
    api: Api, name: str, value: Any
) -> None:
    assert outcome_of(api, "order.issued", {name: value}) == ("invalid", f"data.{name}")
    for data in ({}, {name: None}, {name: {}}, {"kind": "lab", name: {"full_name": 5}}):
        assert outcome_of(api, "order.issued", data, f"e-{data}") == ("unhandled", None)


MISPLACED = {"patient": PATIENT, "doctor": {"externalId": "D-1"}, "appointment": BOOKING}


@pytest.mark.parametrize(
    ("type", "data", "path", "place"),
    [
        ("appointment.created", MISPLACED, "data.doctor", "appointment.doctor"),
        ("treatment.prescribed", {"patient": {**PATIENT, "name": "x"}, "treatment": {"name": "rest"}}, None, None),
        ("visit.completed", {**VISIT, "notes": "x"}, "data.notes", "visit.notes"),
        ("intake.requested", {"fullName": "Ana", "contacts": [{"name": "Eva"}]}, "data.fullName", "patient.fullName"),
        ("intake.requested", {"contacts": [{"name": "Eva", "plan": "x"}]}, "data.contacts[0].plan", "coverage.plan"),
        ("intake.requested", {"name": "Ana", "contacts": [{"name": "Eva"}]}, None, None),
        ("appointment.created", {"patient": PATIENT, "appointment": {**BOOKING, "paint": "red"}}, None, None),
    ],
)
def test_a_key_in_the_wrong_place_of_the_data_is_named_with_its_own_place(
    api: Api, type: str, data: Any, path: str | None, place: str | None
) -> None:
    (result,) = api.post("/v1/events", event(type, data)).json()["results"]
    if path is None:
        assert result["status"] == "processed"
    else:
        expected = f"{path}: There is no such field; did you mean {place}?"
        assert (result["status"], result["error"]) == ("invalid", expected)


def test_keys_that_the_service_does_not_read_are_in_the_journal() -> None:
    with MockService(refuse_unknown_fields=False) as service, service.client(max_retries=0) as client:
        events: Any = [
            event("appointment.created", MISPLACED, "1"),
            event("order.issued", {"order": {"paint": "red"}, "patient": {"paint": "red"}}, "2"),
            event("patient.upserted", {"patient": {**PATIENT, "full_name": "Eva", "shoe": {"size": 5}}}, "3"),
            event("intake.requested", {"contacts": [{"name": "Eva"}, {"name": "Ana", "age": 5}], "gone": None}, "4"),
            event("appointment.cancelled", {"appointment": {"externalId": "A-9", "paint": "red"}}, "5"),
        ]
        client.events.create(events)
        paths = ["events[0].data.doctor", "events[2].data.patient.full_name", "events[2].data.patient.shoe"]
        assert service.requests[0].ignored_keys == (*paths, "events[3].data.contacts[1].age")
        client.events.create(events)
        assert service.requests[0].ignored_keys == (), "duplicates are not read"
        client.events.create({**events[0], "id": "6"})
        assert service.requests[0].ignored_keys == ("data.doctor",)
        service.receive_event(event("appointment.created", MISPLACED, "7"), source="pms")
        client.patients.list()
        assert service.requests[0].ignored_keys == ()
        entry = client.events.list(type="appointment.created").data[0]
        assert entry.data["doctor"] == {"externalId": "D-1"}, "it is stored all the same"


def test_the_control_api_has_ignored_keys_where_there_are_any(api: Api) -> None:
    api.post("/v1/events", event("patient.upserted", {"patient": {**PATIENT, "paint" * 100: 1}}))
    api.get("/v1/account")
    account, sent = api.get("/_mock/requests").json()["data"]
    assert "ignoredKeys" not in account
    (path,) = sent["ignoredKeys"]
    assert path.startswith("data.patient.paintpaint")
    assert len(path) == 255
    data = {"patient": PATIENT, **{f"key-{number}": 1 for number in range(200)}}
    api.post("/v1/events", event("patient.upserted", data, "e-2"))
    assert len(api.get("/_mock/requests").json()["data"][0]["ignoredKeys"]) == 100
