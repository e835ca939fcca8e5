"""Calls that wait for a change or for receivers leave threads for the API."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed, wait

import httpx
import pytest
from support.http import problem
from support.receivers import Inbox, listening

from followup_mockserver import MockServer

MANY = 70
"""More calls than the server has threads."""
WAITING = 32
"""The number of calls that may wait at the same time."""
GUARD = 60
"""Seconds after which a call is considered stuck."""


@pytest.fixture
def http(server: MockServer) -> Iterator[httpx.Client]:
    limits = httpx.Limits(max_connections=2 * MANY)
    with httpx.Client(base_url=server.url, limits=limits, timeout=GUARD, trust_env=False) as client:
        yield client


def first(calls: "list[Future[httpx.Response]]", count: int) -> list[httpx.Response]:
    """Return the first responses; the other calls continue."""
    found = []
    for call in as_completed(calls, timeout=GUARD):
        found.append(call.result())
        if len(found) == count:
            break
    return found


def test_the_api_responds_however_many_wait_for_a_change(server: MockServer, http: httpx.Client) -> None:
    with ThreadPoolExecutor(MANY) as pool, server.client(timeout=GUARD) as client:
        polls = [pool.submit(http.get, "/_mock/messages?wait=60") for _ in range(MANY)]
        responses = first(polls, MANY - WAITING)
        assert {each.status_code for each in responses} == {200}
        assert client.account.retrieve().id
        assert len(wait(polls, timeout=0).not_done) == WAITING
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
        rejected = first(advances, MANY - WAITING)
        all_called.set()
        statuses = [advance.result().status_code for advance in advances]
        assert statuses.count(200) == WAITING
        assert statuses.count(429) == MANY - WAITING
        assert problem(rejected[0]) == (429, "too_many_waiting", None)
        assert rejected[0].headers["retry-after"] == "1"
    (delivery,) = server.deliveries
    assert (delivery.status, delivery.attempts) == ("succeeded", 1)


def test_a_slot_is_free_again_after_each_call(http: httpx.Client) -> None:
    for _ in range(WAITING + 1):
        assert http.post("/_mock/clock/advance", json={"seconds": 1}).status_code == 200
        assert http.post("/_mock/clock/advance", json={"seconds": -1}).status_code == 400
