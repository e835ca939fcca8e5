"""Correct integrations keep every promise; the obvious one does not."""

import pytest
from support.clinics import Careful, Naive, WithStores

from followup_mockserver.simulation import Clinic, simulate


@pytest.mark.parametrize("clinic", [Careful, WithStores])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_correct_integration_keeps_every_promise(clinic: type[Clinic], seed: int) -> None:
    simulate(clinic, examples=25, seed=seed)


@pytest.mark.parametrize("seed", range(5))
def test_the_obvious_integration_loses_bookings(seed: int) -> None:
    with pytest.raises(AssertionError, match="exactly once, at its last time"):
        simulate(Naive, examples=50, seed=seed)
