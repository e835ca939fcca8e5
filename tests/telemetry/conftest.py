"""Fixtures: the SDK of OpenTelemetry, the instrumentation of httpx, and those for calls."""

# Before a provider exists: in a forked child, providers submit to an executor, whose lock is free again only after this
# module's own function has run, and such functions run in the order of their registration.
import concurrent.futures.thread  # noqa: F401
from collections.abc import Iterator

import pytest
from opentelemetry import metrics, trace
from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor
from support.clients import driver, quick_backoff, server
from telemetry.exported import Exported

__all__ = ["driver", "exported", "quick_backoff", "server"]


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
