"""Asking for what an intake request is missing, as soon as somebody can be asked (specification, sections 1 and 3)."""

from typing import Any

import pytest

from followup import FollowUp
from followup_mockserver import MockService

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


def test_section_6_2_the_webhooks_of_a_complete_request_say_that_it_is_ready(
    client: FollowUp, service: MockService
) -> None:
    client.webhook_endpoints.create(url="https://clinic.example", enabled_events=["*"])
    made = client.intake_requests.create(
        patient={"full_name": "Ana", "dni": "30123456", "phone": PHONE},
        coverage={"insurer": "Salud Sur"},
        address="Calle 1",
        requested_service="nursing",
    )
    types = [each.event_type for each in client.webhook_deliveries.list()][::-1]
    assert types == ["patient.upserted", "intake.requested", "intake.created", "intake.ready"]
    for name in types[1:3]:
        data = webhook_data(client, name)
        assert (data["id"], data["status"], data["missing"]) == (made.id, "ready", [])
    assert [each.kind for each in service.jobs] == ["delivery"] * 4


def answer_with_a_contact(client: FollowUp, service: MockService, request: str) -> None:
    service.answer_intake_request(request, contacts=[{"name": "Luis", "phone": CONTACT}])


def answer_with_a_phone(client: FollowUp, service: MockService, request: str) -> None:
    service.answer_intake_request(request, patient={"phone": PHONE})


def create_the_patient(client: FollowUp, service: MockService, request: str) -> None:
    client.patients.create(phone=PHONE, dni="30123456")


def send_an_event(client: FollowUp, service: MockService, request: str) -> None:
    data = {"patient": {"phone": PHONE, "dni": "30123456"}}
    client.events.create({"id": "e-1", "type": "patient.upserted", "data": data})


@pytest.mark.parametrize(
    ("learn", "phone"),
    [
        (answer_with_a_contact, CONTACT),
        (answer_with_a_phone, PHONE),
        (create_the_patient, PHONE),
        (send_an_event, PHONE),
    ],
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


def test_a_request_that_is_over_is_not_asked_any_more(client: FollowUp, service: MockService) -> None:
    made = client.intake_requests.create(patient={"dni": "30123456"})
    service.discard_intake_request(made.id)
    client.patients.create(phone=PHONE, dni="30123456")
    assert asked(service) == []


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
