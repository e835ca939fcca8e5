"""``occurredAt`` of webhooks: it strictly increases, so that a receiver can sort by it (specification, section 6.2)."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from support.http import Api
from support.receivers import Inbox
from support.waiting import wait_for

from followup import FollowUp, construct_event
from followup_mockserver import MockServer, MockService

URL = "https://clinic.example/hooks"
OTHER_URL = "https://clinic.example/others"
NOON = datetime(2026, 9, 28, 12, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)


@pytest.fixture(autouse=True)
def endpoint(client: FollowUp) -> str:
    return client.webhook_endpoints.create(url=URL, enabled_events=["*"]).secret or ""


def times(service: MockService | MockServer) -> list[datetime]:
    """Return the ``occurredAt`` of all deliveries, oldest first."""
    return [datetime.fromisoformat(each.payload["occurredAt"]) for each in reversed(service.deliveries)]


def test_repetitions_retries_and_resends_keep_it(client: FollowUp, service: MockService, endpoint: str) -> None:
    inbox = Inbox(status_for=lambda number: 500 if number < 3 else 204)
    service.mount(URL, inbox.receive)
    service.disturb(kind="duplicate")
    client.patients.create(phone="+5491155550000")
    service.advance(hours=1)
    (delivery,) = service.deliveries
    service.resend(delivery.id)
    assert len(inbox.requests) == 4
    received = [construct_event(each.content, each.headers, endpoint) for each in inbox.requests]
    assert {each.occurred_at for each in received} == {NOON}


def test_events_of_jobs_that_are_due_together_have_an_order(client: FollowUp, service: MockService) -> None:
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


def test_organizations_and_resets_begin_anew(service: MockService, client: FollowUp, api: Api) -> None:
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
    assert times(service)[-1] == NOON + MILLISECOND


@pytest.mark.parametrize("start_time", [None, "2026-09-28T12:00:00Z"])
def test_in_a_server_with_many_clients_no_two_events_share_it(start_time: Any) -> None:
    inbox = Inbox()
    with MockServer(rate_limit=0, start_time=start_time) as server:
        server.mount(URL, inbox.receive)
        with server.client() as client, ThreadPoolExecutor(8) as pool:
            client.webhook_endpoints.create(url=URL, enabled_events=["patient.upserted"])
            phones = [f"+54911555500{number:02}" for number in range(60)]
            list(pool.map(lambda phone: client.patients.create(phone=phone), phones))
            wait_for(lambda: len(inbox.requests) == 60)
        found = times(server)
    assert len(found) == 60
    assert found == sorted(set(found))
