"""Patients who reply or fall silent, and conversations handed off to the team (specification, sections 2 and 6.2)."""

from typing import Any

import httpx
import pytest
from support.http import Api, problem

from followup import FollowUp, Patient, construct_event
from followup_mockserver import MockService, ServiceError

URL = "https://clinic.example/hooks"
NOT_YET_SENT = ["order.issued", "conversation.handoff", "patient.silent"]


@pytest.fixture
def ana(client: FollowUp) -> Patient:
    return client.patients.create(phone="+5491155550000", full_name="Ana Pérez")


def stage(client: FollowUp, patient: Patient) -> str:
    return client.patients.retrieve(patient.id).stage


def test_section_2_a_reply_begins_a_conversation(client: FollowUp, service: MockService, ana: Patient) -> None:
    client.webhook_endpoints.create(url=URL, enabled_events=["*"])
    service.advance(hours=1)
    replied = service.receive_reply(ana.id)
    assert (replied.stage, replied.updated_at) == ("in_conversation", service.clock.now)
    assert replied == client.patients.retrieve(ana.id)
    assert service.deliveries == []
    client.appointments.create(patient=ana.id, start_at="2026-10-05T12:00:00Z")
    assert stage(client, ana) == "scheduled"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("pending_follow_up", "lost"),
        ("in_conversation", "lost"),
        ("periodic_follow_up", "lost"),
        ("scheduled", "scheduled"),
        ("discharged", "discharged"),
        ("lost", "lost"),
    ],
)
def test_section_2_a_patient_who_falls_silent_is_lost(
    client: FollowUp, service: MockService, ana: Patient, before: Any, after: str
) -> None:
    service.update_patient(ana.id, stage=before)
    assert service.report_silence(ana.id).stage == after
    assert service.receive_reply(ana.id).stage == "in_conversation"


def test_section_6_2_a_webhook_that_is_not_yet_sent_arrives_once_it_is_activated(
    client: FollowUp, service: MockService, ana: Patient
) -> None:
    secret = client.webhook_endpoints.create(url=URL, enabled_events=["*"]).secret or ""
    received: list[Any] = []

    def receive(request: httpx.Request) -> httpx.Response:
        received.append(construct_event(request.content, request.headers, secret))
        return httpx.Response(204)

    service.mount(URL, receive)
    service.report_silence(ana.id)
    service.hand_off_conversation(ana.id, reason="The patient asks for a person.")
    service.advance()
    assert received == []
    service.update_organization(activated_events=["patient.silent"])
    service.report_silence(ana.id)
    service.hand_off_conversation(ana.id)
    service.update_organization(activated_events=["conversation.handoff"])
    service.hand_off_conversation(ana.id, reason="The patient asks for a person.")
    service.report_silence(ana.id)
    service.advance()
    silent, handoff = received
    assert (silent.type, silent.ref, silent.patient.stage) == ("patient.silent", ana.id, "lost")
    assert silent.data.keys() == {"patient"}
    assert (handoff.type, handoff.ref, handoff.patient.stage) == ("conversation.handoff", ana.id, "in_conversation")
    assert handoff.data["conversation"] == {"reason": "The patient asks for a person."}
    assert handoff.retrieve(client).id == ana.id


def test_an_activation_is_a_setting_of_one_organization_that_a_reset_ends(
    client: FollowUp, service: MockService, api: Api
) -> None:
    assert api.patch("/_mock/organization", {"activatedEvents": NOT_YET_SENT}).status_code == 200
    wrong = api.patch("/_mock/organization", {"activatedEvents": ["order.issued", "patient.upserted"]})
    assert problem(wrong) == (400, "parameter_invalid", "activatedEvents[1]")
    key = service.create_organization().keys[0].value
    others = service.organization(key)
    with service.client(api_key=key) as theirs:
        theirs.webhook_endpoints.create(url=URL, enabled_events=["*"])
        patient = theirs.patients.create(phone="+5491155550000")
    others.report_silence(patient.id)
    assert [each.event_type for each in others.deliveries] == ["patient.upserted"]
    service.reset()
    client.webhook_endpoints.create(url=URL, enabled_events=["patient.silent"])
    service.report_silence(client.patients.create(phone="+5491155550000").id)
    assert service.deliveries == []


def test_who_has_no_phone_has_no_conversation(client: FollowUp, service: MockService) -> None:
    intake = client.intake_requests.create(patient={"dni": "30123456"})
    for act in (service.receive_reply, service.report_silence, service.hand_off_conversation):
        with pytest.raises(ServiceError) as caught:
            act(intake.patient or "")
        assert caught.value.code == "patient_without_phone"
        with pytest.raises(ServiceError) as caught:
            act("pat_none")
        assert (caught.value.status, caught.value.param) == (404, "id")
