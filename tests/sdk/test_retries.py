"""One call through its attempts, over real sockets, with both clients."""

import asyncio
import socket
import time
from typing import Any

import pytest
from support.answers import error, page, patient
from support.drivers import Driver
from support.server import Action, Received, ScriptedServer, drip, hang, hang_up, reply

from followup import (
    APIConnectionError,
    APIStatusError,
    APITimeoutError,
    ConflictError,
    FollowUp,
    InternalServerError,
    NotFoundError,
    RateLimitError,
)
from followup import (
    _call as exchange,
)


def create(client: Any) -> Any:
    return client.patients.create(phone="+54 9 11 5555-0000", full_name="Ana Pérez")


def retrieve(client: Any) -> Any:
    return client.patients.retrieve("pat_1")


@pytest.fixture
def sleeps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits between attempts, in seconds, which are recorded and not waited."""
    recorded: list[float] = []
    sleep_of_tasks = asyncio.sleep

    async def sleep(seconds: float) -> None:
        if seconds > 0:
            recorded.append(seconds)
        await sleep_of_tasks(0)

    monkeypatch.setattr(time, "sleep", recorded.append)
    monkeypatch.setattr(asyncio, "sleep", sleep)
    return recorded


@pytest.mark.usefixtures("quick_backoff")
class TestRetries:
    @pytest.mark.parametrize("failure", [reply(408), reply(409), reply(429), reply(500), reply(503), hang_up])
    def test_a_passing_failure_is_tried_again(self, server: ScriptedServer, driver: Driver, failure: Action) -> None:
        server.script = [failure, reply(200, patient())]
        assert driver.call(server.url, create).id == "pat_1"
        assert len(server.received) == 2

    def test_every_attempt_carries_the_same_key_and_the_same_bytes(
        self, server: ScriptedServer, driver: Driver
    ) -> None:
        server.script = [reply(500), hang_up, reply(200, patient())]
        driver.call(server.url, create)
        keys = {each.headers["idempotency-key"] for each in server.received}
        assert len(keys) == 1
        assert keys != {""}
        assert len({each.body for each in server.received}) == 1
        assert len(server.received) == 3

    def test_a_key_of_the_caller_is_the_one_that_is_sent(self, server: ScriptedServer, driver: Driver) -> None:
        server.script = [reply(200, patient())]
        driver.call(server.url, lambda client: client.patients.create(phone="1", idempotency_key="mine-1"))
        assert server.received[0].headers["idempotency-key"] == "mine-1"

    def test_two_calls_have_two_keys(self, server: ScriptedServer) -> None:
        server.script = [reply(200, patient())]
        with FollowUp(api_key="k", base_url=server.url) as client:
            create(client)
            create(client)
        first, second = (each.headers["idempotency-key"] for each in server.received)
        assert first != second

    @pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 422])
    def test_a_lasting_failure_is_not_tried_again(self, server: ScriptedServer, driver: Driver, status: int) -> None:
        server.script = [reply(status, error())]
        with pytest.raises(APIStatusError) as caught:
            driver.call(server.url, create)
        assert caught.value.status_code == status
        assert caught.value.attempts == len(server.received) == 1

    def test_the_error_tells_key_attempts_and_that_it_was_sent(self, server: ScriptedServer, driver: Driver) -> None:
        server.script = [reply(500)]
        with pytest.raises(InternalServerError) as caught:
            driver.call(server.url, create, max_retries=3)
        assert caught.value.attempts == len(server.received) == 4
        assert caught.value.idempotency_key == server.received[0].headers["idempotency-key"]
        assert caught.value.was_sent == "yes"
        assert caught.value.operation == "patients.create"

    def test_no_retries_means_one_attempt(self, server: ScriptedServer, driver: Driver) -> None:
        server.script = [hang_up]
        with pytest.raises(APIConnectionError) as caught:
            driver.call(server.url, create, max_retries=0)
        assert len(server.received) == 1
        assert caught.value.was_sent == "maybe"

    def test_a_refused_connection_was_never_sent(self, driver: Driver) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
        with pytest.raises(APIConnectionError) as caught:
            driver.call(f"http://127.0.0.1:{port}", create, max_retries=1)
        assert caught.value.was_sent == "no"
        assert caught.value.attempts == 2
        assert caught.value.idempotency_key

    def test_once_sent_a_later_refusal_does_not_hide_it(self, server: ScriptedServer, driver: Driver) -> None:
        def hang_up_for_good(connection: socket.socket, received: Received) -> bool:
            server.stop_listening()
            return hang_up(connection, received)

        server.script = [hang_up_for_good]
        with pytest.raises(APIConnectionError) as caught:
            driver.call(server.url, create, max_retries=1)
        assert caught.value.was_sent == "maybe"

    def test_a_patch_is_tried_again_without_a_key(self, server: ScriptedServer, driver: Driver) -> None:
        server.script = [reply(500), reply(200, patient())]
        driver.call(server.url, lambda client: client.patients.update("pat_1", full_name="Ana"))
        assert [each.method for each in server.received] == ["PATCH", "PATCH"]
        assert "idempotency-key" not in server.received[0].headers

    @pytest.mark.parametrize("failure", [reply(500), hang_up])
    def test_a_delete_that_finds_its_object_gone_on_a_retry_is_done(
        self, server: ScriptedServer, driver: Driver, failure: Action
    ) -> None:
        server.script = [failure, reply(404, error(code="resource_missing"))]
        deleted = driver.call(server.url, lambda client: client.webhook_endpoints.delete("we_1"))
        assert (deleted.id, deleted.object, deleted.deleted) == ("we_1", "webhook_endpoint", True)

    @pytest.mark.parametrize("script", [[], [reply(429)]])
    def test_a_delete_that_nobody_did_is_not_found(
        self, server: ScriptedServer, driver: Driver, script: list[Action]
    ) -> None:
        server.script = [*script, reply(404, error(code="resource_missing"))]
        with pytest.raises(NotFoundError):
            driver.call(server.url, lambda client: client.webhook_endpoints.delete("we_1"))

    def test_a_retried_list_page_goes_on(self, server: ScriptedServer, driver: Driver) -> None:
        server.script = [
            reply(200, page(patient("pat_2"), more=True)),
            reply(503),
            reply(200, page(patient("pat_1"))),
        ]
        items = driver.items(server.url, lambda client: client.patients.list())
        assert [each.id for each in items] == ["pat_2", "pat_1"]


class TestRetryAfter:
    def test_seconds_are_waited(self, server: ScriptedServer, driver: Driver, sleeps: list[float]) -> None:
        server.script = [reply(429, headers={"Retry-After": "0.3"}), reply(200, patient())]
        driver.call(server.url, create)
        assert sleeps == [0.3]

    def test_an_http_date_is_a_time_to_wait_for(self, server: ScriptedServer, driver: Driver) -> None:
        server.script = [
            reply(503, headers={"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}),
            reply(200, patient()),
        ]
        assert driver.call(server.url, create).id == "pat_1"

    def test_more_than_a_minute_is_raised_and_not_slept_through(self, server: ScriptedServer, driver: Driver) -> None:
        server.script = [reply(429, error("rate_limit_error"), headers={"Retry-After": "61"})]
        with pytest.raises(RateLimitError) as caught:
            driver.call(server.url, create)
        assert caught.value.retry_after == 61
        assert len(server.received) == 1

    @pytest.mark.usefixtures("quick_backoff")
    @pytest.mark.parametrize("value", ["soon", "nan", "inf", "", "-5"])
    def test_nonsense_is_ignored(self, server: ScriptedServer, driver: Driver, value: str) -> None:
        server.script = [reply(503, headers={"Retry-After": value}), reply(200, patient())]
        assert driver.call(server.url, create).id == "pat_1"


class TestBackoff:
    def test_it_doubles_from_half_a_second_to_eight_and_is_spread(self) -> None:
        for attempt, longest in [(1, 0.5), (2, 1), (3, 2), (4, 4), (5, 8), (6, 8), (50, 8), (5000, 8)]:
            waits = {exchange.backoff(attempt) for _ in range(50)}
            assert longest * 0.75 <= min(waits) <= max(waits) <= longest
            assert len(waits) > 10

    def test_a_stale_connection_is_replaced_at_once(
        self, server: ScriptedServer, driver: Driver, sleeps: list[float]
    ) -> None:
        server.script = [reply(200, patient()), hang_up, reply(200, patient())]

        def twice(client: Any) -> Any:
            first = retrieve(client)
            if driver.name == "sync":
                return retrieve(client)

            async def both() -> Any:
                await first
                return await retrieve(client)

            return both()

        driver.call(server.url, twice)
        assert [each.connection for each in server.received] == [1, 1, 2]
        assert sleeps == []


class TestTimeouts:
    def test_a_silent_server_is_a_timeout(self, server: ScriptedServer, driver: Driver) -> None:
        server.script = [hang(server.released)]
        with pytest.raises(APITimeoutError) as caught:
            driver.call(server.url, create, timeout=0.1, max_retries=0)
        assert caught.value.was_sent == "maybe"

    @pytest.mark.parametrize("how", ["hang", "drip the body", "drip the headers", "fail for ever", "ask to wait"])
    def test_the_deadline_bounds_the_whole_call(self, server: ScriptedServer, driver: Driver, how: str) -> None:
        server.script = [
            {
                "hang": hang(server.released),
                "drip the body": drip(server.released),
                "drip the headers": drip(server.released, headers=True),
                "fail for ever": reply(503),
                "ask to wait": reply(503, headers={"Retry-After": "30"}),
            }[how]
        ]
        with pytest.raises((APITimeoutError, InternalServerError)) as caught:
            # Shorter than any first backoff, so that there is no time for a second attempt.
            driver.call(server.url, create, deadline=0.3, max_retries=1, timeout=5)
        assert caught.value.attempts == len(server.received) == 1
        assert isinstance(caught.value, APITimeoutError) == (how in ("hang", "drip the body", "drip the headers"))

    def test_a_call_within_its_deadline_is_as_any_other(self, server: ScriptedServer, driver: Driver) -> None:
        server.script = [reply(200, patient(), headers={"Request-Id": "req_1"})]
        assert driver.call(server.url, create, deadline=5).last_response.request_id == "req_1"


def test_a_conflict_that_lasts_is_raised(server: ScriptedServer, driver: Driver, quick_backoff: None) -> None:
    server.script = [reply(409, error("idempotency_error", code="idempotency_key_in_use"))]
    with pytest.raises(ConflictError) as caught:
        driver.call(server.url, create)
    assert caught.value.attempts == 3
