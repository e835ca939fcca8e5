"""Patients who reply or fall silent, and conversations handed off to the team (specification, sections 2 and 6.2)."""

import pytest
from support.http import Api, problem

from followup import FollowUp, Patient
from followup_mockserver import MockService, ServiceError

URL = "https://clinic.example/hooks"
NOT_YET_SENT = ["order.issued", "conversation.handoff", "patient.silent"]


@pytest.fixture
def ana(client: FollowUp) -> Patient:
    return client.patients.create(phone="+5491155550000", full_name="Ana Pérez")


def test_each_method_does_what_its_call_of_the_control_api_does(service: MockService, ana: Patient) -> None:
    assert service.receive_reply(ana.id).stage == "in_conversation"
    assert service.report_silence(ana.id).stage == "lost"
    assert service.hand_off_conversation(ana.id, reason="asks for a person").stage == "in_conversation"
    with pytest.raises(ServiceError, match="no such patient"):
        service.receive_reply("pat_none")


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
