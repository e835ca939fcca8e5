"""Correct integrations keep every promise; the obvious one does not."""

import pytest
from support.clinics import Careful, Naive, WithStores

from followup_mockserver.simulation import Clinic, simulate


@pytest.mark.parametrize("clinic", [Careful, WithStores])
def test_a_correct_integration_keeps_every_promise(clinic: type[Clinic]) -> None:
    simulate(clinic, examples=10, seed=1)


@pytest.mark.parametrize("seed", range(3))
def test_the_obvious_integration_loses_bookings(seed: int) -> None:
    with pytest.raises(AssertionError, match="exactly once, at its last time"):
        simulate(Naive, examples=50, seed=seed)
