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
    """The system that an event comes from, for information only.

    Keys:
        system: name of the system.
        version: version of the system.
    """

    system: str | None
    version: str | None


class EventInput(TypedDict, total=False):
    """An inbound event to send (specification, section 6.1).

    Keys:
        id: your id of the event, which is its idempotency key; required.
        type: one of the eight inbound event types; required.
        data: data of the event with camelCase keys, sent unchanged, None as null; required.
        schema_version: always 1, the default.
        occurred_at: time at which it happened; now when omitted. An aware ``datetime`` or an ISO 8601 string.
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
    """The object that an event created or changed.

    Attributes:
        object: type of the object, such as ``appointment``.
        id: id of the object.
    """

    object: str
    id: str


@attrs.define(kw_only=True)
class EventResult(Model):
    """The result of one event of a batch.

    Attributes:
        id: your id of the event.
        accepted: whether the service accepted it; sending an accepted id again has no effect.
        status: ``processed``, ``duplicate``, ``unhandled``, ``invalid`` or ``failed``.
        event: id of the stored event.
        result: the object that it created or changed.
        error: reason for which it was not accepted.
    """

    id: str
    accepted: bool
    status: EventResultStatus
    event: EventId | None = None
    result: EventOutcome | None = None
    error: str | None = personal(None)


@attrs.define(kw_only=True)
class EventBatch(Result):
    """The results of a batch of events (specification, section 2).

    Attributes:
        results: one result per event, in the order of sending.
    """

    object: Literal["event_batch"]
    results: list[EventResult]


@attrs.define(kw_only=True)
class Event(Result):
    """A stored inbound event, as the API returns it (specification, section 2). ``repr`` does not show its data.

    Attributes:
        source: source of the event: ``api``, ``pms`` (practice-system connector), ``email``, ``tool``, ``manual`` or
            ``import``.
        source_ref: id of the event in its source; for ``api``, the id that you sent.
        status: ``received`` (in progress), ``processed``, ``failed`` (send it again with the same id), ``duplicate`` or
            ``unhandled`` (stored, without effect yet).
        error: reason of the failure.
        result: the object that it created or changed.
        data: data of the event, as it was sent.
        occurred_at: time at which it happened.
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

    The message names the first three reasons with the positions of their events. Fix the events as ``results`` says,
    and send them again with the same ids.

    Attributes:
        results: one result per event, in the order of sending.
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
    """Inbound events: what happened in the organization's systems."""

    @post("/v1/events", batch_error=EventBatchError)
    def create(
        self,
        events: EventInput | EventBatchInput,
        *,
        idempotency_key: str | None = None,
    ) -> EventBatch:
        """Send one event, or a batch of up to 100.

        Each event is processed separately and has its own result. Sending an accepted id again has no effect
        (specification, section 4, Events).

        Args:
            events: one event, or an iterable of 1 to 100.
            idempotency_key: 1 to 255 printable ASCII characters; generated if omitted.

        Returns:
            The results, one per event, in the order of sending.

        Raises:
            EventBatchError: no event was accepted; its ``results`` say why.
            ValueError: there are no events, or more than 100.
        """
        ...

    @get("/v1/events/{id}")
    def retrieve(self, id: EventId, /) -> Event:
        """Retrieve a stored event (specification, section 4, Events).

        Args:
            id: id of the event, begins with ``evt_``.

        Returns:
            The event.

        Raises:
            NotFoundError: there is no such event.
        """
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
        """List the organization's inbound events of every source, newest first (specification, section 4, Events).

        Args:
            limit: items per page, 1 to 100.
            starting_after: id of the last item of a page, to get the page after it.
            ending_before: id of the first item of a page, to get the page before it.
            type: only events of this type.
            status: only events with this status; ``failed`` helps to debug an integration.
            source: only events from this source.

        Returns:
            The first page of events.
        """
        ...
