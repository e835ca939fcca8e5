"""No client of a service in process sleeps: each of its waits advances the mock's clock instead."""

import asyncio
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import httpx
import pytest
import respx

from followup import APITimeoutError, AsyncFollowUp, FollowUp, RateLimitError
from followup_mockserver import MockEnvironment, MockServer, MockService

Call = Callable[[Any], Any]
Perform = Callable[..., Any]

NOON = "2026-09-28T12:00:00Z"
HOURS = 20 * 3600
"""Seconds that no test would survive if they were real."""


@pytest.fixture(autouse=True)
def nobody_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    sleep_of_tasks = asyncio.sleep

    async def sleep(seconds: float) -> None:
        assert seconds == 0
        await sleep_of_tasks(0)

    def fail(seconds: float) -> None:
        raise AssertionError(f"slept for {seconds} s")

    monkeypatch.setattr(time, "sleep", fail)
    monkeypatch.setattr(asyncio, "sleep", sleep)


@pytest.fixture
def service() -> Iterator[MockService]:
    with MockService(start_time=NOON, rate_limit=0) as service:
        yield service


def perform_sync(service: MockService, call: Call, **options: Any) -> Any:
    with service.client(**options) as client:
        return call(client)


def perform_async(service: MockService, call: Call, **options: Any) -> Any:
    async def run() -> Any:
        async with service.async_client(**options) as client:
            return await call(client)

    return asyncio.run(run())


@pytest.fixture(params=[perform_sync, perform_async], ids=["sync", "async"])
def perform(request: pytest.FixtureRequest) -> Perform:
    chosen: Perform = request.param
    return chosen


def list_patients(client: Any) -> Any:
    return client.patients.list()


def create(client: Any) -> Any:
    return client.patients.create(phone="+5491155550000")


def passed(service: MockService) -> float:
    """Return the seconds that the clock has advanced since the start."""
    noon = MockService(start_time=NOON).clock.now
    return (service.clock.now - noon).total_seconds()


# --- the waits of a call -----------------------------------------------------------------------------------------


def test_backoff_advances_the_clock(service: MockService, perform: Perform) -> None:
    service.add_fault(operation="patients.create", kind="status", status=503, times=2)
    assert perform(service, create).phone == "+5491155550000"
    first, second = service.waits
    assert 0.375 <= first <= 0.5
    assert 0.75 <= second <= 1.0
    assert passed(service) == pytest.approx(first + second, abs=0.001)


def test_the_service_s_own_rate_limit_is_waited_for(perform: Perform) -> None:
    service = MockService(start_time=NOON, rate_limit=2)
    with service.client() as client:
        client.account.retrieve()
        client.account.retrieve()
    perform(service, list_patients)
    (wait,) = service.waits
    assert 50 < wait <= 60
    assert [each.status for each in service.requests] == [200, 429, 200, 200]


@pytest.mark.parametrize("seconds", [0.001, 0.29, 4.35])
def test_a_wait_advances_the_clock_exactly(service: MockService, seconds: float) -> None:
    service.add_fault(operation="*", kind="delay", seconds=seconds)
    with service.client() as client:
        client.account.retrieve()
    assert service.waits == [seconds]
    assert service.clock.now == MockService(start_time=NOON).clock.now + timedelta(seconds=seconds)


# --- timeouts ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("timeout", [0.5, httpx.Timeout(60, read=0.5)])
def test_a_delay_longer_than_the_timeout_is_a_timeout(service: MockService, perform: Perform, timeout: Any) -> None:
    service.add_fault(operation="patients.list", kind="delay", seconds=4)
    with pytest.raises(APITimeoutError) as caught:
        perform(service, list_patients, timeout=timeout, max_retries=0)
    assert (caught.value.was_sent, caught.value.attempts) == ("maybe", 1)
    assert service.waits == [0.5]


@pytest.mark.parametrize("when", ["before", "after"])
def test_the_service_carries_out_what_the_client_no_longer_waits_for(
    service: MockService, perform: Perform, when: Any
) -> None:
    service.add_fault(operation="patients.create", kind="delay", seconds=4, when=when)
    patient = perform(service, create, timeout=0.5)
    assert patient.last_response.headers["idempotent-replayed"] == "true"
    timeout, backoff = service.waits
    assert timeout == 0.5
    assert backoff <= 0.5
    with service.client() as client:
        assert [each.id for each in client.patients.list()] == [patient.id]


def test_a_timeout_leaves_an_async_client_s_other_tasks_alone(service: MockService) -> None:
    service.add_fault(operation="patients.list", kind="delay", seconds=HOURS)

    async def run() -> list[Any]:
        async with service.async_client(timeout=2, max_retries=0) as client:
            return await asyncio.gather(client.patients.list(), client.account.retrieve(), return_exceptions=True)

    late, account = asyncio.run(run())
    assert isinstance(late, APITimeoutError)
    assert account.object == "account"


# --- pacing ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [7, 599])
def test_each_request_that_is_paced_waits_once(service: MockService, rate: int) -> None:
    burst = max(1, rate // 10)
    with service.client(requests_per_minute=rate) as client:
        for _ in range(burst + 30):
            client.account.retrieve()
    assert len(service.waits) == 30  # and no remainders of a microsecond
    assert service.waits == pytest.approx([60 / rate] * 30, abs=0.0001)
    assert passed(service) == pytest.approx(30 * 60 / rate, abs=0.002)


def test_advancing_the_clock_counts_for_the_request_rate(service: MockService) -> None:
    with service.client(requests_per_minute=1) as client:
        client.account.retrieve()
        service.advance(minutes=2)
        client.account.retrieve()
        assert service.waits == []
        client.account.retrieve()
        assert service.waits == [60.0]


# --- send_all ----------------------------------------------------------------------------------------------------


def test_send_all_waits_on_the_clock(service: MockService) -> None:
    service.add_fault(operation="events.create", kind="status", status=429, retry_after=55, times=4)
    event = {"id": "e-1", "type": "patient.upserted", "data": {"patient": {"phone": "+5491155550000"}}}
    with service.client(max_retries=1) as client:
        assert [each.status for each in client.events.send_all([event])] == ["processed"]  # type: ignore[list-item]
    assert service.waits == [55.0] * 4


# --- concurrent waits --------------------------------------------------------------------------------------------


def test_waits_of_tasks_overlap(service: MockService) -> None:
    service.add_fault(operation="*", kind="status", status=429, retry_after=50, times=10)

    async def run() -> None:
        async with service.async_client() as client:
            await asyncio.gather(*(client.account.retrieve() for _ in range(10)))

    asyncio.run(run())
    assert service.waits == [50.0] * 10
    assert passed(service) == 50


# --- the clock ---------------------------------------------------------------------------------------------------


def test_what_becomes_due_runs_at_the_next_advance_and_at_the_then_current_time(service: MockService) -> None:
    with service.client() as client:
        start = service.clock.now + timedelta(hours=24, seconds=30)
        client.appointments.create(patient={"phone": "+5491155550000"}, start_at=start)
        service.add_fault(operation="*", kind="status", status=429, retry_after=50)
        client.account.retrieve()  # the reminder of 24 hours before is due after 30 of these 50 seconds
        assert service.messages == []
        waited = service.clock.now
        service.advance()
        assert service.clock.now == waited
        (message,) = service.messages
        assert message.sent_at == waited
        assert service.reminders[0].send_at == start - timedelta(hours=3)


def test_a_server_delays_in_real_time() -> None:
    with MockServer(start_time=NOON, rate_limit=0) as server, server.client(timeout=0.05, max_retries=0) as client:
        server.add_fault(operation="*", kind="delay", seconds=HOURS)
        with pytest.raises(APITimeoutError):
            client.account.retrieve()
        assert server.waits == []
        assert server.clock.now == MockService(start_time=NOON).clock.now


# --- organizations -----------------------------------------------------------------------------------------------


def test_waits_belong_to_the_organization_of_the_key(service: MockService) -> None:
    key = service.create_organization(name="other").keys[0].value
    other = service.organization(key)
    before = other.clock.now
    other.add_fault(operation="*", kind="status", status=429, retry_after=50)
    other.add_fault(operation="*", kind="delay", seconds=7)
    with service.client(api_key=key) as client:
        client.account.retrieve()
    assert other.waits == [50.0, 7.0]
    assert other.clock.now == before + timedelta(seconds=57)
    assert (service.waits, passed(service)) == ([], 0)
    other.reset()
    assert other.waits == []


# --- clients that the code under test creates --------------------------------------------------------------------


def fail_with_429(service: MockService, times: int = 1) -> None:
    service.add_fault(operation="*", kind="status", status=429, retry_after=50, times=times)


@pytest.mark.parametrize("kind", ["sync", "async", "its own HTTP client"])
@pytest.mark.parametrize("path", ["", "/api"])
def test_a_client_of_the_code_under_test_does_not_sleep(service: MockService, kind: str, path: str) -> None:
    fail_with_429(service)
    service.add_fault(operation="*", kind="delay", seconds=25)
    options: Any = {"api_key": service.api_key, "base_url": f"{service.url}{path}", "timeout": 30}

    async def run() -> None:
        async with AsyncFollowUp(**options) as client:
            await client.account.retrieve()

    with httpx.Client() as http, MockEnvironment(service).intercept():
        if kind == "async":
            asyncio.run(run())
        else:
            own = {"http_client": http} if kind == "its own HTTP client" else {}
            with FollowUp(**options, **own) as client:
                client.account.retrieve()
    assert service.waits == [50.0, 25.0]
    assert len(service.requests) == 2


def test_a_client_that_existed_before_does_not_sleep_and_sleeps_again_afterwards(
    service: MockService, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    with FollowUp(api_key=service.api_key, base_url=service.url, requests_per_minute=1) as client:
        for _ in range(2):  # as in two tests, whose clocks both start at noon
            with MockService(start_time=NOON, rate_limit=0) as fresh, MockEnvironment(fresh).intercept():
                client.account.retrieve()
                assert fresh.waits == []
                client.account.retrieve()
                assert fresh.waits == [60.0]
    assert slept == []
    with FollowUp(api_key=service.api_key, base_url=service.url, max_retries=1) as client:
        with MockEnvironment(service).intercept():
            client.account.retrieve()
        respx.route().respond(429, headers={"Retry-After": "3"})
        with respx.mock, pytest.raises(RateLimitError):
            client.account.retrieve()
    assert slept == [3.0]
