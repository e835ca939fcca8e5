"""The service gets the trace context with each attempt, and nothing else that a program propagates."""

import logging
from typing import Any

import pytest
from opentelemetry import propagate, trace
from opentelemetry.propagators.composite import CompositePropagator
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, TraceState
from support.drivers import Driver
from support.responses import patient
from support.server import Received, ScriptedServer, hang_up, reply
from telemetry.exported import Exported

pytestmark = pytest.mark.usefixtures("quick_backoff")


def retrieve(client: Any) -> Any:
    return client.patients.retrieve("pat_1")


def parts_of(request: Received) -> tuple[str, str, str, bool]:
    """Return version, trace id, span id and the flag "sampled" of a request's traceparent."""
    version, trace_id, span_id, flags = request.headers["traceparent"].split("-")
    return version, trace_id, span_id, bool(int(flags, 16) & 1)


def test_each_attempt_has_the_traceparent_of_the_calls_span(
    server: ScriptedServer, driver: Driver, exported: Exported
) -> None:
    server.script = [hang_up, reply(503), reply(200, patient())]
    driver.call(server.url, retrieve)
    own = exported.span().get_span_context()
    assert [parts_of(each) for each in server.received] == [
        ("00", f"{own.trace_id:032x}", f"{own.span_id:016x}", True)
    ] * 3


def test_the_state_of_the_trace_is_sent(server: ScriptedServer, driver: Driver, exported: Exported) -> None:
    remote = SpanContext(0x1234, 0x56, is_remote=True, trace_flags=TraceFlags(1), trace_state=TraceState([("v", "1")]))
    server.script = [reply(200, patient())]
    with trace.use_span(NonRecordingSpan(remote)):
        driver.call(server.url, retrieve)
    assert server.received[0].headers["tracestate"] == "v=1"
    assert server.received[0].headers["traceparent"].startswith(f"00-{0x1234:032x}-")


def test_a_program_without_propagators_sends_nothing(
    server: ScriptedServer, driver: Driver, exported: Exported, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(propagate, "_HTTP_TEXT_FORMAT", CompositePropagator([]))
    server.script = [reply(200, patient())]
    driver.call(server.url, retrieve)
    assert "traceparent" not in server.received[0].headers


def test_a_trace_that_is_not_sampled_says_so(
    server: ScriptedServer, driver: Driver, exported: Exported, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", TracerProvider(sampler=ALWAYS_OFF))
    server.script = [reply(200, patient())]
    driver.call(server.url, retrieve)
    assert parts_of(server.received[0])[3] is False
    assert exported.spans() == []


def test_the_lines_of_our_log_belong_to_the_span(
    server: ScriptedServer, driver: Driver, exported: Exported, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[int] = []

    def note(_: logging.LogRecord) -> bool:
        seen.append(trace.get_current_span().get_span_context().span_id)
        return True

    server.script = [reply(503), reply(200, patient())]
    with caplog.at_level(logging.INFO, "followup"):
        logging.getLogger("followup").addFilter(note)
        try:
            driver.call(server.url, retrieve)
        finally:
            logging.getLogger("followup").removeFilter(note)
    assert seen == [exported.span().get_span_context().span_id] * 2
