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
    assert (patient.external_id, appointment.status) == ("P-1", "cancelled")
    assert next(iter(client.visits.list())).external_id == "V-1"
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
    assert [each.id for each in client.events.list(status="failed")] == [failed.event]
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


def test_section_4_each_event_is_on_its_own_and_in_order(client: FollowUp) -> None:
    results = client.events.create(
        [
            event(id="1"),
            event("appointment.cancelled", {"appointment": {"externalId": "no"}}, "2"),
            event(id="3", data={}),
        ]
    ).results
    assert [(each.id, each.accepted, each.status) for each in results] == [
        ("1", True, "processed"),
        ("2", False, "failed"),
        ("3", False, "invalid"),
    ]
    assert results[2].event is None
    assert results[2].error
    assert results[2].error.startswith("data.patient: ")
    assert len([*client.events.list()]) == 2


@pytest.mark.parametrize(
    ("bad", "where"),
    [
        ({"type": "visit.completed", "data": VISIT}, "id"),
        ({"id": "", "type": "visit.completed", "data": VISIT}, "id"),
        ({"id": 5, "type": "visit.completed", "data": VISIT}, "id"),
        ({"id": "1", "type": "visit.done", "data": VISIT}, "type"),
        ({"id": "1", "type": "visit.completed"}, "data"),
        ({"id": "1", "type": "visit.completed", "data": []}, "data"),
        (event(schemaVersion=2), "schemaVersion"),
        (event(occurredAt="yesterday"), "occurredAt"),
        (event(unknown=1), "unknown"),
        (event(data={"patient": {"phone": "x"}, "visit": VISIT["visit"]}), "data.patient.phone"),
        (event(data={"patient": PATIENT, "visit": {}}), "data.visit.visitedAt"),
        (event("patient.upserted", {"patient": {"phone": "x"}}), "data.patient.phone"),
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


@pytest.mark.parametrize("body", [[], {"events": []}, [event()] * 101, {"events": {}}, {"events": "x"}, "x", 5])
def test_section_8_a_batch_has_1_to_100_events(api: Api, body: Any) -> None:
    assert problem(api.post("/v1/events", body)) == (400, "parameter_invalid", "events")


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


def test_rest_calls_are_no_events(client: FollowUp) -> None:
    client.patients.create(phone="+5491155550000")
    assert [*client.events.list()] == []
