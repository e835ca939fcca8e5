"""Fixtures for calls of both clients to a scripted server."""

from collections.abc import Iterator

import pytest

from followup._core.call import retries
from support.drivers import AsyncDriver, Driver, SyncDriver
from support.server import ScriptedServer


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    """A server that follows the script of the test."""
    with ScriptedServer() as running:
        yield running


@pytest.fixture(params=[SyncDriver(), AsyncDriver()], ids=lambda driver: driver.name)
def driver(request: pytest.FixtureRequest) -> Driver:
    """The synchronous and the asynchronous client."""
    chosen: Driver = request.param
    return chosen


@pytest.fixture
def quick_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits between attempts as short as they can be, for tests that are not about them."""
    monkeypatch.setattr(retries, "FIRST_BACKOFF", 0.001)
