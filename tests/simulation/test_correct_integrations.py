"""Correct integrations of different architecture keep every promise."""

import pytest
from support.integrations.catalogue import CORRECT
from support.integrations.stores import Stores

from followup_mockserver.lab.simulation.history import Book, FailRequests, PassTime, Reschedule, Work, seed_of
from followup_mockserver.simulation import Clinic, simulate


@pytest.mark.parametrize("clinic", CORRECT)
def test_a_correct_integration_keeps_every_promise(clinic: type[Clinic]) -> None:
    simulate(clinic, examples=15, seed=101)


@pytest.mark.nightly
@pytest.mark.parametrize("clinic", CORRECT)
def test_a_correct_integration_survives_many_histories(clinic: type[Clinic]) -> None:
    simulate(clinic, examples=500, seed=500)


def test_moves_that_leave_the_appointment_where_it_was_are_changes() -> None:
    """The last run of work() sends both moves, whose webhooks a later one handles."""
    there_and_back = (Reschedule(0, 0), Reschedule(0, 15))
    history = (Book(0, 0), Reschedule(0, 15), Work(), FailRequests(1, 0), *there_and_back, PassTime(0), Work())
    simulate(Stores, examples=1, seed=seed_of(history))
