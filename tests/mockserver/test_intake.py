"""Intake requests, and the questions about what they miss (specification, sections 1, 3 and 4)."""

from typing import Any

import pytest
from support.http import Api, problem

from followup import FollowUp
from followup_mockserver import MockService, ServiceError

COMPLETE: Any = {
    "patient": {"full_name": "Ana Pérez", "dni": "30.123.456", "phone": "+5491155550000"},
    "coverage": {"insurer": "Salud Sur", "member_id": "1"},
    "address": "Calle 1",
    "requested_service": "nursing",
}


def types(client: FollowUp) -> list[str]:
    return [each.event_type for each in client.webhook_deliveries.list()][::-1]


def test_section_4_everything_sent_is_kept_in_data(client: FollowUp) -> None:
    made = client.intake_requests.create(
        **COMPLETE,
        contacts=[{"name": "Luis", "relationship": "son", "phone": "011 15 5555 0001", "email": "l@mail.example"}],
        summary="administrative",
        hospitalized=True,
        sender={"name": "Eva", "organization": "Hospital", "email": "eva@hospital.example"},
    )
    assert made.data == {
        "patient": {"fullName": "Ana Pérez", "dni": "30123456", "phone": "+5491155550000"},
        "coverage": {"insurer": "Salud Sur", "memberId": "1"},
        "address": "Calle 1",
        "requestedService": "nursing",
        "contacts": [{"name": "Luis", "relationship": "son", "phone": "+5491155550001", "email": "l@mail.example"}],
        "summary": "administrative",
        "hospitalized": True,
        "sender": {"name": "Eva", "organization": "Hospital", "email": "eva@hospital.example"},
    }
    assert made.summary == "administrative"


def test_section_3_a_complete_request_is_ready_at_once(client: FollowUp, service: MockService) -> None:
    client.webhook_endpoints.create(url="https://clinic.example", enabled_events=["*"])
    made = client.intake_requests.create(**COMPLETE)
    assert (made.status, made.missing) == ("ready", [])
    assert made.ready_at == service.clock.now
    assert types(client) == ["patient.upserted", "intake.requested", "intake.created", "intake.ready"]
    ready, created, requested = list(client.webhook_deliveries.list())[:3]
    for each in (created, requested):
        data = each.payload["data"]["intakeRequest"]
        assert (data["id"], data["status"], data["missing"]) == (made.id, "ready", [])
    assert ready.payload["data"] == {
        "patient": {"fullName": "Ana Pérez", "dni": "30123456"},
        "requestedService": "nursing",
        "intake": {"id": made.id, "missing": []},
    }
    assert ready.payload["ref"] == made.id
    service.advance()
    assert service.messages == []


def test_section_3_missing_data_is_asked_for_and_answered(client: FollowUp, service: MockService) -> None:
    made = client.intake_requests.create(patient={"phone": "+5491155550000"}, contacts=[{"name": "Luis"}])
    assert made.status == "new"
    assert made.missing == ["fullName", "dni", "coverage.insurer", "address", "requestedService"]
    service.advance()
    (message,) = service.messages
    assert (message.kind, message.about, message.phone) == ("intake", made.id, "+5491155550000")
    assert client.intake_requests.retrieve(made.id).status == "validating"
    service.answer_intake_request(made.id, patient={"full_name": "Ana", "dni": "1.2.3"})
    assert client.patients.retrieve(made.patient or "").dni == "123"
    half = client.intake_requests.retrieve(made.id)
    assert (half.status, half.missing) == ("validating", ["coverage.insurer", "address", "requestedService"])
    service.answer_intake_request(made.id, coverage={"insurer": "x"}, address="y", requested_service="z")
    assert client.intake_requests.retrieve(made.id).status == "ready"
    assert len([*client.patients.list()]) == 1


def test_section_4_the_patient_is_looked_up_by_phone_then_by_dni(client: FollowUp) -> None:
    by_phone = client.patients.create(phone="+5491155550000", full_name="Ana", dni="1")
    by_dni = client.patients.create(phone="+5491155550001", dni="2")
    assert client.intake_requests.create(patient={"phone": "+5491155550000", "dni": "2"}).patient == by_phone.id
    assert client.intake_requests.create(patient={"dni": "2"}).patient == by_dni.id
    known = client.intake_requests.create(patient={"phone": "+5491155550000"})
    assert "fullName" not in known.missing


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"patient": {"email": "a@mail.example"}},
        {"contacts": [{"relationship": "son"}]},
        {"requestedService": "x"},
    ],
)
def test_section_4_at_least_one_datum_is_needed(api: Api, body: Any) -> None:
    assert problem(api.post("/v1/intake_requests", body)) == (400, "parameter_missing", "patient")
    assert problem(api.post("/v1/intake_requests")) == (400, "body_missing", None)
    assert api.get("/v1/intake_requests").json()["data"] == []


@pytest.mark.parametrize("body", [{"patient": {"fullName": "Ana"}}, {"contacts": [{"name": "Luis"}]}])
def test_a_name_alone_identifies_nobody(api: Api, body: Any) -> None:
    made = api.post("/v1/intake_requests", body).json()
    assert made["patient"] is None
    assert api.get("/v1/patients").json()["data"] == []


def test_a_contact_is_written_to_where_the_patient_has_no_phone(client: FollowUp, service: MockService) -> None:
    client.intake_requests.create(patient={"full_name": "Ana"}, contacts=[{"phone": "+5491155550001"}])
    service.advance()
    assert [each.phone for each in service.messages] == ["+5491155550001"]


def test_load_and_discard(client: FollowUp, service: MockService) -> None:
    ready = client.intake_requests.create(**COMPLETE)
    loaded = service.load_intake_request(ready.id)
    assert loaded.status == "loaded"
    assert loaded.loaded_at == loaded.closed_at == service.clock.now
    open_one = client.intake_requests.create(patient={"dni": "9"})
    with pytest.raises(ServiceError, match="ready"):
        service.load_intake_request(open_one.id)
    discarded = service.discard_intake_request(open_one.id, reason="twice")
    assert (discarded.status, discarded.discard_reason) == ("discarded", "twice")
    for closed in (ready.id, open_one.id):
        with pytest.raises(ServiceError):
            service.discard_intake_request(closed)
        with pytest.raises(ServiceError):
            service.answer_intake_request(closed, address="x")
    assert [each.id for each in client.intake_requests.list(status="loaded")] == [ready.id]
    assert [each.id for each in client.intake_requests.list(patient=open_one.patient or "")] == [open_one.id]


@pytest.mark.parametrize(
    "fill_in",
    [
        lambda client, patient: client.patients.update(patient, full_name="Ana Pérez", dni="30123456"),
        lambda client, _: client.patients.create(phone="+5491155550000", full_name="Ana Pérez", dni="30123456"),
        lambda client, _: client.events.create(
            {
                "id": "e1",
                "type": "patient.upserted",
                "data": {"patient": {"phone": "+5491155550000", "fullName": "Ana Pérez", "dni": "30123456"}},
            }
        ),
        lambda client, _: client.intake_requests.create(**COMPLETE),
    ],
    ids=["updated", "completed", "upserted", "by another request"],
)
def test_section_3_data_that_completes_the_patients_record_makes_it_ready(client: FollowUp, fill_in: Any) -> None:
    known = {**COMPLETE, "patient": {"phone": "+5491155550000"}}
    waiting = client.intake_requests.create(**known)
    closed = client.intake_requests.create(**known)
    assert waiting.missing == ["fullName", "dni"]
    client.webhook_endpoints.create(url="https://clinic.example", enabled_events=["intake.ready"])
    fill_in(client, waiting.patient)
    ready = client.intake_requests.retrieve(waiting.id)
    assert (ready.status, ready.missing, ready.ready_at) == ("ready", [], ready.updated_at)
    refs = [each.payload["ref"] for each in client.webhook_deliveries.list()]
    assert refs.count(waiting.id) == refs.count(closed.id) == 1


def test_a_request_that_is_ready_misses_nothing_any_more(client: FollowUp, service: MockService) -> None:
    made = client.intake_requests.create(**COMPLETE)
    answered = service.answer_intake_request(made.id, address="")
    assert (answered.status, answered.missing) == ("ready", [])


PHONE = "+5491155550000"
CONTACT = "+5491155550001"


def asked(service: MockService) -> list[str]:
    service.advance()
    return [each.phone for each in service.messages if each.kind == "intake"]


def webhook_data(client: FollowUp, type: str) -> Any:
    (found,) = (each for each in client.webhook_deliveries.list() if each.event_type == type)
    return found.payload["data"]["intakeRequest"]


@pytest.mark.parametrize("route", ["operation", "event"])
def test_section_6_2_its_webhooks_carry_what_is_missing(client: FollowUp, route: str) -> None:
    client.webhook_endpoints.create(url="https://clinic.example", enabled_events=["*"])
    if route == "operation":
        client.intake_requests.create(patient={"phone": PHONE, "full_name": "Ana"})
    else:
        data = {"patient": {"phone": PHONE, "fullName": "Ana"}}
        client.events.create({"id": "e-1", "type": "intake.requested", "data": data})
    (made,) = client.intake_requests.list()
    assert made.missing == ["dni", "coverage.insurer", "address", "requestedService"]
    for name in ("intake.requested", "intake.created"):
        data = webhook_data(client, name)
        assert (data["id"], data["status"], data["missing"]) == (made.id, "new", made.missing)


UPSERTED: Any = {"id": "e-1", "type": "patient.upserted", "data": {"patient": {"phone": PHONE, "dni": "30123456"}}}


@pytest.mark.parametrize(
    ("learn", "phone"),
    [
        (
            lambda _, mock, made: mock.answer_intake_request(made, contacts=[{"name": "Luis", "phone": CONTACT}]),
            CONTACT,
        ),
        (lambda _, mock, made: mock.answer_intake_request(made, patient={"phone": PHONE}), PHONE),
        (lambda client, *_: client.patients.create(phone=PHONE, dni="30123456"), PHONE),
        (lambda client, *_: client.events.create(UPSERTED), PHONE),
    ],
    ids=["contact", "answer", "patient", "event"],
)
def test_section_1_a_question_is_sent_once_a_phone_is_known(
    client: FollowUp, service: MockService, learn: Any, phone: str
) -> None:
    made = client.intake_requests.create(patient={"dni": "30123456", "full_name": "Ana"})
    assert asked(service) == []
    assert client.intake_requests.retrieve(made.id).status == "new"
    learn(client, service, made.id)
    assert asked(service) == [phone]
    assert client.intake_requests.retrieve(made.id).status == "validating"
    client.patients.update(made.patient or "", full_name="Ana Pérez", email="ana@mail.example")
    assert asked(service) == [phone], "it is asked once"


def test_section_2_a_request_of_who_opts_in_again_is_asked_then(client: FollowUp, service: MockService) -> None:
    patient = client.patients.create(phone=PHONE)
    service.update_patient(patient.id, opted_out=True)
    mine = client.intake_requests.create(patient={"phone": PHONE})
    as_contact = client.intake_requests.create(contacts=[{"name": "Ana", "phone": PHONE}])
    assert asked(service) == []
    service.update_patient(patient.id, stage="in_conversation")
    client.patients.update(patient.id, full_name="Ana")
    assert asked(service) == [], "nothing was said about messages"
    service.update_patient(patient.id, opted_out=False)
    assert asked(service) == [PHONE, PHONE]
    assert [client.intake_requests.retrieve(each.id).status for each in (mine, as_contact)] == ["validating"] * 2


def test_a_request_that_is_over_is_neither_asked_nor_revived(client: FollowUp, service: MockService) -> None:
    made = client.intake_requests.create(**{**COMPLETE, "patient": {"dni": "30123456"}})
    service.discard_intake_request(made.id)
    client.patients.create(phone=PHONE, dni="30123456", full_name="Ana Pérez")
    assert asked(service) == []
    assert client.intake_requests.retrieve(made.id).status == "discarded"


def test_an_organization_that_wants_no_questions_gets_none_later_either(client: FollowUp, service: MockService) -> None:
    service.update_organization(intake_messages=False)
    made = client.intake_requests.create(patient={"dni": "30123456"})
    service.answer_intake_request(made.id, patient={"phone": PHONE})
    assert asked(service) == []
    assert client.intake_requests.retrieve(made.id).status == "new"


def test_a_question_that_waits_is_not_asked_twice(client: FollowUp, service: MockService) -> None:
    made = client.intake_requests.create(patient={"phone": PHONE})
    service.answer_intake_request(made.id, address="Calle 1")
    client.patients.update(made.patient or "", full_name="Ana")
    assert asked(service) == [PHONE]


@pytest.mark.parametrize("patient", ["", "nobody", "apt_x", "pat_none"])
def test_section_4_requests_are_listed_by_any_string(client: FollowUp, patient: str) -> None:
    made = client.intake_requests.create(patient={"phone": PHONE})
    assert [each.id for each in client.intake_requests.list(patient=made.patient or "")] == [made.id]
    assert [*client.intake_requests.list(patient=patient)] == []
