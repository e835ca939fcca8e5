"""One more attempt of a delivery, asked for by a test."""

import pytest
from support.http import Api, problem
from support.receivers import Inbox

from followup import FollowUp, WebhookDelivery, WebhookEndpoint
from followup_mockserver import MockService, ServiceError

URL = "https://clinic.example/hooks"


@pytest.fixture
def inbox(service: MockService) -> Inbox:
    inbox = Inbox()
    service.mount(URL, inbox.receive)
    return inbox


@pytest.fixture
def endpoint(client: FollowUp) -> WebhookEndpoint:
    return client.webhook_endpoints.create(url=URL, enabled_events=["patient.upserted"])


def delivery(client: FollowUp) -> WebhookDelivery:
    (found,) = client.webhook_deliveries.list()
    return found


def test_a_disabled_endpoint_gets_no_resend(
    client: FollowUp, service: MockService, api: Api, inbox: Inbox, endpoint: WebhookEndpoint
) -> None:
    client.patients.create(phone="+5491155550000")
    client.webhook_endpoints.update(endpoint.id, disabled=True)
    cut = delivery(client)
    response = api.post(f"/_mock/webhook_deliveries/{cut.id}/resend")
    assert problem(response)[:2] == (400, "webhook_endpoint_disabled")
    with pytest.raises(ServiceError, match="disabled"):
        service.resend(cut.id)
    assert (inbox.requests, service.attempts(cut.id), delivery(client)) == ([], [], cut)
    client.webhook_endpoints.update(endpoint.id, disabled=False)
    assert service.resend(cut.id).status == "succeeded"


def test_a_failed_resend_of_what_succeeded_shows_in_the_attempt_alone(
    client: FollowUp, service: MockService, inbox: Inbox, endpoint: WebhookEndpoint
) -> None:
    inbox.status_for = lambda number: 204 if number == 1 else 500
    client.patients.create(phone="+5491155550000")
    service.advance()
    before, endpoint_before = delivery(client), client.webhook_endpoints.retrieve(endpoint.id)
    service.advance(hours=1)
    after = service.resend(before.id)
    assert (after.status, after.last_status_code, after.last_error) == ("succeeded", 204, None)
    assert (after.delivered_at, after.next_attempt_at, after.attempts) == (before.delivered_at, None, 2)
    assert [(each.status_code, each.error) for each in service.attempts(before.id)] == [
        (204, None),
        (500, "HTTP status 500."),
    ]
    assert client.webhook_endpoints.retrieve(endpoint.id) == endpoint_before
    assert service.jobs == []


def test_a_failed_resend_of_what_was_cut_leaves_the_reason(
    client: FollowUp, service: MockService, inbox: Inbox, endpoint: WebhookEndpoint
) -> None:
    inbox.status_for = lambda _: 500
    client.patients.create(phone="+5491155550000")
    client.webhook_endpoints.update(endpoint.id, disabled=True)
    client.webhook_endpoints.update(endpoint.id, disabled=False)
    after = service.resend(delivery(client).id)
    assert (after.status, after.last_status_code, after.last_error) == ("failed", None, "The endpoint was disabled.")
    assert service.jobs == []


def test_a_failed_resend_of_what_is_pending_is_one_of_the_nine_attempts(
    client: FollowUp, service: MockService, inbox: Inbox, endpoint: WebhookEndpoint
) -> None:
    inbox.status_for = lambda _: 503
    client.patients.create(phone="+5491155550000")
    after = service.resend(delivery(client).id)
    assert (after.status, after.attempts, after.last_status_code) == ("pending", 1, 503)
    assert (after.next_attempt_at is not None, len(service.jobs)) == (True, 1)
