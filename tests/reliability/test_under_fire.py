"""Nothing is lost and nothing is done twice, however badly the network and the service behave."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from followup import FollowUp, FollowUpError, construct_event, exchange
from followup_mockserver import MockServer

CALLS = 400


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A server that spoils three calls in ten, before or after the work, in every way it knows."""
    monkeypatch.setattr(exchange, "FIRST_BACKOFF", 0.001)
    with MockServer(rate_limit=0, seed=7) as server:
        for kind, when, status in [
            ("status", "before", 429), ("status", "before", 500), ("status", "after", 500), ("status", "after", 503),
            ("disconnect", "before", 500), ("disconnect", "after", 500), ("truncate", "after", 500),
        ]:  # fmt: skip
            server.add_fault(
                operation="treatments.create", kind=kind, when=when, status=status, times=None, probability=0.05
            )  # type: ignore[arg-type]
        yield server


def names(server: MockServer) -> list[str]:
    server.clear_faults()
    with server.client() as client:
        return [each.name for each in client.treatments.list(limit=100)]


def test_exactly_once_from_threads(failing: MockServer) -> None:
    with failing.client(max_retries=20) as client, ThreadPoolExecutor(16) as pool:

        def create(number: int) -> str:
            return client.treatments.create(patient={"phone": "+5491155550000"}, name=f"t{number}").name

        assert list(pool.map(create, range(CALLS))) == [f"t{number}" for number in range(CALLS)]
    assert sorted(names(failing)) == sorted(f"t{number}" for number in range(CALLS))
    spoiled = [each for each in failing.requests_of("treatments.create") if each.status != 200]
    assert len(spoiled) > CALLS / 10


def test_exactly_once_from_tasks(failing: MockServer) -> None:
    async def run() -> list[str]:
        async with failing.async_client(max_retries=20) as client:

            async def create(number: int) -> str:
                made = await client.treatments.create(patient={"phone": "+5491155550000"}, name=f"t{number}")
                return made.name

            return await asyncio.gather(*map(create, range(CALLS)))

    assert asyncio.run(run()) == [f"t{number}" for number in range(CALLS)]
    assert sorted(names(failing)) == sorted(f"t{number}" for number in range(CALLS))


def test_a_caller_resumes_with_the_key_of_the_error(failing: MockServer) -> None:
    done = []
    with failing.client(max_retries=0) as client:
        for number in range(100):
            key = None
            while True:
                try:
                    made = client.treatments.create(
                        patient={"phone": "+5491155550000"}, name=f"t{number}", idempotency_key=key
                    )
                except FollowUpError as error:
                    key = error.idempotency_key  # type: ignore[attr-defined]
                else:
                    done.append(made.name)
                    break
    assert sorted(names(failing)) == sorted(done)
    assert len(done) == 100


def test_every_webhook_arrives_and_once_after_deduplication() -> None:
    """A receiver that fails a third of the time, and forgets to answer sometimes."""
    seen: list[str] = []
    lock = threading.Lock()

    def receive(request: httpx.Request) -> httpx.Response:
        event = construct_event(request.content, request.headers, secret)
        with lock:
            seen.append(event.id)
            count = len(seen)
        if count % 7 == 0:
            raise ConnectionError
        return httpx.Response(500 if count % 3 == 0 else 204)

    with MockServer(start_time="2026-09-28T12:00:00Z", rate_limit=0) as server, server.client() as client:
        server.mount("https://clinic.example", receive)
        endpoint = client.webhook_endpoints.create(url="https://clinic.example", enabled_events=["patient.upserted"])
        secret = endpoint.secret or ""
        for number in range(200):
            client.patients.create(phone=f"+5491155{number:06}")
        server.advance(days=3)
        deliveries = [*client.webhook_deliveries.list(limit=100)]
    assert {each.status for each in deliveries} == {"succeeded"}
    assert set(seen) == {each.id for each in deliveries}
    assert len(set(seen)) == 200 < len(seen)


def test_many_connections_and_all_operations_mixed_leave_the_books_balanced() -> None:
    with MockServer(rate_limit=0) as server:

        def work(number: int) -> int:
            with server.client(max_retries=0) as client:
                phone = f"+5491155{number % 20:06}"
                booked = 0
                for step in range(5):
                    patient = client.patients.create(phone=phone, full_name="Ana")
                    made = client.appointments.create(
                        patient=patient.id, start_at="2030-01-01T10:00:00Z", external_id=f"{number}-{step}"
                    )
                    booked += 1
                    client.appointments.update(made.id, type=f"{step}")
                    if step % 2:
                        client.appointments.cancel(made.id)
                    client.visits.create(patient=patient.id, visited_at="2026-01-01T10:00:00Z")
                    list_some(client)
                return booked

        with ThreadPoolExecutor(64) as pool:
            booked = sum(pool.map(work, range(64)))
        with server.client() as client:
            appointments = [*client.appointments.list(limit=100)]
            assert len(appointments) == booked == 320
            assert len([*client.patients.list()]) == 20
            assert len([*client.visits.list(limit=100)]) == 320
            cancelled = [each for each in appointments if each.status == "cancelled"]
            assert len(cancelled) == 128
            assert len(server.reminders) == 2 * (len(appointments) - len(cancelled))
        assert {each.status for each in server.requests} == {200}


def list_some(client: FollowUp) -> None:
    client.patients.list(limit=5)
    client.appointments.list(status="confirmed", limit=5)
    client.events.list(limit=1)
