"""The tracer and the instruments of the providers that the program has set, and trace contexts as text."""

import inspect
from typing import Any

import attrs
from opentelemetry import propagate
from opentelemetry.context import Context
from opentelemetry.metrics import Counter, Histogram, Meter, MeterProvider, get_meter_provider
from opentelemetry.trace import SpanContext, Tracer, TracerProvider, get_current_span, get_tracer_provider
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from followup._telemetry import names
from followup._version import __version__

if "explicit_bucket_boundaries_advisory" not in inspect.signature(Meter.create_histogram).parameters:
    raise ImportError("opentelemetry-api is older than the extra telemetry requires")

LIBRARY = "followup"

_SENT_HEADERS = frozenset({"traceparent", "tracestate"})
_TRACE_CONTEXT = TraceContextTextMapPropagator()


@attrs.frozen
class CallMetrics:
    """The metrics of calls.

    Attributes:
        duration: seconds of whole calls, with their retries and waits.
        retries: attempts after the first.
    """

    duration: Histogram
    retries: Counter


@attrs.define
class _Made:
    """What was made from the current providers. A program may set others, as test suites do."""

    tracer: tuple[TracerProvider, Tracer] | None = None
    call_metrics: tuple[MeterProvider, CallMetrics] | None = None


_made = _Made()


def tracer() -> Tracer:
    """Return the tracer of the current provider."""
    provider = get_tracer_provider()
    made = _made.tracer
    if made is None or made[0] is not provider:
        made = _made.tracer = provider, provider.get_tracer(LIBRARY, __version__)
    return made[1]


def call_metrics() -> CallMetrics:
    """Return the instruments of the current provider."""
    provider = get_meter_provider()
    made = _made.call_metrics
    if made is None or made[0] is not provider:
        made = _made.call_metrics = provider, _call_metrics(provider.get_meter(LIBRARY, __version__))
    return made[1]


def _call_metrics(meter: Meter) -> CallMetrics:
    return CallMetrics(
        duration=meter.create_histogram(
            names.DURATION,
            unit="s",
            description="Duration of calls, with their retries and waits.",
            explicit_bucket_boundaries_advisory=names.DURATION_BUCKETS,
        ),
        retries=meter.create_counter(names.RETRIES, unit="{retry}", description="Attempts after the first of a call."),
    )


def headers_of(context: Context) -> dict[str, str]:
    """Return the headers that propagate a trace context to the service.

    The program chooses the propagators, but whatever they add, such as a baggage of application data, is not sent.
    """
    carrier: dict[str, str] = {}
    propagate.inject(carrier, context)
    return {name: value for name, value in carrier.items() if name.lower() in _SENT_HEADERS}


def current_traceparent() -> str | None:
    """Return the current trace context as the value of a ``traceparent`` header; None outside of a trace."""
    carrier: dict[str, str] = {}
    _TRACE_CONTEXT.inject(carrier)
    return carrier.get("traceparent")


def span_context_of(traceparent: str) -> SpanContext | None:
    """Return the trace context of a ``traceparent`` header; None if it is not a valid one."""
    context: Any = _TRACE_CONTEXT.extract({"traceparent": traceparent}, Context())
    found = get_current_span(context).get_span_context()
    return found if found.is_valid else None
