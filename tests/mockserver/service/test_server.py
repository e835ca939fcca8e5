"""The mock on a socket: faults on the wire, other tools in the process, a server that starts and stops cleanly."""

import errno
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from typing import Any

import freezegun
import httpx
import pytest
import time_machine
from support.receivers import Inbox, listening
from support.sockets import connect, rest
from support.waiting import succeeded, wait_for

from followup import FollowUp, WebhookEndpoint
from followup_mockserver import MockServer
from followup_mockserver.control import access_to


def send_raw(server: MockServer, data: bytes) -> bytes:
    with connect(server) as connection:
        connection.sendall(data)
        return rest(connection)


HANG_GUARD = 60
"""Seconds after which something hangs."""

GET_ACCOUNT = b"GET /v1/account HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer fu_test_mock\r\n\r\n"


class TestFaultsOnTheWire:
    def test_a_disconnect_sends_not_a_byte(self, server: MockServer) -> None:
        server.add_fault(operation="*", kind="disconnect")
        assert send_raw(server, GET_ACCOUNT) == b""

    def test_a_truncated_response_is_shorter_than_its_content_length(self, server: MockServer) -> None:
        server.add_fault(operation="*", kind="truncate", when="after")
        head, _, body = send_raw(server, GET_ACCOUNT).partition(b"\r\n\r\n")
        assert b"200 OK" in head
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        assert 0 < len(body) < length

    @pytest.mark.parametrize("kind", ["disconnect", "truncate"])
    @pytest.mark.parametrize("when", ["before", "after"])
    def test_a_retry_does_not_do_it_twice(self, server: MockServer, kind: Any, when: Any) -> None:
        server.add_fault(operation="treatments.create", kind=kind, when=when)
        with server.client() as client:
            made = client.treatments.create(patient={"phone": "+5491155550000"}, name="x")
            assert [each.id for each in client.treatments.list()] == [made.id]
        statuses = [each.status for each in server.requests if each.operation == "treatments.create"]
        assert len(statuses) == 2


class TestDeliveries:
    def test_a_mounted_handler_that_advances_the_clock_gets_an_error_instead_of_a_deadlock(
        self, server: MockServer
    ) -> None:
        def handler(_: httpx.Request) -> httpx.Response:
            server.advance()
            return httpx.Response(204)

        server.mount("https://clinic.example", handler)
        with server.client() as client:
            client.webhook_endpoints.create(url="https://clinic.example", enabled_events=["*"])
            client.patients.create(phone="+5491155550000")
            (delivery,) = wait_for(lambda: [each for each in server.deliveries if each.last_error])
        assert delivery.last_error == "The receiver raised RuntimeError."

    def test_on_request_the_second_of_two_always_arrives_first(self, server: MockServer) -> None:
        inbox = Inbox()
        with listening(inbox) as url, server.client() as client:
            client.webhook_endpoints.create(url=url, enabled_events=["*"])
            made = [f"+549115550{number:04}" for number in range(40)]
            for number in range(0, 40, 2):
                server.disturb(kind="reorder")
                for phone in made[number : number + 2]:
                    client.patients.create(phone=phone)
                assert len(succeeded(server, number + 2)) == number + 2
        arrived = [json.loads(each.content)["data"]["patient"]["phone"] for each in inbox.requests]
        assert arrived == [phone for number in range(0, 40, 2) for phone in (made[number + 1], made[number])]

    def test_advance_waits_for_what_is_under_way(self, server: MockServer) -> None:
        inbox = Inbox(status_for=lambda _: 500)
        with listening(inbox) as url, server.client() as client:
            client.webhook_endpoints.create(url=url, enabled_events=["*"])
            client.patients.create(phone="+5491155550000")
            server.advance(days=3)
            (delivery,) = client.webhook_deliveries.list()
        assert (delivery.status, delivery.attempts) == ("failed", 9)
        assert [each.headers["x-service-delivery-attempt"] for each in inbox.requests] == list("123456789")

    def test_reset_while_an_attempt_is_under_way_revives_nothing(self, server: MockServer) -> None:
        release, arrived = threading.Event(), threading.Event()

        def slow(_: httpx.Request) -> httpx.Response:
            arrived.set()
            release.wait(60)
            return httpx.Response(500)

        server.mount("https://clinic.example", slow)
        with server.client() as client:
            client.webhook_endpoints.create(url="https://clinic.example", enabled_events=["*"])
            client.patients.create(phone="+5491155550000")
            assert arrived.wait(60)
            server.reset()
            release.set()
            assert server.advance(days=3).ran == 0
            assert (server.deliveries, server.jobs) == ([], [])


URL = "https://clinic.example"
AT_ONCE = 4
"""Attempts that one endpoint gets at the same time."""


class Blocked:
    """A receiver that does not respond until it is released, so that further attempts queue up before it."""

    def __init__(self, server: MockServer) -> None:
        self.requests: list[httpx.Request] = []
        self._arrived = threading.Semaphore(0)
        self._released = threading.Event()
        server.mount(URL, self._receive)

    def fill(self, client: FollowUp, deliveries: int = 12) -> WebhookEndpoint:
        """An endpoint with more deliveries than it takes at a time; returns once it is busy."""
        endpoint = client.webhook_endpoints.create(url=URL, enabled_events=["patient.upserted"])
        for number in range(deliveries):
            client.patients.create(phone=f"+54911555500{number:02}")
        assert all(self._arrived.acquire(timeout=60) for _ in range(AT_ONCE))
        return endpoint

    def release(self) -> None:
        self._released.set()

    def _receive(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        self._arrived.release()
        self._released.wait(60)
        return httpx.Response(204)


class TestQueuedAttempts:
    @pytest.mark.parametrize(
        "end",
        [
            lambda server, client, endpoint: client.webhook_endpoints.delete(endpoint.id),
            lambda server, client, endpoint: client.webhook_endpoints.update(endpoint.id, disabled=True),
            lambda server, client, endpoint: server.reset(),
        ],
        ids=["delete", "disable", "reset"],
    )
    def test_section_3_what_still_waits_its_turn_is_cut(self, server: MockServer, end: Any) -> None:
        with server.client() as client:
            blocked = Blocked(server)
            endpoint = blocked.fill(client)
            end(server, client, endpoint)
            client.webhook_endpoints.create(url=URL, enabled_events=["webhook.ping"])
            last = client.webhook_endpoints.ping(client.webhook_endpoints.list().data[0].id)
            blocked.release()
            server.advance()  # the ping queued up behind all the others
        assert [json.loads(each.content)["id"] for each in blocked.requests[AT_ONCE:]] == [last.id]

    def test_section_6_2_the_time_of_sending_is_not_that_of_queueing(self, server: MockServer) -> None:
        with time_machine.travel("2026-09-28T12:00:00Z", tick=False) as real_time, server.client() as client:
            blocked = Blocked(server)
            blocked.fill(client)
            real_time.shift(600)
            blocked.release()
            server.advance()
            sent = [int(each.headers["x-service-timestamp"]) for each in blocked.requests]
        assert {each - sent[0] for each in sent[AT_ONCE:]} == {600}


class TestReset:
    def test_a_long_poll_sees_what_happens_after_a_reset(self, server: MockServer) -> None:
        found: list[int] = []
        version = access_to(server).tenant.version
        url = f"{server.url}/_mock/changes?since={version}&wait=60"
        waiting = threading.Thread(
            target=lambda: found.append(httpx.get(url, timeout=20, trust_env=False).json()["version"])
        )
        waiting.start()
        server.reset()
        waiting.join(60)
        assert found != [version]


class TestOtherToolsInTheProcess:
    def deliver(self, server: MockServer, client: FollowUp) -> list[httpx.Request]:
        inbox = Inbox()
        with listening(inbox) as url:
            client.webhook_endpoints.create(url=url, enabled_events=["*"])
            client.patients.create(phone="+5491155550000")
            assert succeeded(server)
        return inbox.requests

    @pytest.mark.parametrize("freeze", [freezegun.freeze_time, partial(time_machine.travel, tick=False)])
    def test_frozen_time(self, freeze: Any) -> None:
        """A webhook is signed with the real time, and a timer runs."""
        with freeze("2026-09-28T12:00:00Z"), MockServer(allow_http_webhooks=True) as server, server.client() as client:
            (request,) = self.deliver(server, client)
            assert int(request.headers["x-service-timestamp"]) == int(time.time())
            server.update_organization(post_visit_hours=0.1 / 3600)
            client.visits.create(patient={"phone": "+5491155550000"}, visited_at=datetime.now(UTC))
            assert wait_for(lambda: server.messages)

    def test_proxy_variables(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, "http://127.0.0.1:9")
        with MockServer(allow_http_webhooks=True) as server:
            own = httpx.Client(trust_env=False)
            with own, server.client(http_client=own) as client:
                assert len(self.deliver(server, client)) == 1


class TestStartAndStop:
    def test_a_taken_port_is_an_error_at_once_and_leaves_no_thread(self, server: MockServer) -> None:
        before = threading.active_count()
        with pytest.raises(OSError) as caught:
            MockServer(port=int(server.url.rsplit(":", 1)[1]))
        assert caught.value.errno == errno.EADDRINUSE
        assert threading.active_count() == before

    def test_stopping_finishes_the_requests_in_progress(self) -> None:
        with ThreadPoolExecutor(1) as pool:
            with MockServer() as server:
                server.add_fault(operation="*", kind="delay", seconds=0.3)
                headers = {"Authorization": f"Bearer {server.api_key}"}
                response = pool.submit(httpx.get, f"{server.url}/v1/account", headers=headers, trust_env=False)
                while server.faults:
                    assert not response.done()
            assert response.result().status_code == 200
