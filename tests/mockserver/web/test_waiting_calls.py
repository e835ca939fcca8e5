"""Many calls that wait for a change or for receivers leave threads for the API."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait

import httpx
import pytest
from support.receivers import Inbox, listening

from followup_mockserver import MockServer

MANY = 70
GUARD = 60
"""Seconds after which a call is considered stuck."""


@pytest.fixture
def http(server: MockServer) -> Iterator[httpx.Client]:
    limits = httpx.Limits(max_connections=2 * MANY)
    with httpx.Client(base_url=server.url, limits=limits, timeout=GUARD, trust_env=False) as client:
        yield client


def test_the_api_responds_however_many_wait_for_a_change(server: MockServer, http: httpx.Client) -> None:
    with ThreadPoolExecutor(MANY) as pool, server.client(timeout=GUARD) as client:
        polls = [pool.submit(http.get, "/_mock/messages?wait=60") for _ in range(MANY)]
        assert client.account.retrieve().id
        assert len(wait(polls, timeout=0).not_done) == MANY
        server.stop()
        assert {poll.result().status_code for poll in polls} == {200}


def test_a_receiver_that_calls_the_api_gets_its_response_however_many_advance(
    server: MockServer, http: httpx.Client
) -> None:
    arrived, all_called = threading.Semaphore(0), threading.Event()
    inbox = Inbox()
    with listening(inbox) as url, server.client(timeout=GUARD) as client, ThreadPoolExecutor(MANY) as pool:

        def respond(_: int) -> int:
            arrived.release()
            all_called.wait(GUARD)
            return 204 if client.account.retrieve().id else 500

        inbox.status_for = respond
        client.webhook_endpoints.create(url=url, enabled_events=["patient.upserted"])
        client.patients.create(phone="+5491155550000")
        assert arrived.acquire(timeout=GUARD)
        advances = [pool.submit(http.post, "/_mock/clock/advance", json={"seconds": 1}) for _ in range(MANY)]
        all_called.set()
        assert {advance.result().status_code for advance in advances} == {200}
    (delivery,) = server.deliveries
    assert (delivery.status, delivery.attempts) == ("succeeded", 1)
