"""The clock of a tenant, also while a test has frozen time, and its scheduler, against a sorted list as the model."""

import functools
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
import time_machine
from freezegun import freeze_time
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from followup_mockserver.world.state.clock import Clock, Job, JobKind, RealTime, Scheduler, Timer

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


def passes(moment: Callable[[], object]) -> bool:
    """Whether the time changes within a few reads, without sleeping, as that of a real clock does."""
    first = moment()
    return any(moment() != first for _ in range(100_000))


class TestFrozen:
    def test_the_time_is_in_utc_whatever_the_time_zone_of_the_start(self) -> None:
        clock = Clock(NOON.astimezone(timezone(timedelta(hours=-3))))
        assert clock.now() == NOON
        assert clock.now().tzinfo is UTC
        clock.advance_to((NOON + HOUR).astimezone(timezone(timedelta(hours=5))))
        assert clock.now() == NOON + HOUR
        assert clock.now().tzinfo is UTC
        clock.advance_to(NOON)
        assert (clock.now(), clock.advanced) == (NOON + HOUR, HOUR), "it never goes back"


class TestRunning:
    def test_what_was_advanced_is_counted_and_what_is_left_to_wait_is_known(self) -> None:
        frozen, running = Clock(NOON), Clock()
        assert [frozen.seconds_until(NOON + hours) for hours in (HOUR, 0 * HOUR, -HOUR)] == [float("inf"), 0, 0]
        assert 3590 < running.seconds_until(running.now() + HOUR) <= 3600
        assert passes(running.now)
        assert running.advanced == timedelta(0)
        for hours in (1, 0, 3):
            frozen.advance_to(NOON + hours * HOUR)
        assert frozen.advanced == 3 * HOUR

    def test_while_held_it_stands_exactly_where_it_was_moved_to(self) -> None:
        clock = Clock()
        clock.hold()
        held_at = clock.now()
        assert not passes(clock.now)
        clock.advance_to(held_at + HOUR)
        assert clock.now() == held_at + HOUR
        assert clock.seconds_until(held_at + 2 * HOUR) == float("inf")

    def test_the_time_that_it_was_held_is_not_made_up_for(self, monkeypatch: pytest.MonkeyPatch) -> None:
        seconds = 0.0
        monkeypatch.setattr(RealTime, "monotonic", lambda: seconds)
        clock = Clock()
        clock.hold()
        held_at = clock.now()
        seconds += 3600
        assert clock.now() == held_at
        clock.release()
        assert clock.now() == held_at
        seconds += 1
        assert clock.now() == held_at + timedelta(seconds=1)


class TestUnderToolsThatStopTime:
    @pytest.mark.parametrize("freeze", [freeze_time, functools.partial(time_machine.travel, tick=False)])
    def test_a_running_clock_runs(self, freeze: Any) -> None:
        with freeze("2024-05-06T07:08:09Z"):
            clock = Clock()
            assert datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC) <= clock.now() < datetime(2024, 5, 6, 8, tzinfo=UTC)
            assert passes(clock.now)
            assert passes(RealTime.monotonic)

    def test_the_first_calls_of_a_process_may_be_made_in_a_frozen_test(self) -> None:
        program = """
from datetime import date, datetime, timedelta, timezone
from freezegun import freeze_time
from followup import FollowUp, inbound
from followup_mockserver import MockService
with freeze_time("2024-05-06"):
    service = MockService()
    client = service.client()
    start = datetime.now(timezone.utc) + timedelta(days=2)
    patient = {"phone": "+5491155550000", "date_of_birth": date(1990, 1, 2)}
    booked = client.appointments.create(patient=patient, start_at=start, external_id="T-1")
    (listed,) = client.appointments.list(start_at_gte=start)
    client.events.create(inbound.appointment_rescheduled(external_id="T-1", start_at=start + timedelta(days=1)))
    moved = MockService.load(service.save()).client().appointments.retrieve(booked.id)
    assert client.patients.retrieve(booked.patient).date_of_birth == date(1990, 1, 2)
    print(booked.start_at == start == listed.start_at, moved.start_at - start)
"""
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        assert (done.stdout.strip(), done.stderr) == ("True 1 day, 0:00:00", "")

    @pytest.mark.parametrize("jump", [-400 * 24 * HOUR, 400 * 24 * HOUR])
    def test_a_jump_of_the_wall_clock_does_not_move_it(self, jump: timedelta) -> None:
        clock = Clock()
        before = clock.now()
        with time_machine.travel(before + jump):
            assert before <= clock.now() < before + HOUR


def after(minutes: float) -> datetime:
    return NOON + timedelta(minutes=minutes)


@settings(max_examples=settings.default.max_examples // 2, stateful_step_count=40, deadline=None)
class AgainstAList(RuleBasedStateMachine):
    """Whatever is done, the scheduler holds what a plain list in order of scheduling would."""

    @initialize()
    def start(self) -> None:
        self.scheduler = Scheduler()
        self.waiting: list[Timer] = []

    @rule(minutes=st.integers(0, 20), about=st.sampled_from("abc"), kind=st.sampled_from(["reminder", "delivery"]))
    def schedule(self, minutes: int, about: str, kind: JobKind) -> None:
        self.waiting.append(self.scheduler.schedule(after(minutes), Job(kind, about)))

    @rule(about=st.sampled_from("abcd"), kind=st.sampled_from([None, "reminder", "delivery"]))
    def cancel_about(self, about: str, kind: str | None) -> None:
        hit = [each for each in self.waiting if each.job.about == about and kind in (None, each.job.kind)]
        assert self.scheduler.cancel_about(about, kind) == sorted(hit)
        self.waiting = [each for each in self.waiting if each not in hit]

    @rule(minutes=st.integers(-1, 21))
    def pop_due(self, minutes: int) -> None:
        due = sorted((each for each in self.waiting if each.at <= after(minutes)), key=lambda each: each.at)
        expected = due[0] if due else None
        assert self.scheduler.pop_due(after(minutes)) is expected
        self.waiting = [each for each in self.waiting if each is not expected]

    @invariant()
    def holds_the_same(self) -> None:
        in_order = sorted(self.waiting, key=lambda each: each.at)
        assert self.scheduler.pending() == in_order
        assert self.scheduler.earliest(3) == in_order[:3]
        assert self.scheduler.next() is (in_order[0] if in_order else None)
        for about in "abcd":
            about_it = [each for each in in_order if each.job.about == about]
            assert self.scheduler.pending(about=about) == about_it
            sends = [each for each in about_it if each.job.kind == "delivery"]
            assert self.scheduler.pending(about=about, kind="delivery") == sends


TestAgainstAList = AgainstAList.TestCase
