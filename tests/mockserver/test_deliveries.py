"""Webhooks: who gets what, signed how, and tried when (specification, sections 3 and 6.2)."""

import json
import time
from datetime import timedelta
from typing import Any

import httpx
import pytest
from support.http import Api, problem
from support.receivers import Inbox, listening

from followup import (
    FollowUp,
    WebhookDelivery,
    WebhookEndpoint,
    WebhookSignatureError,
    construct_event,
)
from followup_mockserver import MockServer, MockService, ServiceError

URL = "https://clinic.example/hooks"
SINCE_FIRST = [timedelta(minutes=m) for m in (0, 1, 6, 36, 156, 456, 1056, 2496, 3936)]
"""The column "time since first" of the specification's table, in minutes; the last two by its column of waits."""


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


class TestEndpoints:
    def test_section_4_the_secret_is_shown_once(self, client: FollowUp, api: Api, endpoint: WebhookEndpoint) -> None:
        assert endpoint.secret
        assert endpoint.secret.startswith("whsec_")
        assert (endpoint.status, endpoint.description) == ("enabled", "ours")
        assert "secret" not in api.get(f"/v1/webhook_endpoints/{endpoint.id}").json()
        assert "secret" not in api.get("/v1/webhook_endpoints").json()["data"][0]
        assert "secret" not in api.patch(f"/v1/webhook_endpoints/{endpoint.id}", {"description": None}).json()

    @pytest.mark.parametrize(
        ("body", "param"),
        [
            ({"enabledEvents": ["*"]}, "url"),
            ({"url": URL}, "enabledEvents"),
            ({"url": URL, "enabledEvents": []}, "enabledEvents"),
            ({"url": URL, "enabledEvents": "*"}, "enabledEvents"),
            ({"url": URL, "enabledEvents": ["visit.completed", "visit.done"]}, "enabledEvents[1]"),
        ],
    )
    def test_section_8_a_wrong_field_is_named(self, api: Api, body: Any, param: str) -> None:
        status, _, where = problem(api.post("/v1/webhook_endpoints", body))
        assert (status, where) == (400, param)

    def test_section_4_delete_removes_history_and_pending(
        self, client: FollowUp, service: MockService, inbox: Inbox, endpoint: WebhookEndpoint
    ) -> None:
        create_patient(client)
        deleted = client.webhook_endpoints.delete(endpoint.id)
        assert (deleted.id, deleted.object, deleted.deleted) == (endpoint.id, "webhook_endpoint", True)
        assert service.advance(days=3).ran == 0
        assert inbox.requests == []
        assert [*client.webhook_deliveries.list()] == []
        assert [*client.webhook_endpoints.list()] == []

    def test_section_3_disabling_cuts_what_is_pending(
        self, client: FollowUp, service: MockService, inbox: Inbox, endpoint: WebhookEndpoint
    ) -> None:
        inbox.status_for = lambda _: 500
        create_patient(client)
        service.advance()
        paused = client.webhook_endpoints.update(endpoint.id, disabled=True)
        assert paused.status == "disabled"
        cut = only_delivery(client)
        assert (cut.status, cut.next_attempt_at, cut.attempts) == ("failed", None, 1)
        assert cut.last_error == "The endpoint was disabled."
        create_patient(client, 1)
        assert service.advance(days=3).ran == 0
        client.webhook_endpoints.update(endpoint.id, disabled=False)
        create_patient(client, 2)
        assert service.advance().ran == 1

    def test_ping_is_sent_whatever_types_are_subscribed(
        self, client: FollowUp, service: MockService, inbox: Inbox, endpoint: WebhookEndpoint
    ) -> None:
        delivery = client.webhook_endpoints.ping(endpoint.id)
        assert (delivery.event_type, delivery.status) == ("webhook.ping", "pending")
        service.advance()
        assert inbox.requests[0].headers["x-service-event-type"] == "webhook.ping"
        assert client.webhook_deliveries.retrieve(delivery.id).status == "succeeded"

    def test_a_disabled_endpoint_cannot_be_pinged(self, api: Api, client: FollowUp, endpoint: WebhookEndpoint) -> None:
        client.webhook_endpoints.update(endpoint.id, disabled=True)
        response = api.post(f"/v1/webhook_endpoints/{endpoint.id}/ping")
        assert problem(response)[0:2] == (400, "webhook_endpoint_disabled")


@pytest.mark.usefixtures("endpoint")
class TestAttempts:
    def test_section_6_2_body_and_headers(
        self, client: FollowUp, service: MockService, inbox: Inbox, endpoint: WebhookEndpoint
    ) -> None:
        create_patient(client)
        (patient,) = client.patients.list()
        before = int(time.time())
        service.advance()
        (request,) = inbox.requests
        delivery = only_delivery(client)
        assert before <= int(request.headers["x-service-timestamp"]) <= time.time()
        assert request.headers["x-service-delivery-attempt"] == "1"
        assert request.headers["x-service-event-type"] == "patient.upserted"
        assert request.headers["user-agent"] == "Service-Webhooks/1.0"
        assert request.headers["content-type"] == "application/json"
        event = construct_event(request.content, request.headers, endpoint.secret or "")
        assert (event.id, event.type, event.ref) == (delivery.id, "patient.upserted", patient.id)
        assert (event.api_version, event.livemode) == ("2026-09-28", False)
        assert event.occurred_at == service.clock.now
        assert event.data["patient"]["id"] == patient.id
        assert json.loads(request.content) == delivery.payload
        assert (delivery.status, delivery.attempts, delivery.last_status_code) == ("succeeded", 1, 204)
        assert delivery.delivered_at == service.clock.now
        assert (delivery.next_attempt_at, delivery.last_error) == (None, None)
        assert client.webhook_endpoints.retrieve(endpoint.id).last_delivered_at == service.clock.now

    def test_section_6_2_the_nine_attempts(
        self, client: FollowUp, service: MockService, inbox: Inbox, endpoint: WebhookEndpoint
    ) -> None:
        inbox.status_for = lambda _: 500
        create_patient(client)
        started = service.clock.now
        advanced = service.advance(days=10)
        assert advanced.ran == 9
        assert [each.at - started for each in advanced.jobs] == SINCE_FIRST
        assert [each.headers["x-service-delivery-attempt"] for each in inbox.requests] == list("123456789")
        assert len({each.content for each in inbox.requests}) == 1
        delivery = only_delivery(client)
        assert (delivery.status, delivery.attempts, delivery.last_status_code) == ("failed", 9, 500)
        assert delivery.next_attempt_at is None
        attempts = service.attempts(delivery.id)
        assert [each.at - started for each in attempts] == SINCE_FIRST
        assert {each.trigger for each in attempts} == {"schedule"}
        last_error = client.webhook_endpoints.retrieve(endpoint.id).last_error
        assert last_error
        assert (last_error.at - started, last_error.message) == (SINCE_FIRST[-1], "HTTP status 500.")
        assert service.clock.now == started + timedelta(days=10)

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
        assert [each.trigger for each in service.attempts(again.id)][-1] == "manual"

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

    def test_a_handler_that_advances_the_clock_gets_an_error_instead_of_a_deadlock(
        self, client: FollowUp, service: MockService
    ) -> None:
        def handler(_: httpx.Request) -> httpx.Response:
            service.advance()
            return httpx.Response(204)

        service.mount(URL, handler)
        create_patient(client)
        with pytest.raises(RuntimeError, match="cannot advance the clock"):
            service.advance()
        assert only_delivery(client).last_error == "The receiver raised RuntimeError."


def test_step_in_a_server_runs_one_of_the_jobs_that_are_due_together() -> None:
    with MockServer(start_time="2026-09-28T12:00:00Z") as server, server.client() as client:
        for _ in range(2):
            client.appointments.create(patient={"phone": "+5491155550000"}, start_at="2026-10-05T12:00:00Z")
        assert [(server.step().ran, len(server.messages)) for _ in range(2)] == [(1, 1), (1, 2)]


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

    @pytest.mark.parametrize(
        ("status", "outcome"), [(200, "succeeded"), (299, "succeeded"), (307, "pending"), (400, "pending")]
    )
    def test_section_6_2_any_2xx_succeeds_and_redirects_are_not_followed(
        self, client: FollowUp, service: MockService, status: int, outcome: str
    ) -> None:
        inbox = Inbox(status_for=lambda _: status)
        with listening(inbox) as url:
            client.webhook_endpoints.create(url=url, enabled_events=["*"])
            create_patient(client)
            service.advance()
        assert len(inbox.requests) == 1
        delivery = only_delivery(client)
        assert (delivery.status, delivery.last_status_code) == (outcome, status)

    def test_a_refused_connection_is_a_failed_attempt(self, client: FollowUp, service: MockService) -> None:
        with listening(Inbox()) as url:
            pass
        client.webhook_endpoints.create(url=url, enabled_events=["*"])
        create_patient(client)
        service.advance()
        delivery = only_delivery(client)
        assert (delivery.status, delivery.last_status_code) == ("pending", None)
        assert "ConnectionRefusedError" in (delivery.last_error or "")

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


class TestSubscriptions:
    def test_section_6_2_each_endpoint_gets_what_it_subscribed_to(self, client: FollowUp) -> None:
        everything = client.webhook_endpoints.create(url=URL, enabled_events=["*"])
        some = client.webhook_endpoints.create(url=URL, enabled_events=["appointment.created", "visit.completed"])
        appointment = client.appointments.create(patient={"phone": "+5491155550000"}, start_at="2026-10-05T12:00:00Z")
        client.appointments.update(appointment.id, start_at="2026-10-06T12:00:00Z")
        client.appointments.update(appointment.id, type="x")
        client.appointments.cancel(appointment.id)
        client.appointments.cancel(appointment.id)

        def types(endpoint: WebhookEndpoint) -> list[str]:
            found = client.webhook_deliveries.list(webhook_endpoint=endpoint.id)
            return [each.event_type for each in found][::-1]

        assert types(everything) == [
            "patient.upserted", "appointment.created", "appointment.rescheduled", "appointment.cancelled",
        ]  # fmt: skip
        assert types(some) == ["appointment.created"]
        created = next(iter(client.webhook_deliveries.list(webhook_endpoint=some.id)))
        assert created.payload["data"]["appointment"]["id"] == appointment.id
        assert created.payload["data"]["patient"]["phone"] == "+5491155550000"
        assert created.payload["ref"] == appointment.id
        assert [*client.webhook_deliveries.list(status="succeeded")] == []


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
