"""Correct integrations of different architecture survive many simulated histories."""

import time

import pytest
from support.integrations.catalogue import CORRECT

from followup_mockserver.simulation import Clinic, simulate

from .conftest import SCALE, Report

HISTORIES = 2 if SCALE == 1 else 8 * SCALE


@pytest.mark.parametrize("clinic", CORRECT)
def test_a_correct_integration_survives_every_history(clinic: type[Clinic], report: Report) -> None:
    began = time.perf_counter()
    simulate(clinic, examples=HISTORIES, seed=500)
    report(f"{HISTORIES} histories, {time.perf_counter() - began:.0f} s")
