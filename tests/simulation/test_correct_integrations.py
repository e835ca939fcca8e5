"""Three correct integrations of different architecture keep every promise, and play the same in every process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.integrations.intentions import Intentions
from support.integrations.reconciling import Reconciling
from support.integrations.stores import Stores

from followup_mockserver.simulation import Clinic, simulate
from followup_mockserver.simulation.history import Book, FailRequests, PassTime, Reschedule, Work, seed_of

PLAY = """
import hashlib, logging
logging.disable()
from support.integrations.stores import Stores
from followup_mockserver.simulation import simulate
seen = hashlib.sha256()
class Observed(Stores):
    def work(self):
        try:
            super().work()
        finally:
            seen.update(repr((self.now(), sorted(self.bookings().items()), self.handled())).encode())
simulate(Observed, examples=10, seed=7)
print(seen.hexdigest())
"""


@pytest.mark.parametrize(("clinic", "seed"), [(Stores, 101), (Intentions, 102), (Reconciling, 103)])
def test_a_correct_integration_keeps_every_promise(clinic: type[Clinic], seed: int) -> None:
    simulate(clinic, examples=50, seed=seed)


def test_moves_that_leave_the_appointment_where_it_was_are_changes() -> None:
    """The last run of work() sends both moves, whose webhooks a later one handles."""
    there_and_back = (Reschedule(0, 0), Reschedule(0, 15))
    history = (Book(0, 0), Reschedule(0, 15), Work(), FailRequests(1, 0), *there_and_back, PassTime(0), Work())
    simulate(Stores, examples=1, seed=seed_of(history))


def test_the_same_seed_gives_the_same_histories_in_two_processes() -> None:
    def play(hash_seed: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", PLAY],
            cwd=Path(__file__).parents[1],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": "."},
            check=True,
            capture_output=True,
            text=True,
            timeout=120,
        ).stdout

    assert play("1") == play("2") != ""
