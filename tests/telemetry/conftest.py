"""Fixtures: the SDK of OpenTelemetry, the instrumentation of httpx, and a server."""

from collections.abc import Iterator

import pytest
from opentelemetry import metrics, trace
from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor
from support.drivers import AsyncDriver, Driver, SyncDriver
from support.server import ScriptedServer
from telemetry.exported import Exported

from followup import _retry


@pytest.fixture
def exported(monkeypatch: pytest.MonkeyPatch) -> Iterator[Exported]:
    """Set the global providers, as a program does once, and instrument httpx."""
    exported = Exported()
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", exported.traces)
    monkeypatch.setattr(metrics._internal, "_METER_PROVIDER", exported.metrics)
    instrumentor = HTTPXClientInstrumentor()
    instrumentor.instrument()
    yield exported
    instrumentor.uninstrument()
    exported.traces.shutdown()
    exported.metrics.shutdown()


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as running:
        yield running


@pytest.fixture(params=[SyncDriver(), AsyncDriver()], ids=lambda driver: driver.name)
def driver(request: pytest.FixtureRequest) -> Driver:
    chosen: Driver = request.param
    return chosen


@pytest.fixture
def quick_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits between attempts as short as they can be, for tests that are not about them."""
    monkeypatch.setattr(_retry, "FIRST_BACKOFF", 0.001)
