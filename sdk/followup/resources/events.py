"""Inbound events, sent one by one or in batches (specification, sections 2, 4 and 6.1)."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, Required, TypedDict

import attrs

from followup._annotations import (
    MAX_EVENTS_PER_BATCH,
    SCHEMA_VERSION,
    Default,
    EventId,
    EventType,
    Limits,
    PageLimit,
)
from followup._codec.decode import WireError, decode
from followup._errors import APIStatusError
from followup._operations import NOT_GIVEN, Mode, NotGiven, Resource, get, list_of, post
from followup._pagination import Page
from followup._redaction import SentValues, redacted
from followup._results import Model, Result, personal

EventSource = Literal["api", "pms", "email", "tool", "manual", "import"]
EventStatus = Literal["received", "processed", "failed", "duplicate", "unhandled"]
EventResultStatus = Literal["processed", "duplicate", "unhandled", "invalid", "failed"]


class EventSourceInput(TypedDict, total=False):
    """The system that an event comes from; informational.

    Keys:
        system: its name.
        version: its version.
    """

    system: str | None
    version: str | None


class EventInput(TypedDict, total=False):
    """An event to send.

    Keys:
        id: your id of the event, its idempotency key; required.
        type: one of the eight inbound types; required.
        data: the facts, in the wire's own names (camelCase), sent unchanged, None as null; required.
        schema_version: always 1.
        occurred_at: when it happened; now when omitted. An aware ``datetime`` or an ISO 8601 string.
        source: the system that it comes from.
    """

    id: Required[str]
    type: Required[EventType]
    data: Required[Mapping[str, Any]]
    schema_version: Annotated[int, Default(SCHEMA_VERSION)] | None
    occurred_at: datetime | str | None
    source: EventSourceInput | None


EventBatchInput = Annotated[Iterable[EventInput], Limits(1, MAX_EVENTS_PER_BATCH)]


@attrs.define(kw_only=True)
class EventOutcome(Model):
    """What an event produced.

    Attributes:
        object: kind of the object, such as ``appointment``.
        id: its id.
    """

    object: str
    id: str


@attrs.define(kw_only=True)
class EventResult(Model):
    """What became of one event of a batch.

    Attributes:
        id: the id that you sent.
        accepted: whether the service took it; resending an accepted id repeats nothing.
        status: ``processed``, ``duplicate``, ``unhandled``, ``invalid`` or ``failed``.
        event: id of the stored event.
        result: what it produced.
        error: why it was not accepted.
    """

    id: str
    accepted: bool
    status: EventResultStatus
    event: EventId | None = None
    result: EventOutcome | None = None
    error: str | None = personal(None)


@attrs.define(kw_only=True)
class EventBatch(Result):
    """What became of the events that were sent.

    Attributes:
        results: one per event, in the order of sending.
    """

    object: Literal["event_batch"]
    results: list[EventResult]


@attrs.define(kw_only=True)
class Event(Result):
    """A stored inbound event. ``repr`` shows nothing of its data.

    Attributes:
        source: where it came in.
        source_ref: its identity there; for the API, the id that you sent.
        status: ``received`` (in progress), ``processed``, ``failed`` (send it again with the same id), ``duplicate`` or
            ``unhandled`` (stored, without effect yet).
        error: why it failed.
        result: what it produced.
        data: the facts, untouched.
    """

    id: EventId
    object: Literal["event"]
    type: EventType
    source: EventSource
    source_ref: str
    status: EventStatus
    error: str | None = personal(None)
    result: EventOutcome | None = None
    data: Mapping[str, Any] = personal()
    occurred_at: datetime
    received_at: datetime
    processed_at: datetime | None = None


_REASONS_SHOWN = 3


class EventBatchError(APIStatusError):
    """400 or 500 of ``events.create``: no event of the batch was accepted (specification, section 4, Events).

    The text names the first three reasons with the positions of their events. Fix what ``results`` reports, and send
    the events again under the same ids.

    Attributes:
        results: what became of each event, in the order of sending.
    """

    results: list[EventResult]

    def __init__(self, *, body: Any = None, **response: Any) -> None:
        try:
            self.results = decode(list[EventResult], body["results"])
        except (WireError, TypeError, KeyError):
            self.results = []
        super().__init__(body=body, **response)

    def _details(self, sent: SentValues) -> str:
        reasons = [
            f"events[{position}]: {redacted(result.error or result.status, sent, max_length=200)}"
            for position, result in enumerate(self.results[:_REASONS_SHOWN])
        ]
        if len(self.results) > _REASONS_SHOWN:
            reasons.append(f"and {len(self.results) - _REASONS_SHOWN} more")
        return f" ({'; '.join(reasons)})" if reasons else ""


class Events(Resource[Mode], group="events"):
    """Facts about patients, pushed as events."""

    @post("/v1/events", batch_error=EventBatchError)
    def create(
        self,
        events: EventInput | EventBatchInput,
        *,
        idempotency_key: str | None = None,
    ) -> EventBatch:
        """Send one event, or up to 100 at once.

        Each event is processed on its own and has its own result. Resending an id that was accepted repeats nothing
        (specification, section 4, Events).

        Args:
            events: one event, or an iterable of 1 to 100.
            idempotency_key: made for you when omitted.

        Raises:
            EventBatchError: none was accepted; its ``results`` say why.
            ValueError: no event, or more than 100.
        """
        ...

    @get("/v1/events/{id}")
    def retrieve(self, id: EventId, /) -> Event:
        """Retrieve a stored event (specification, section 4, Events)."""
        ...

    @list_of("/v1/events")
    def list(
        self,
        *,
        limit: PageLimit | None | NotGiven = NOT_GIVEN,
        starting_after: EventId | None | NotGiven = NOT_GIVEN,
        ending_before: EventId | None | NotGiven = NOT_GIVEN,
        type: EventType | None | NotGiven = NOT_GIVEN,
        status: EventStatus | None | NotGiven = NOT_GIVEN,
        source: EventSource | None | NotGiven = NOT_GIVEN,
    ) -> Page[Event]:
        """List everything that came in for the organization, newest first (specification, section 4, Events).

        Args:
            limit: items per page, 1 to 100.
            starting_after: id of the last object of the previous page; returns the following.
            ending_before: id of the first object of the current page; returns the preceding.
            type: only events of this type.
            status: only events with this status; ``failed`` is the debugging aid.
            source: only events that came in there.
        """
        ...
