"""A stored snapshot loads as long as its version is the current one; original, fork and loaded copy behave the same.

``version_3.json`` is what ``support.rich_mock.rich_mock().save()`` returned when version 3 was made.
"""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, example, given, settings
from support.histories import PROLOGUE, Step, World, histories, plain

from followup import verify_signature
from followup_mockserver import MockService

FOLDER = Path(__file__).parent / "snapshots"
ANA = "pat_Or1adWBD6rctjiqpWwrgoMgP"
SECRET = "whsec_nJ7vjScemPXoooHiyHB1jVAB"


@pytest.fixture
def service() -> MockService:
    return MockService.load(FOLDER / "version_3.json")


def test_version_3_continues_in_time(service: MockService) -> None:
    received: list[httpx.Request] = []

    def receive(request: httpx.Request) -> httpx.Response:
        received.append(request)
        return httpx.Response(204)

    service.mount("https://clinic.example/hooks", receive)
    service.mount("https://lab.example/hooks", lambda _: httpx.Response(500))
    assert service.clock.frozen
    assert service.clock.now == datetime(2026, 9, 28, 12, 2, tzinfo=UTC)
    service.advance(days=5)
    kinds = [(message.kind, message.sent_at.isoformat()) for message in service.messages[2:]]
    assert kinds == [
        ("post_visit", "2026-09-28T16:00:00+00:00"),
        ("reminder", "2026-10-01T12:30:00+00:00"),
        ("reminder", "2026-10-02T09:30:00+00:00"),
        ("reminder", "2026-10-02T11:48:00+00:00"),
    ]
    assert received
    for request in received:
        verify_signature(request.content, request.headers, SECRET)
    assert {each.status for each in service.deliveries if each.attempts} == {"succeeded", "failed"}
    with service.client() as client:
        assert not client.treatments.list().data[0].active


SLOW = settings(
    max_examples=settings.default.max_examples // 5,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def state_of(world: World) -> Any:
    service = world.service
    saved = service.save()
    for organization in saved["organizations"]:
        for attempt in organization["attempts"]:
            for name in ("seconds", "timestamp", "signature"):
                del attempt[name]
    lists = [service.jobs, service.reminders, service.messages, service.deliveries, service.faults]
    attempts = [service.attempts(delivery.id) for delivery in service.deliveries]
    return [saved, plain(lists), plain(attempts), plain(service.webhook_faults), world.received, chains_of(world)]


def chains_of(world: World) -> list[list[tuple[str, str, str, str]]]:
    """Return the chain of causes of each object, without requests: the journal of a copy begins empty."""
    tenant = world.service._tenant
    collections = (tenant.patients, tenant.appointments, tenant.events, tenant.webhook_deliveries)
    ids = [each.id for collection in collections for each in collection]
    chains = [world.service.explain(each) for each in [*ids, *(message.id for message in tenant.messages)]]
    return [
        [(str(each.at), each.kind, str(each.cause), each.outcome) for each in chain if each.kind != "request"]
        for chain in chains
    ]


@SLOW
@given(before=histories, after=histories)
@example(
    before=[("create a patient", 1, 1, 1), ("register", 0, 0, 1), ("fault", 0, 0, 5), ("book", 1, 2, 4)],
    after=[("create a patient", 1, 1, 4), ("book", 1, 2, 4), ("advance", 5, 0, 4), ("list", 0, 5, 0)],
)
@example(before=[("disturb", 0, 1, 0), ("cancel", 0, 0, 1)], after=[("ping", 0, 0, 0)])
def test_original_fork_and_loaded_snapshot_behave_the_same(before: list[Step], after: list[Step]) -> None:
    service = MockService(start_time="2026-09-28T12:00:00Z", seed=5, rate_limit=0)
    original = World(service)
    for step in [*PROLOGUE, *before]:
        original.do(step)
    text = json.dumps(service.save())
    copies = [original.twin(service.fork()), original.twin(MockService.load(json.loads(text)))]
    original.received.clear()
    worlds = [original, *copies]
    for step in after:
        results = [world.do(step) for world in worlds]
        assert results[1] == results[0], f"fork: {step}"
        assert results[2] == results[0], f"loaded: {step}"
    for world in worlds:
        world.service.clear_faults()
        world.do(("advance", 5, 0, 23))
    expected = state_of(original)
    assert state_of(copies[0]) == expected
    assert state_of(copies[1]) == expected
