"""``requests_per_minute``: never more requests in any 60 s, whatever threads, tasks and derived clients do."""

import asyncio
import functools
import heapq
import json
import random
from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import freezegun
import pytest
import time_machine
from hypothesis import given, settings
from hypothesis import strategies as st
from support.drivers import Driver
from support.responses import patient
from support.server import ScriptedServer, drip, hang, reply
from support.times import ManualTime
from support.waiting import wait_for

from followup import APITimeoutError, AsyncFollowUp, FollowUpError, RateLimitError
from followup._core.call import request_rate
from followup._core.call.options import Options
from followup._core.call.request_rate import Governor
from followup._core.call.retries import run_call
from followup._core.call.steps import NotSent, Outcome, Response, Send, Wait
from followup.resources.patients import Patients
from followup_mockserver import MockService

RETRIEVE = Patients.retrieve.call(("pat_1",), {})
OK = Response(status_code=200, headers={}, content=json.dumps(patient()).encode())


@attrs.frozen
class Attempt:
    """When a request was sent, and when its response was there: the service saw it at some time between."""

    sent: float
    done: float


class World:
    """Many calls at once, on a clock that jumps from one thing that happens to the next."""

    def __init__(self, per_minute: int | None, *, deadline: float | None = None) -> None:
        self.attempts: list[Attempt] = []
        self.errors: list[FollowUpError] = []
        self._kept: list[Any] = []
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = random.Random(1)
        self._clock: Any = ManualTime(0.0)
        self._options = Options(
            api_key="k", base_url="https://api.example", service_version="2026-09-28", timeouts=None,
            attempt_seconds=30.0, max_retries=2, deadline=deadline,
            governor=None if per_minute is None else Governor(per_minute), time=self._clock,
        )  # fmt: skip

    def call(
        self,
        at: float,
        outcomes: Iterator[tuple[float, Outcome]],
        late: float = 0.0,
        patience: int = 99,
        kept: bool = False,
    ) -> None:
        """Start a call then.

        Args:
            at: seconds.
            outcomes: how long each attempt takes, and what it comes to.
            late: how much longer than asked for each wait takes.
            patience: how many waits the caller puts up with; then the call is cancelled.
            kept: whether a cancelled call is still referred to, as by the traceback of a cancelled task.
        """
        steps = run_call(RETRIEVE, self._options)
        if kept:
            self._kept.append(steps)
        waits = 0

        def go_on(outcome: Outcome | None) -> None:
            nonlocal waits
            try:
                step = steps.send(outcome)
            except StopIteration:
                return
            except FollowUpError as error:
                self.errors.append(error)
                return
            if isinstance(step, Wait):
                waits += 1
                if waits <= patience:
                    self._at(self._clock.seconds + step.seconds + late, lambda: go_on(None))
                elif not kept:
                    steps.close()
                return
            assert isinstance(step, Send)
            seconds, result = next(outcomes)
            self.attempts.append(Attempt(self._clock.seconds, self._clock.seconds + seconds))
            self._at(self._clock.seconds + seconds, lambda: go_on(result))

        self._at(at, lambda: go_on(None))

    def _at(self, when: float, what: Callable[[], None]) -> None:
        heapq.heappush(self._events, (when, len(self._events) + self._order.getrandbits(40), what))

    def run(self) -> None:
        while self._events:
            self._clock.seconds, _, what = heapq.heappop(self._events)
            what()


def most_in_a_minute(times: list[float]) -> int:
    times = sorted(times)
    return max(bisect_left(times, start + 60 - 1e-6) - index for index, start in enumerate(times))


def repeated(seconds: float, outcome: Outcome = OK) -> Iterator[tuple[float, Outcome]]:
    while True:
        yield seconds, outcome


CALLS = st.lists(
    st.fixed_dictionaries(
        {
            "at": st.floats(0, 200),
            "seconds": st.floats(0, 29),
            "late": st.sampled_from([0.0, 0.0, 0.4, 5.0]),
            "fails": st.booleans(),
            "patience": st.sampled_from([99, 99, 99, 1]),
            "kept": st.booleans(),
        }
    ),
    min_size=1,
    max_size=60,
)


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 12), CALLS, st.integers(0, 2**32))
def test_the_service_never_sees_more_in_any_minute(per_minute: int, calls: list[dict[str, Any]], seed: int) -> None:
    world = World(per_minute)
    for call in calls:
        outcome = NotSent("ConnectError") if call["fails"] else OK
        world.call(call["at"], repeated(call["seconds"], outcome), call["late"], call["patience"], call["kept"])
    world.run()
    seen = random.Random(seed)
    for moment in (lambda each: each.sent, lambda each: each.done, lambda each: seen.uniform(each.sent, each.done)):
        assert most_in_a_minute([moment(each) for each in world.attempts] or [0.0]) <= per_minute


def test_a_burst_goes_at_once_and_a_long_run_is_spread_at_the_full_rate() -> None:
    world = World(600)
    for _ in range(3000):
        world.call(0.0, repeated(0.0))
    world.run()
    sent = [each.sent for each in world.attempts]
    assert sum(each < 0.09 for each in sent) == 60
    assert sum(each < 10 for each in sent) == pytest.approx(160, abs=2)
    assert sum(each < 60 for each in sent) == pytest.approx(600, abs=2)
    assert sent[-1] == pytest.approx(240 + 54, abs=1)
    assert most_in_a_minute(sent) == 600


def test_a_cancelled_call_frees_its_place_for_the_next() -> None:
    world = World(1)
    world.call(0.0, repeated(0.0))
    world.call(1.0, repeated(0.0), patience=0)
    world.call(2.0, repeated(0.0))
    world.run()
    assert [each.sent for each in world.attempts] == [0.0, pytest.approx(60.0)]


def test_a_call_that_would_have_to_wait_beyond_its_deadline_fails_at_once() -> None:
    world = World(1, deadline=10.0)
    world.call(0.0, repeated(1.0))
    world.call(2.0, repeated(1.0))
    world.call(60.0, repeated(1.0))  # nothing was reserved for the second one
    world.run()
    assert [each.sent for each in world.attempts] == [0.0, pytest.approx(61.0)]
    (first,) = world.errors
    assert isinstance(first, APITimeoutError)
    assert (first.attempts, first.was_sent) == (0, "no")
    assert str(first) == ("patients.retrieve: not sent within the deadline of 10 s, because of requests_per_minute=1")


def test_a_retry_that_would_come_after_the_deadline_raises_what_there_is() -> None:
    world = World(1, deadline=10.0)
    world.call(0.0, iter([(0.0, Response(status_code=429, headers={}, content=b"{}"))]))
    world.run()
    (error,) = world.errors
    assert isinstance(error, RateLimitError)
    assert error.attempts == 1


@pytest.fixture
def short_minute(monkeypatch: pytest.MonkeyPatch) -> float:
    monkeypatch.setattr(request_rate, "WINDOW", 0.4)
    return 0.4


FREEZERS = [
    functools.partial(freezegun.freeze_time, real_asyncio=True),
    functools.partial(time_machine.travel, tick=False),
]


@pytest.mark.parametrize("freeze", FREEZERS, ids=["freezegun", "time-machine"])
@pytest.mark.usefixtures("short_minute")
def test_no_wait_hangs_while_a_test_has_stopped_the_clock(
    server: ScriptedServer, driver: Driver, freeze: Callable[[str], Any]
) -> None:
    def retrieve(client: Any) -> Any:
        return client.patients.retrieve("pat_1")

    server.script = [reply(200, patient())]
    with freeze("2026-09-28T12:00:00Z"):
        with driver.session(server.url, requests_per_minute=2) as session:
            assert [session.call(retrieve).id for _ in range(3)] == ["pat_1"] * 3
        server.script = [drip(server.released)]
        for limit in ({"timeout": 0.2}, {"timeout": 60, "deadline": 0.2}):
            with pytest.raises(APITimeoutError):
                driver.call(server.url, retrieve, max_retries=0, **limit)


def test_derived_clients_share_it() -> None:
    service = MockService(start_time="2026-09-28T12:00:00Z")
    with service.client(requests_per_minute=2) as client:
        for each in (client, client.with_options(max_retries=0), client.with_options(timeout=20).with_options()):
            each.account.retrieve()
    assert service.waits == [pytest.approx(30), pytest.approx(30)]


def test_the_minute_of_a_request_begins_when_its_attempt_ends_however_long_it_takes() -> None:
    governor = Governor(1)
    first, second = (governor.slot(0.0, within=None) for _ in range(2))
    assert first
    assert second
    first.sent(0.0)
    assert second.wait(10.0) == pytest.approx(50.0)
    assert second.wait(60.0) == pytest.approx(60.0), "the service may receive the first one only now"
    first.done(lambda: 75.0)
    assert second.wait(120.0) == pytest.approx(15.0)
    assert second.wait(135.0) == 0.0


def test_a_call_that_is_cancelled_in_flight_holds_up_no_other(server: ScriptedServer, short_minute: float) -> None:
    server.script = [hang(server.released), reply(200, patient())]

    async def calls() -> str:
        async with AsyncFollowUp(api_key="k", base_url=server.url, requests_per_minute=1) as client:

            async def first() -> None:
                await client.patients.retrieve("pat_1")

            task = asyncio.create_task(first())
            await asyncio.to_thread(wait_for, lambda: server.received)
            task.cancel()
            return (await asyncio.wait_for(client.patients.retrieve("pat_1"), 60)).id

    assert asyncio.run(calls()) == "pat_1"
