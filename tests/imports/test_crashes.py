"""Runs that are killed at any moment, and runs at the same time: at the service, everything is there once."""

import os
import random
import time
import warnings
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event
from support.exports import MORNING, export, import_of, row
from support.forks import forking
from support.systems import KILL, KILLED

from followup.outbox import Outbox
from followup_mockserver import MockService

pytestmark = pytest.mark.on_all


def killed(work: Callable[[], Any], after: float | None = None) -> bool:
    """Run in a forked child, kill it after so many seconds if it still runs, and return whether it was killed."""
    child = forking().Process(target=work)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child.start()
    if after is not None:
        time.sleep(after)
        child.kill()
    child.join(120)
    assert child.exitcode in (0, KILLED)
    return child.exitcode != 0


def dying_at(statement: int, work: Callable[[], Any]) -> Callable[[], None]:
    """Return work that is killed before one of its statements, counting commits, if it gets so far."""
    left = iter(range(statement, 0, -1))

    def count(*_: object) -> None:
        if next(left, None) is None:
            os.kill(os.getpid(), KILL)

    def run() -> None:
        event.listen(Engine, "before_cursor_execute", count)
        event.listen(Engine, "commit", count)
        work()

    return run


def moved(numbers: range, hours: int) -> list[dict[str, str]]:
    return [row(number, MORNING + timedelta(hours=hours if number % 3 == 0 else 0)) for number in numbers]


def check(outbox: Outbox, expected: list[dict[str, str]], events: int) -> None:
    """Check that the service has these rows, each once, after so many events."""
    assert outbox.status().waiting == events
    with MockService(rate_limit=0) as service, service.client() as client:
        report = outbox.drain(client)
        assert (report.sent, report.rejected) == (events, 0)
        there = [(each.external_id, each.start_at.isoformat()) for each in client.appointments.list(limit=100)]
    assert sorted(there) == sorted((each["external_id"], each["start_at"]) for each in expected)


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.nightly)])
def test_a_run_that_is_killed_at_its_statements(database_url: str, tmp_path: Path, step: int):
    job = import_of(tmp_path)
    with closing(Outbox(database_url)) as outbox:
        outbox.create_tables()
        kills = []
        for hours in (0, 1):
            file, statement = export(tmp_path, moved(range(9), hours)), 0
            while killed(dying_at(statement, partial(job.run, file, database_url))):
                statement += step
            kills.append(statement)
        assert min(kills) > 5
        assert len(job.run(file, database_url).events) == 0
        check(outbox, moved(range(9), 1), events=9 + 3)


@pytest.mark.nightly
def test_100_kills_at_random_moments(database_url: str, tmp_path: Path):
    job, choose, numbers = import_of(tmp_path), random.Random(5), range(1200)
    kills, hours = 0, 0
    with closing(Outbox(database_url)) as outbox:
        outbox.create_tables()
        file, began = export(tmp_path, moved(numbers, 0)), time.monotonic()
        assert not killed(partial(job.run, file, database_url))
        longest = (time.monotonic() - began) * 1.3
        file = export(tmp_path, moved(numbers, 1))
        while kills < 100:
            if killed(partial(job.run, file, database_url), after=choose.uniform(0, longest)):
                kills += 1
            else:
                hours += 1
                file = export(tmp_path, moved(numbers, hours + 1))
        assert not killed(partial(job.run, file, database_url))
        check(outbox, moved(numbers, hours + 1), events=1200 + 400 * (hours + 1))


def test_runs_at_the_same_time(database_url: str, tmp_path: Path):
    job, fork = import_of(tmp_path), forking()
    with closing(Outbox(database_url)) as outbox:
        outbox.create_tables()
        for hours in range(3):
            file, start = export(tmp_path, moved(range(90), hours)), fork.Barrier(3)

            def run(start: Any = start, file: Path = file) -> None:
                start.wait(60)
                job.run(file, database_url)

            children = [fork.Process(target=run) for _ in range(3)]
            for child in children:
                child.start()
            for child in children:
                child.join(120)
            assert [child.exitcode for child in children] == [0, 0, 0]
        check(outbox, moved(range(90), 2), events=90 + 30 + 30)
