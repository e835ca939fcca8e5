"""The simulation of integrations: the time of a history. ``rates.py`` measures how often bugs are found."""

import importlib
import logging
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from measure import ONCE, Figure, compare

from followup_mockserver import MockService
from followup_mockserver.simulation import simulate

sys.path.append(str(Path(__file__).parents[1] / "tests"))

# The integrations are those of the tests, which are not part of what mypy checks here.
tests: Any = importlib.import_module("support.integrations.catalogue")

HISTORIES = 25

APPLICATIONS = {
    "sqlite3": tests.Intentions,
    "sqlite3, outbox and inbox": tests.Stores,
    "FastAPI, ORM, outbox and inbox": tests.WebApplication,
}


def histories() -> Iterator[Figure]:
    """Compare a simulated history with a plain test of three calls and their webhooks, without any fault."""
    logging.disable()
    yield compare(
        f"{HISTORIES} simulated histories of a correct integration",
        lambda: simulate(tests.Intentions, examples=HISTORIES, seed=1),
        f"{HISTORIES} tests with three calls and their webhooks",
        plain_tests,
        calls=1,
        rounds=3,
        target=10,
    )
    logging.disable(logging.NOTSET)


def costs() -> Iterator[Figure]:
    """Compare the CPU time of a history with our limit, for three kinds of applications."""
    logging.disable()
    examples = 1 if ONCE else HISTORIES
    for name, clinic in APPLICATIONS.items():
        simulate(clinic, examples=1, seed=1)
        began = time.process_time()
        simulate(clinic, examples=examples, seed=7)
        cost = (time.process_time() - began) / examples
        yield Figure(f"CPU time of a simulated history: {name}", "0.5 s", cost * 1e6, 0.5e6, 1)
    logging.disable(logging.NOTSET)


def plain_tests() -> None:
    """Run as many tests of three calls."""
    import httpx

    for _ in range(HISTORIES):
        with MockService(start_time="2040-01-02T00:00:00Z", rate_limit=0) as service, service.client() as client:
            service.mount("https://clinic.example/hooks", lambda _: httpx.Response(204))
            client.webhook_endpoints.create(url="https://clinic.example/hooks", enabled_events=["*"])
            made = client.appointments.create(patient={"phone": "+5491155550101"}, start_at="2040-04-01T12:00:00Z")
            client.appointments.update(made.id, start_at="2040-04-02T12:00:00Z")
            client.appointments.cancel(made.id)
            service.advance(hours=1)


BENCHMARKS: dict[str, Callable[[], Iterator[Figure]]] = {"histories": histories, "costs": costs}
