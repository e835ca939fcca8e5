"""The request rate of all relays of an outbox."""

import itertools
import socket

import pytest
from sqlalchemy import Engine
from support.databases import engine_of
from support.responses import error
from support.server import Received, reply

from followup.outbox import Outbox

from .conftest import Desk, Opened, Service, batch, event, processed


def most_in_a_minute(times: list[float]) -> int:
    return max(sum(start <= each < start + 60 for each in times) for start in times)


def timed(service: Service, seconds: float = 0.0, status: int | None = None) -> None:
    """Let the service note the time of each request, and take so many seconds."""

    def act(connection: socket.socket, received: Received) -> bool:
        service.times.append(service.clock.seconds)
        service.clock.seconds += seconds
        action = batch(processed) if status is None else reply(status, error())
        return action(connection, received)

    service.script = [act]


def record_calls(outbox: Desk, engine: Engine, count: int) -> None:
    """Record events of one subject, each of which takes a call of its own."""
    with engine.begin() as connection:
        for number in range(count):
            outbox.record(connection, event(f"e{number}"), "one")


@pytest.mark.parametrize(("rate", "seconds"), [(1, 0.0), (7, 0.3), (30, 0.0)])
def test_never_more_than_the_limit_in_any_minute_and_no_less_than_90_percent(
    sqlite_url: str, service: Service, rate: int, seconds: float
) -> None:
    outboxes = [Outbox(sqlite_url, requests_per_minute=rate) for _ in range(2)]
    outboxes[0].create_tables()
    record_calls(outboxes[0], engine_of(sqlite_url), 3 * rate + 1)
    timed(service, seconds)
    for outbox in itertools.cycle(outboxes):
        if not outbox.drain(service.client, deadline=5).remaining:
            break
    assert len(service.times) == 3 * rate + 1
    assert most_in_a_minute(service.times) <= rate
    assert service.times[-1] <= 180 / 0.9 + 5


def test_calls_are_spread_after_a_short_burst(sqlite_url: str, service: Service) -> None:
    outbox = Outbox(sqlite_url, requests_per_minute=100)
    outbox.create_tables()
    record_calls(outbox, engine_of(sqlite_url), 20)
    timed(service)
    outbox.drain(service.client)
    assert sum(each == 0 for each in service.times) == 10
    assert service.times[-1] == pytest.approx(6.6, abs=0.1)


def test_failed_attempts_count(opened: Opened, service: Service) -> None:
    outbox = opened(requests_per_minute=4)
    outbox.add("e1")
    timed(service, status=503)
    while service.clock.seconds < 300:
        outbox.drain(service.client)
        service.clock.seconds += 1
    assert most_in_a_minute(service.times) <= 4
    assert len(service.times) >= 10


@pytest.mark.on_all
def test_each_outbox_has_a_rate_of_its_own(opened: Opened, service: Service) -> None:
    for name in ("default", "other"):
        outbox = opened(name=name, requests_per_minute=1)
        outbox.add("e1")
        assert outbox.drain(service.client).sent == 1
    assert service.clock.seconds == 0
