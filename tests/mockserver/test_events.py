"""Inbound events: their ids, and the keys of their data that the service ignores (sections 4 and 6.1)."""

from typing import Any

from support.http import Api

from followup import FollowUp
from followup_mockserver import MockService

PATIENT = {"phone": "+5491155550000", "fullName": "Ana"}
BOOKING = {"startAt": "2026-10-05T12:00:00Z", "externalId": "A-1"}
VISIT = {"patient": PATIENT, "visit": {"visitedAt": "2026-09-28T11:00:00Z", "externalId": "V-1"}}


def event(type: str = "visit.completed", data: Any = None, id: str = "e-1", **fields: Any) -> Any:
    return {"id": id, "type": type, "data": VISIT if data is None else data, **fields}


WITHOUT_A_NUMBER = event("patient.upserted", {"patient": {"phone": "12"}})


def test_an_invalid_event_takes_no_id_from_the_events_after_it(client: FollowUp) -> None:
    (bad, good) = client.events.create([WITHOUT_A_NUMBER, event(id="e-2")]).results
    with MockService(start_time="2026-09-28T12:00:00Z", rate_limit=0, seed=1).client() as other:
        (alone,) = other.events.create(event(id="e-2")).results
    assert (bad.status, bad.event, good.event) == ("invalid", None, alone.event)


MISPLACED = {"patient": PATIENT, "doctor": {"externalId": "D-1"}, "appointment": BOOKING}


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
