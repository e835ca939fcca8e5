"""Whatever has happened to a mock, it, its fork and its loaded snapshot behave the same from then on."""

import json
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from support.histories import PROLOGUE, Step, World, histories, plain

from followup_mockserver import MockService

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
