"""After a simulation, whatever it replaced in other packages is what it was, however the simulation ended."""

import gc
import random
import sys
import threading
from collections.abc import Iterator
from typing import Any

import aiosqlite
import django.db.backends.sqlite3.base
import psycopg
import pytest
from support.integrations.stores import Stores

from followup_mockserver.simulation import Booking, simulate

PACKAGES = (
    "aiosqlite",
    "asyncio",
    "django.db",
    "os",
    "psycopg",
    "random",
    "secrets",
    "sqlalchemy",
    "sqlite3",
    "threading",
)
LOADED = (aiosqlite, django, psycopg)
"""They are loaded so that there is something to replace in them."""


class BelievesNothing(Stores):
    def bookings(self) -> dict[str, Any]:
        return {}


class Fails(Stores):
    def bookings(self) -> dict[str, Any]:
        raise RuntimeError


class Exits(Stores):
    def book(self, booking: Booking) -> None:
        raise KeyboardInterrupt


def names() -> Iterator[tuple[str, Any]]:
    """Yield each name of a function or class in a module, and in a class of it, with its object."""
    for module in [*sys.modules.values()]:
        package = getattr(module, "__name__", "")
        if package.startswith(PACKAGES) or package == "time":
            for name, value in [*vars(module).items()]:
                yield f"{package}.{name}", value
                if issubclass(type(value), type) and value.__module__.startswith(PACKAGES):
                    yield from ((f"{package}.{name}.{each}", found) for each, found in [*vars(value).items()])


@pytest.mark.parametrize(
    ("clinic", "outcome"),
    [(Stores, None), (BelievesNothing, AssertionError), (Fails, RuntimeError), (Exits, KeyboardInterrupt)],
)
def test_a_simulation_restores_what_it_replaced(clinic: type[Stores], outcome: type[BaseException] | None) -> None:
    simulate(Stores, examples=1, seed=1)  # what is loaded or built once is there before the names are read
    before = {name: value for name, value in names() if callable(value)}
    assert {"sqlite3.connect", "psycopg.Connection.commit", "threading.Thread.start"} <= before.keys()
    state, hook = random.getstate(), threading.excepthook
    if outcome is None:
        simulate(clinic, examples=2, seed=2)
    else:
        with pytest.raises(outcome):
            simulate(clinic, examples=2, seed=2)
    assert [name for name, value in names() if name in before and before[name] is not value] == []
    assert (random.getstate(), threading.excepthook, gc.get_freeze_count()) == (state, hook, 0)
