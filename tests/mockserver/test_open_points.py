"""Decisions where the specification is silent that no other module proves; docs/open-points.md lists all of them."""

from typing import Any

import httpx
import pytest
from support.http import Api

from followup import FollowUp
from followup_mockserver import MockService

PHONE = "+5491155550000"
START = "2026-10-05T12:00:00Z"


def test_a_doctor_is_matched_by_external_id_then_by_name_and_else_is_null(client: FollowUp) -> None:
    first, second = (client.doctors.list(external_id=each).data[0] for each in ("D-1", "D-2"))

    def booked(**doctor: str) -> str | None:
        return client.appointments.create(patient={"phone": PHONE}, start_at=START, doctor=doctor).doctor  # type: ignore[arg-type]

    assert booked(external_id="D-1", full_name=second.full_name) == first.id
    assert booked(external_id="D-99", full_name=second.full_name) == second.id
    assert booked(full_name=second.full_name) == second.id
    assert booked(external_id="D-99", full_name="nobody") is None
    visit = client.visits.create(patient={"phone": PHONE}, visited_at=START, doctor={"full_name": "nobody"})
    assert visit.doctor is None


def test_outbound_data_is_the_resource_under_its_name_and_its_patient_beside_it(client: FollowUp, api: Api) -> None:
    client.webhook_endpoints.create(url="https://clinic.example", enabled_events=["*"])
    patient = client.patients.create(phone=PHONE, full_name="Ana")
    made = {
        "appointment": client.appointments.create(patient=patient.id, start_at=START).id,
        "visit": client.visits.create(patient=patient.id, visited_at=START).id,
        "treatment": client.treatments.create(patient=patient.id, name="rest").id,
        "intakeRequest": client.intake_requests.create(patient={"phone": PHONE}).id,
    }
    paths = {
        "appointment": "/v1/appointments",
        "visit": "/v1/visits",
        "treatment": "/v1/treatments",
        "intakeRequest": "/v1/intake_requests",
    }
    sent = [each["payload"] for each in api.get("/v1/webhook_deliveries").json()["data"]]
    types = {"appointment.created": "appointment", "visit.completed": "visit", "treatment.prescribed": "treatment"}
    types |= dict.fromkeys(("intake.requested", "intake.created"), "intakeRequest")
    assert [each["type"] for each in sent][::-1] == ["patient.upserted", *types]
    for payload in sent[:-1]:
        name = types[payload["type"]]
        assert set(payload["data"]) == {name, "patient"}
        assert payload["ref"] == payload["data"][name]["id"] == made[name]
        assert payload["data"][name] == api.get(f"{paths[name]}/{made[name]}").json()
        assert payload["data"]["patient"]["id"] == patient.id
    assert set(sent[-1]["data"]) == {"patient"}


def routes() -> dict[str, Any]:
    details: Any = {"phone": PHONE, "dni": "30123456"}
    return {
        "create": lambda client: client.patients.create(**details),
        "appointment": lambda client: client.appointments.create(patient=details, start_at=START),
        "visit": lambda client: client.visits.create(patient=details, visited_at=START),
        "treatment": lambda client: client.treatments.create(patient=details, name="rest"),
        "intake": lambda client: client.intake_requests.create(patient=details),
        "event": lambda client: client.events.create(
            {"id": "e-1", "type": "patient.upserted", "data": {"patient": details}}
        ),
    }


@pytest.mark.parametrize("route", routes())
def test_section_6_2_an_upsert_is_sent_when_a_patient_is_created_or_changed(
    client: FollowUp, service: MockService, route: str
) -> None:
    client.webhook_endpoints.create(url="https://clinic.example", enabled_events=["patient.upserted"])

    def upserts() -> int:
        return len(client.webhook_deliveries.list(limit=100).data)

    routes()[route](client)
    assert upserts() == 1
    for each in routes().values():
        each(client)
    patient = client.patients.list().data[0]
    client.patients.update(patient.id, dni="30.123.456", full_name=None)
    assert upserts() == 1, "nothing of the patient changed"
    client.patients.update(patient.id, full_name="Ana")
    assert upserts() == 2
    service.update_patient(patient.id, opted_out=True, stage="lost")
    service.advance(days=30)
    assert upserts() == 2, "stage and optedOut are the service's own marks"


def test_a_new_organization_is_like_the_default_one(service: MockService, client: FollowUp) -> None:
    other = service.create_organization()
    mine, theirs = client.account.retrieve(), other.organization
    assert (theirs.type, theirs.time_zone, theirs.service_lines) == (mine.type, mine.time_zone, mine.service_lines)
    with service.client(api_key=other.keys[0].value) as their_client:
        assert [each.full_name for each in their_client.doctors.list()] == [
            each.full_name for each in client.doctors.list()
        ]


def test_a_changed_setting_leaves_what_was_made_before_as_it_is(client: FollowUp, service: MockService) -> None:
    client.appointments.create(patient={"phone": PHONE}, start_at=START)
    request = client.intake_requests.create(patient={"phone": PHONE})
    reminders = service.reminders
    service.update_organization(reminder_hours=[1], intake_required=["phone"])
    assert service.reminders == reminders
    assert client.intake_requests.retrieve(request.id) == request


def test_a_known_visit_is_returned_as_it_is_whatever_is_sent(client: FollowUp) -> None:
    patient = client.patients.create(phone=PHONE).id
    visit = client.visits.create(patient=patient, visited_at=START, external_id="V-1")
    booked = client.appointments.create(patient=patient, start_at=START)
    again = client.visits.create(patient=patient, visited_at=START, external_id="V-1", appointment=booked.id)
    assert again == visit
    assert client.appointments.retrieve(booked.id).status == "confirmed"


def test_the_newest_of_several_patients_with_an_external_id_is_found(client: FollowUp) -> None:
    made = [client.patients.create(phone=f"+549115555000{number}", external_id="P-1").id for number in range(2)]
    assert client.treatments.create(patient={"external_id": "P-1"}, name="rest").patient == made[-1]
    assert [each.id for each in client.patients.list(external_id="P-1")] == made[::-1]


def test_a_webhook_occurs_when_it_is_processed(client: FollowUp, service: MockService) -> None:
    client.webhook_endpoints.create(url="https://clinic.example", enabled_events=["patient.upserted"])
    data = {"patient": {"phone": PHONE}}
    event: Any = {"id": "e-1", "type": "patient.upserted", "data": data, "occurredAt": "2026-09-01T12:00:00Z"}
    client.events.create({key if key != "occurredAt" else "occurred_at": value for key, value in event.items()})  # type: ignore[arg-type]
    assert client.events.list().data[0].occurred_at.isoformat() == "2026-09-01T12:00:00+00:00"
    assert client.webhook_deliveries.list().data[0].payload["occurredAt"] == "2026-09-28T12:00:00.000Z"


def test_a_patient_who_opted_out_keeps_pending_reminders_and_may_opt_in_again(
    client: FollowUp, service: MockService
) -> None:
    booked = client.appointments.create(patient={"phone": PHONE}, start_at=START)
    service.update_patient(booked.patient, opted_out=True)
    assert len(service.reminders) == 2
    service.step()
    assert service.messages == []
    service.update_patient(booked.patient, opted_out=False)
    service.step()
    assert [each.kind for each in service.messages] == ["reminder"]


def test_a_partly_failed_batch_is_kept_under_its_key_and_resent_under_a_new_one(client: FollowUp) -> None:
    events: Any = [
        {"id": "e-1", "type": "patient.upserted", "data": {"patient": {"phone": PHONE}}},
        {"id": "e-2", "type": "appointment.cancelled", "data": {"appointment": {"externalId": "A-1"}}},
    ]

    def sent(key: str) -> list[str]:
        return [each.status for each in client.events.create(events, idempotency_key=key).results]

    assert sent("k-1") == ["processed", "failed"]
    client.appointments.create(patient={"phone": PHONE}, start_at=START, external_id="A-1")
    assert sent("k-1") == ["processed", "failed"]
    assert sent("k-2") == ["duplicate", "processed"]


def test_ref_is_the_object_that_is_described_or_the_event_that_was_the_trigger(
    client: FollowUp, service: MockService
) -> None:
    client.webhook_endpoints.create(url="https://clinic.example", enabled_events=["*"])
    service.update_organization(activated_events=["order.issued"])

    def refs() -> dict[str, str]:
        return {each.event_type: each.payload["ref"] for each in [*client.webhook_deliveries.list()][::-1]}

    def sent(number: int) -> tuple[str, str]:
        booking = {"startAt": START, "externalId": f"A-{number}"}
        events: Any = [
            {
                "id": f"{number}-1",
                "type": "appointment.created",
                "data": {"patient": {"phone": PHONE}, "appointment": booking},
            },
            {"id": f"{number}-2", "type": "intake.requested", "data": {"patient": {"phone": PHONE}}},
            {"id": f"{number}-3", "type": "order.issued", "data": {}},
        ]
        results = client.events.create(events).results
        described = [each.result.id if each.result else each.event for each in results]
        types = ["appointment.created", "intake.created", "order.issued"]
        expected = described if number == 1 else [each.event for each in results]
        assert {name: refs()[name] for name in types} == dict(zip(types, expected, strict=True))
        return results[1].event or "", results[1].result.id if results[1].result else ""

    sent(1)
    service.update_organization(ref="trigger")
    event, intake = sent(2)
    assert refs()["intake.requested"] == event
    booked = client.appointments.create(patient={"phone": PHONE}, start_at=START)
    assert refs()["appointment.created"] == booked.id, "no event caused it"
    answer: Any = {"patient": {"full_name": "Ana", "dni": "1"}, "address": "x", "requested_service": "x"}
    service.answer_intake_request(intake, **answer, coverage={"insurer": "x"})
    assert refs()["intake.ready"] == intake, "a patient's reply caused it"
    with MockService(ref="trigger") as other, other.client() as theirs:
        theirs.webhook_endpoints.create(url="https://clinic.example", enabled_events=["*"])
        result = theirs.events.create({"id": "1", "type": "patient.upserted", "data": {"patient": {"phone": PHONE}}})
        assert theirs.webhook_deliveries.list().data[0].payload["ref"] == result.results[0].event


def test_reminders_that_were_sent_are_made_again_for_a_later_day(client: FollowUp, service: MockService) -> None:
    booked = client.appointments.create(patient={"phone": PHONE}, start_at="2026-09-30T12:00:00Z")
    service.advance(days=1, hours=22)
    assert [each.kind for each in service.messages] == ["reminder", "reminder"]
    client.appointments.update(booked.id, start_at="2026-10-03T12:00:00Z")
    service.advance(days=5)
    assert [each.kind for each in service.messages] == ["reminder"] * 4


def test_retries_go_to_the_new_url_of_an_endpoint_and_its_last_error_stays(
    client: FollowUp, service: MockService
) -> None:
    seen: list[str] = []
    for url, status in (("https://old.example", 500), ("https://new.example", 204)):
        service.mount(url, lambda request, status=status: seen.append(request.url.host) or httpx.Response(status))
    endpoint = client.webhook_endpoints.create(url="https://old.example", enabled_events=["webhook.ping"] * 2)
    assert endpoint.enabled_events == ["webhook.ping"]
    client.webhook_endpoints.ping(endpoint.id)
    service.advance()
    client.webhook_endpoints.update(endpoint.id, url="https://new.example")
    service.advance(minutes=1)
    assert seen == ["old.example", "new.example"]
    after = client.webhook_endpoints.retrieve(endpoint.id)
    assert after.last_delivered_at is not None
    assert after.last_error is not None
    assert after.last_error.message == "HTTP status 500."


def test_an_unknown_path_and_a_wrong_method_come_before_the_key(api: Api) -> None:
    assert api.get("/v1/nothing", key=None).status_code == 404
    assert api.request("PUT", "/v1/account", key=None).status_code == 405


def test_a_cursor_need_not_match_the_filters(client: FollowUp) -> None:
    first, second = (client.patients.create(phone=f"+549115555000{number}", dni=f"{number}1") for number in range(2))
    assert [each.id for each in client.patients.list(dni="01", starting_after=second.id)] == [first.id]
