"""Timers: run in order, cancelled by the object that they concern, against a sorted list as the model."""

from datetime import UTC, datetime, timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from followup_mockserver.world.state.clock import Job, JobKind, Scheduler, Timer

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


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
