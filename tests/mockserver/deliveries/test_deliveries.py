"""Webhooks: who gets what, signed how, and tried when (specification, sections 3 and 6.2)."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from support.http import Api, problem
from support.receivers import Inbox, listening

from followup import FollowUp, WebhookDelivery, WebhookEndpoint, WebhookSignatureError, construct_event
from followup_mockserver import MockService, ServiceError

URL = "https://clinic.example/hooks"
NOON = datetime(2026, 9, 28, 12, tzinfo=UTC)


@pytest.fixture
def inbox(service: MockService) -> Inbox:
    inbox = Inbox()
    service.mount(URL, inbox.receive)
    return inbox


@pytest.fixture
def endpoint(client: FollowUp) -> WebhookEndpoint:
    return client.webhook_endpoints.create(url=URL, enabled_events=["patient.upserted"], description="ours")


def create_patient(client: FollowUp, number: int = 0) -> None:
    client.patients.create(phone=f"+54911555500{number:02}", full_name="Ana Pérez")


def only_delivery(client: FollowUp) -> WebhookDelivery:
    (delivery,) = client.webhook_deliveries.list()
    return delivery


@pytest.mark.usefixtures("endpoint")
class TestAttempts:
    def test_step_runs_exactly_the_next_job(self, client: FollowUp, service: MockService, inbox: Inbox) -> None:
        inbox.status_for = lambda _: 500
        create_patient(client)
        started = service.clock.now
        assert [service.step().ran for _ in range(2)] == [1, 1]
        assert service.clock.now - started == timedelta(minutes=1)
        assert len(inbox.requests) == 2

    def test_resend_is_one_more_attempt_at_once(self, client: FollowUp, service: MockService, inbox: Inbox) -> None:
        inbox.status_for = lambda number: 500 if number < 10 else 200
        create_patient(client)
        service.advance(days=10)
        again = service.resend(only_delivery(client).id)
        assert (again.status, again.attempts) == ("succeeded", 10)
        attempts = service.attempts(again.id)
        assert attempts[-1].trigger == "manual"
        assert all(0 <= each.seconds < 60 for each in attempts)

    def test_a_manual_retry_during_an_attempt_counts_as_a_further_attempt(
        self, client: FollowUp, service: MockService, endpoint: WebhookEndpoint
    ) -> None:
        numbers: list[str] = []

        def receive(request: httpx.Request) -> httpx.Response:
            numbers.append(request.headers["x-service-delivery-attempt"])
            if len(numbers) == 1:
                service.resend(json.loads(request.content)["id"])
            return httpx.Response(500)

        service.mount(endpoint.url, receive)
        client.patients.create(phone="+5491155550000")
        service.advance(days=4)
        (delivery,) = service.deliveries
        assert numbers == list("123456789")
        assert (delivery.status, delivery.attempts, delivery.next_attempt_at) == ("failed", 9, None)

    def test_a_handler_may_call_the_api(self, client: FollowUp, service: MockService) -> None:
        def handler(request: httpx.Request) -> httpx.Response:
            found = client.patients.retrieve(json.loads(request.content)["data"]["patient"]["id"])
            if not found.external_id:
                client.patients.update(found.id, external_id="mine")
            return httpx.Response(204)

        service.mount(URL, handler)
        create_patient(client)
        assert service.advance().ran == 2  # the job that the handler caused is reported too
        assert next(iter(client.patients.list())).external_id == "mine"


def test_a_reset_ends_the_move_of_the_clock_that_it_meets(client: FollowUp, service: MockService) -> None:
    attempts = []

    def receive(request: httpx.Request) -> httpx.Response:
        attempts.append(request)
        service.reset()
        return httpx.Response(500)

    service.mount("https://clinic.example", receive)
    client.webhook_endpoints.create(url="https://clinic.example", enabled_events=["*"])
    client.patients.create(phone="+5491155550000")
    client.patients.create(phone="+5491155550001")
    service.advance(days=3)
    assert len(attempts) == 1


class TestSockets:
    @pytest.fixture
    def service(self) -> MockService:
        return MockService(
            start_time="2026-09-28T12:00:00Z", rate_limit=0, allow_http_webhooks=True, allow_network=True
        )

    def test_a_refused_connection_is_a_failed_attempt(self, client: FollowUp, service: MockService) -> None:
        with listening(Inbox()) as url:
            pass
        client.webhook_endpoints.create(url=url, enabled_events=["*"])
        create_patient(client)
        service.advance()
        delivery = only_delivery(client)
        assert (delivery.status, delivery.last_status_code) == ("pending", None)
        assert delivery.last_error == "No response (the connection was refused)."

    def test_forward_to_takes_the_place_of_the_endpoints_url(self) -> None:
        inbox = Inbox()
        with listening(inbox) as url:
            service = MockService(forward_to=url)
            client = service.client()
            endpoint = client.webhook_endpoints.create(url="https://production.example", enabled_events=["*"])
            create_patient(client)
            service.advance()
            assert client.webhook_endpoints.retrieve(endpoint.id).url == "https://production.example"
        construct_event(inbox.requests[0].content, inbox.requests[0].headers, endpoint.secret or "")


@pytest.mark.usefixtures("endpoint")
class TestWebhookFaults:
    """What the specification warns receivers of, and worse."""

    def numbers(self, inbox: Inbox) -> list[str]:
        phones = [json.loads(each.content)["data"]["patient"]["phone"] for each in inbox.requests]
        return [phone[-1] for phone in phones]

    def test_the_same_event_twice(self, client: FollowUp, service: MockService, inbox: Inbox) -> None:
        service.disturb(kind="duplicate")
        create_patient(client, 1)
        create_patient(client, 2)
        service.advance()
        assert self.numbers(inbox) == ["1", "1", "2"]
        first, second, _ = inbox.requests
        assert first.content == second.content
        assert first.headers["x-service-delivery-attempt"] == second.headers["x-service-delivery-attempt"] == "1"
        delivery = [*client.webhook_deliveries.list()][1]
        assert (delivery.status, delivery.attempts) == ("succeeded", 1)
        assert [each.trigger for each in service.attempts(delivery.id)] == ["schedule", "disturbance"]

    def test_a_paused_endpoint_gets_no_repetition(
        self, client: FollowUp, service: MockService, inbox: Inbox, endpoint: WebhookEndpoint
    ) -> None:
        service.disturb(kind="duplicate")
        client.patients.create(phone="+5491155550000")
        service.step()
        client.webhook_endpoints.update(endpoint.id, disabled=True)
        service.advance(days=1)
        assert len(inbox.requests) == 1

    def test_a_repetition_is_none_of_the_nine_attempts(
        self, client: FollowUp, service: MockService, inbox: Inbox
    ) -> None:
        inbox.status_for = lambda number: 409 if number == 2 else 500
        service.disturb(kind="duplicate")
        create_patient(client)
        service.advance()
        assert only_delivery(client).last_status_code == 500
        assert only_delivery(client).next_attempt_at == service.clock.now + timedelta(minutes=1)
        service.advance(days=3)
        assert [each.headers["x-service-delivery-attempt"] for each in inbox.requests] == list("1123456789")
        assert (only_delivery(client).status, only_delivery(client).attempts) == ("failed", 9)

    def test_in_the_wrong_order(self, client: FollowUp, service: MockService, inbox: Inbox) -> None:
        service.disturb(kind="reorder")
        create_patient(client, 1)
        create_patient(client, 2)
        service.advance()
        create_patient(client, 3)
        service.advance()
        assert self.numbers(inbox) == ["2", "1", "3"]

    def test_held_back_is_not_lost(self, client: FollowUp, service: MockService, inbox: Inbox) -> None:
        service.disturb(kind="reorder", seconds=60)
        create_patient(client)
        service.advance()
        assert inbox.requests == []
        service.advance(minutes=1)
        assert len(inbox.requests) == 1

    def test_late(self, client: FollowUp, service: MockService, inbox: Inbox) -> None:
        service.disturb(kind="late", seconds=90, type="patient.upserted")
        create_patient(client)
        assert only_delivery(client).next_attempt_at == service.clock.now + timedelta(seconds=90)
        service.advance(seconds=89)
        assert inbox.requests == []
        service.advance(seconds=1)
        assert len(inbox.requests) == 1

    @pytest.mark.parametrize(("kind", "reason"), [("wrong_signature", "wrong_signature"), ("old_signature", "too_old")])
    def test_badly_signed_at_first(
        self, client: FollowUp, service: MockService, endpoint: WebhookEndpoint, kind: Any, reason: str
    ) -> None:
        rejected: list[str] = []

        def receive(request: httpx.Request) -> httpx.Response:
            try:
                construct_event(request.content, request.headers, endpoint.secret or "")
            except WebhookSignatureError as error:
                rejected.append(error.reason)
                return httpx.Response(400)
            return httpx.Response(204)

        service.mount(URL, receive)
        service.disturb(kind=kind)
        create_patient(client)
        service.advance(minutes=1)
        assert rejected == [reason]
        assert (only_delivery(client).status, only_delivery(client).attempts) == ("succeeded", 2)


def test_a_disabled_endpoint_gets_no_resend(
    client: FollowUp, service: MockService, api: Api, inbox: Inbox, endpoint: WebhookEndpoint
) -> None:
    client.patients.create(phone="+5491155550000")
    client.webhook_endpoints.update(endpoint.id, disabled=True)
    cut = only_delivery(client)
    response = api.post(f"/_mock/webhook_deliveries/{cut.id}/resend")
    assert problem(response)[:2] == (400, "webhook_endpoint_disabled")
    with pytest.raises(ServiceError, match="disabled"):
        service.resend(cut.id)
    assert (inbox.requests, service.attempts(cut.id), only_delivery(client)) == ([], [], cut)
    client.webhook_endpoints.update(endpoint.id, disabled=False)
    assert service.resend(cut.id).status == "succeeded"


def test_a_failed_resend_of_what_succeeded_shows_in_the_attempt_alone(
    client: FollowUp, service: MockService, inbox: Inbox, endpoint: WebhookEndpoint
) -> None:
    inbox.status_for = lambda number: 204 if number == 1 else 500
    client.patients.create(phone="+5491155550000")
    service.advance()
    before, endpoint_before = only_delivery(client), client.webhook_endpoints.retrieve(endpoint.id)
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


def test_a_failed_resend_is_one_of_the_nine_attempts_and_leaves_the_reason_of_what_was_cut(
    client: FollowUp, service: MockService, inbox: Inbox, endpoint: WebhookEndpoint
) -> None:
    inbox.status_for = lambda _: 503
    client.patients.create(phone="+5491155550000")
    after = service.resend(only_delivery(client).id)
    assert (after.status, after.attempts, after.last_status_code) == ("pending", 1, 503)
    assert (after.next_attempt_at is not None, len(service.jobs)) == (True, 1)
    create_patient(client, 1)
    cut = service.deliveries[0].id
    client.webhook_endpoints.update(endpoint.id, disabled=True)
    client.webhook_endpoints.update(endpoint.id, disabled=False)
    after = service.resend(cut)
    assert (after.status, after.last_status_code, after.last_error) == ("failed", None, "The endpoint was disabled.")
    assert service.jobs == []


def times(service: MockService) -> list[datetime]:
    """Return the ``occurredAt`` of all deliveries, oldest first."""
    return [datetime.fromisoformat(each.payload["occurredAt"]) for each in reversed(service.deliveries)]


class TestOccurredAt:
    """It strictly increases, so that a receiver can sort by it (specification, section 6.2)."""

    @pytest.fixture(autouse=True)
    def everything(self, client: FollowUp) -> str:
        """Return the secret of an endpoint that gets all events."""
        return client.webhook_endpoints.create(url=URL, enabled_events=["*"]).secret or ""

    def test_repetitions_retries_and_resends_keep_it(
        self, client: FollowUp, service: MockService, everything: str
    ) -> None:
        inbox = Inbox(status_for=lambda number: 500 if number < 3 else 204)
        service.mount(URL, inbox.receive)
        service.disturb(kind="duplicate")
        client.patients.create(phone="+5491155550000")
        service.advance(hours=1)
        (delivery,) = service.deliveries
        service.resend(delivery.id)
        assert len(inbox.requests) == 4
        received = [construct_event(each.content, each.headers, everything) for each in inbox.requests]
        assert {each.occurred_at for each in received} == {NOON}

    def test_events_of_jobs_that_are_due_together_have_an_order(self, client: FollowUp, service: MockService) -> None:
        """While a job runs, the clock is held at the time at which the job is due."""
        booked: list[int] = []

        def book(request: httpx.Request) -> httpx.Response:
            if len(booked) < 3:
                booked.append(1)
                client.patients.create(phone=f"+549115555000{len(booked)}")
            return httpx.Response(500)

        service.mount(URL, book)
        client.patients.create(phone="+5491155550000")
        service.advance(minutes=1)
        found = times(service)
        assert len(found) == 4
        assert found == sorted(set(found))

    def test_organizations_and_resets_begin_anew(self, service: MockService, client: FollowUp) -> None:
        client.patients.create(phone="+5491155550000")
        other = service.create_organization().keys[0].value
        for _ in range(2):
            with service.client(api_key=other) as theirs:
                theirs.webhook_endpoints.create(url=URL, enabled_events=["*"])
                theirs.patients.create(phone="+5491155550000")
            (delivery,) = service.organization(other).deliveries
            assert delivery.payload["occurredAt"] == "2026-09-28T12:00:00.000Z"
            service.organization(other).reset()
        client.patients.create(phone="+5491155550001")
        assert times(service)[-1] == NOON + timedelta(milliseconds=1)
