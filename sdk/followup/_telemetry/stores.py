"""What an outbox and an inbox record: links between traces, the spans of handlers, and how far they are behind.

This module does not import OpenTelemetry: ``store_telemetry`` does, if telemetry is on.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext

import attrs

from followup._telemetry import is_on


@attrs.frozen
class Backlog:
    """How far an outbox or inbox is behind.

    Attributes:
        lag: age of the oldest event that waits or is in flight, in seconds; None if there is none.
        events: number of events by state.
    """

    lag: float | None
    events: Mapping[str, int]


BacklogMethod = Callable[[], Backlog | None]


class StoreTelemetry:
    """What outboxes and inboxes call. This base class records nothing, for programs without telemetry."""

    def traceparent(self) -> str | None:
        """Return the current trace context as text; None outside of a trace."""
        return None

    def linked_to(self, traceparents: Iterable[str | None]) -> AbstractContextManager[None]:  # noqa: ARG002
        """Link the calls in a with block to these trace contexts."""
        return nullcontext()

    def handling(
        self,
        inbox: str,  # noqa: ARG002
        event_type: str | None,  # noqa: ARG002
        attempt: int,  # noqa: ARG002
        find_recorder: Callable[[], str | None],  # noqa: ARG002
    ) -> AbstractContextManager[None]:
        """Record the with block as the span of a handler.

        Args:
            inbox: name of the inbox.
            event_type: the type of the event; None if this release does not know it.
            attempt: number of the attempt.
            find_recorder: returns the trace context in which the event's cause was recorded.
        """
        return nullcontext()

    def report_outbox(self, name: str, backlog: BacklogMethod) -> None:
        """Report the backlog of an outbox whenever metrics are collected, as long as its object exists.

        Args:
            name: name of the outbox.
            backlog: a bound method that returns the backlog; None if it is unknown now.
        """

    def report_inbox(self, name: str, backlog: BacklogMethod) -> None:
        """Report the backlog of an inbox, as ``report_outbox`` does."""

    def stop_reporting(self, backlog: BacklogMethod) -> None:
        """Report this backlog no more."""


def store_telemetry() -> StoreTelemetry:
    """Return what records the work of an outbox or inbox that is created now.

    Raises:
        ConfigurationError: the environment variable ``FOLLOWUP_TELEMETRY`` is invalid.
    """
    if not is_on():
        return StoreTelemetry()
    from followup._telemetry.recorded_stores import RecordedStores

    return RecordedStores()
