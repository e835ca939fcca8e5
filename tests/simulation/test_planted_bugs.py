"""The simulation finds the bugs that teams really make, and names the promise that is broken."""

import re
import time
from typing import Any

import pytest
from support.integrations.catalogue import BUGS, CORRECT, ENOUGH, EXAMPLES, SEEDS, Bug, promise_in
from support.integrations.intentions import Intentions
from support.integrations.stores import Stores

from followup_mockserver.lab.simulation.history import (
    Book,
    FailRequests,
    PassTime,
    Reschedule,
    Work,
    history_of,
    seed_of,
)
from followup_mockserver.simulation import Clinic, simulate

each_bug = pytest.mark.parametrize("bug", BUGS, ids=[each.name for each in BUGS])


def failure_of(clinic: type[Clinic], seed: int) -> AssertionError:
    with pytest.raises(AssertionError) as found:
        simulate(clinic, examples=EXAMPLES, seed=seed)
    return found.value


@pytest.mark.parametrize(
    "bug", [pytest.param(each, marks=[pytest.mark.nightly] * each.is_slow, id=each.name) for each in BUGS]
)
def test_a_planted_bug_is_found(bug: Bug) -> None:
    if "LocalTime" in bug.name and not hasattr(time, "tzset"):
        pytest.skip("a process of this system has no time zone")
    failure = failure_of(bug.clinic, bug.seed)
    assert promise_in(failure) in bug.promises
    [seed] = re.findall(r"\(seed (\d+)\)", str(failure))
    assert len(history_of(int(seed)) or ()) <= bug.steps, str(failure)


@pytest.mark.nightly
@each_bug
def test_a_planted_bug_is_found_with_nearly_every_seed(bug: Bug) -> None:
    assert sum(bug.found(seed)[0] for seed in range(SEEDS)) >= ENOUGH


def test_an_appointment_without_an_external_id_is_named() -> None:
    class WithoutExternalId(Intentions):
        def call(self, external_id: str, kind: str, arguments: dict[str, Any], key: str) -> None:
            self.client.appointments.create(idempotency_key=key, **arguments)

    with pytest.raises(AssertionError, match=r"B1: .* the service has nothing under this external id, but without"):
        simulate(WithoutExternalId, seed=1)


@pytest.mark.parametrize("clinic", CORRECT)
def test_a_correct_integration_keeps_every_promise(clinic: type[Clinic]) -> None:
    simulate(clinic, examples=4, seed=101)


@pytest.mark.nightly
@pytest.mark.parametrize("clinic", CORRECT)
def test_a_correct_integration_survives_many_histories(clinic: type[Clinic]) -> None:
    simulate(clinic, examples=500, seed=500)


def test_moves_that_leave_the_appointment_where_it_was_are_changes() -> None:
    """The last run of work() sends both moves, whose webhooks a later one handles."""
    there_and_back = (Reschedule(0, 0), Reschedule(0, 15))
    history = (Book(0, 0), Reschedule(0, 15), Work(), FailRequests(1, 0), *there_and_back, PassTime(0), Work())
    simulate(Stores, examples=1, seed=seed_of(history))
