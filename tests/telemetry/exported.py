"""What a process exports, recorded by the SDK of OpenTelemetry."""

import json
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


class Exported:
    """The spans that were exported, and the metrics of others, with the providers that export them."""

    def __init__(self) -> None:
        self._spans = InMemorySpanExporter()
        self._reader = InMemoryMetricReader()
        resource = Resource({"service.name": "clinic"})
        self.traces = TracerProvider(resource=resource)
        self.traces.add_span_processor(SimpleSpanProcessor(self._spans))
        self.metrics = MeterProvider([self._reader], resource=resource)

    def tracer(self) -> Any:
        """Return the tracer of the program under test."""
        return self.traces.get_tracer("clinic")

    def spans(self, *names: str) -> list[ReadableSpan]:
        """Return the ended spans with these names, in the order of their ends; without names all of them."""
        return [span for span in self._spans.get_finished_spans() if not names or span.name in names]

    def span(self, name: str | None = None) -> ReadableSpan:
        """Return the only span that has ended (with this name)."""
        (only,) = self.spans(*([name] if name else []))
        return only

    def metric(self, name: str) -> list[tuple[dict[str, Any], Any]]:
        """Return the values of a counter, each with its attributes."""
        data = self._reader.get_metrics_data()
        scopes = [scope for resource in (data.resource_metrics if data else ()) for scope in resource.scope_metrics]
        found = [metric for scope in scopes for metric in scope.metrics if metric.name == name]
        points: list[Any] = [point for metric in found for point in metric.data.data_points]
        return [(dict(point.attributes), point.value) for point in points]

    def everything(self) -> str:
        """Return all that was exported, as text without escapes."""
        data = self._reader.get_metrics_data()
        texts = [span.to_json() for span in self.spans()] + ([data.to_json()] if data else [])
        return "\n".join(json.dumps(json.loads(text), ensure_ascii=False) for text in texts)


def events_of(span: ReadableSpan) -> list[dict[str, Any]]:
    """Return the attributes of a span's events, without the ids of requests."""
    assert {event.name for event in span.events} <= {"followup.attempt"}
    return [
        {name: value for name, value in dict(event.attributes or {}).items() if name != "followup.request_id"}
        for event in span.events
    ]
