"""Records the work of outboxes and inboxes with OpenTelemetry."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager

from opentelemetry.trace import Link, SpanKind, StatusCode, set_span_in_context

from followup._telemetry import api, names
from followup._telemetry.backlogs import INBOXES, OUTBOXES
from followup._telemetry.calls import current_context, linked_to
from followup._telemetry.stores import BacklogMethod, StoreTelemetry


class RecordedStores(StoreTelemetry):
    """Records what outboxes and inboxes do."""

    def traceparent(self) -> str | None:
        """Return the current trace context as text; None outside of a trace."""
        return api.current_traceparent()

    def linked_to(self, traceparents: Iterable[str | None]) -> AbstractContextManager[None]:
        """Link the calls in a with block to these trace contexts."""
        return linked_to(each for each in traceparents if each)

    @contextmanager
    def handling(
        self, inbox: str, event_type: str | None, attempt: int, find_recorder: Callable[[], str | None]
    ) -> Iterator[None]:
        """Record the with block as the span of a handler. The text of its exception is not recorded."""
        recorder = find_recorder()
        context = api.span_context_of(recorder) if recorder else None
        kind = event_type or names.OTHER
        span = api.tracer().start_span(
            f"{names.HANDLE} {kind}",
            kind=SpanKind.CONSUMER,
            attributes={names.INBOX_NAME: inbox, names.EVENT_TYPE: kind, names.HANDLER_ATTEMPT: attempt},
            links=[Link(context)] if context else [],
        )
        try:
            with current_context(set_span_in_context(span)):
                yield
        except BaseException as error:
            span.set_attribute(names.ERROR_TYPE, type(error).__qualname__)
            span.set_status(StatusCode.ERROR)
            raise
        finally:
            span.end()

    def report_outbox(self, name: str, backlog: BacklogMethod) -> None:
        """Report the backlog of an outbox whenever metrics are collected."""
        OUTBOXES.report(name, backlog)

    def report_inbox(self, name: str, backlog: BacklogMethod) -> None:
        """Report the backlog of an inbox whenever metrics are collected."""
        INBOXES.report(name, backlog)

    def stop_reporting(self, backlog: BacklogMethod) -> None:
        """Report this backlog no more."""
        OUTBOXES.stop(backlog)
        INBOXES.stop(backlog)
