"""Inbound events, sent one by one or in batches (specification, sections 2, 4 and 6.1)."""

# pyright: reportReturnType=false

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

import attrs

from followup._core.api_rules import MAX_EVENTS_PER_BATCH, EventId, EventType, Limits, PageLimit
from followup._core.operations import NOT_GIVEN, NotGiven, Page, Resource, get, list_of, post
from followup._core.results import Result, personal
from followup._core.tracebacks import clears_frames
from followup.resources.event_batches import EventBatch, EventBatchError, EventInput, EventOutcome, EventResult, Sender

EventSource = Literal["api", "pms", "email", "tool", "manual", "import"]
EventBatchInput = Annotated[Iterable[EventInput], Limits(1, MAX_EVENTS_PER_BATCH)]
EventStatus = Literal["received", "processed", "failed", "duplicate", "unhandled"]


@attrs.define(kw_only=True, eq=False, repr=False)
class Event(Result):
    """A stored inbound event, as the API returns it (specification, section 2). ``repr`` does not show its data.

    Attributes:
        source: source of the event: ``api``, ``pms`` (practice-system connector), ``email``, ``tool``, ``manual`` or
            ``import``.
        source_ref: id of the event in its source; for ``api``, the id that you sent.
        status: ``received`` (in progress), ``processed``, ``failed`` (send it again with the same id), ``duplicate`` or
            ``unhandled`` (stored, without effect yet).
        error: reason for the failure.
        result: the object that the event created or changed.
        data: data of the event, as it was sent.
        occurred_at: time at which the event happened.
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


class Events(Resource, group="events"):
    """Inbound events of the organization's systems."""

    # The API takes {"events": [...]} too (section 4), which says no more than the array.
    @post("/v1/events", batch_error=EventBatchError)
    def create(self, events: EventInput | EventBatchInput, *, idempotency_key: str | None = None) -> EventBatch:
        """Send one event, or a batch of up to 100.

        Each event is processed separately and has its own result. Sending an accepted id again has no effect
        (specification, section 4, Events).

        Args:
            events: one event, or a list of 1 to 100.
            idempotency_key: 1 to 255 printable ASCII characters; generated if omitted.

        Returns:
            The results, one per event, in the order of sending.

        Raises:
            EventBatchError: no event was accepted; its ``results`` say why.
            ValueError: there are no events, or more than 100.
        """

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

    @clears_frames
    def send_all(
        self, events: Iterable[EventInput] | AsyncIterable[EventInput], *, max_rounds: int = 3
    ) -> Iterator[EventResult] | AsyncIterator[EventResult]:
        """Send any number of events, in batches of 100 (specification, section 4, Events).

        Events are read and results yielded during sending, so that neither has to fit into memory. The results of a
        batch are yielded once all of its events have their final result. Failed events are sent again with the same
        ids, and so are events whose result contradicts itself. A batch that is too large or takes too long is split.
        An event that cannot be sent has an ``invalid`` result and does not delay others. When the rate limit is
        reached, sending waits. After an interruption, send all events again: accepted ids have no effect a second time.

        Args:
            events: an iterable of events; for ``AsyncFollowUp`` an iterable or an asynchronous iterable.
            max_rounds: maximum number of times that an event is sent while its status is ``failed``.

        Returns:
            An iterator of results, one per event, in the order of sending within each batch; for ``AsyncFollowUp`` an
            asynchronous iterator. Nothing is sent before the iteration begins.

        Raises:
            ValueError, TypeError: ``max_rounds`` is not a whole number of 1 or more, or ``events`` is not an iterable
                of events.
            FollowUpError: a call failed; raised by the iteration. The events of that batch have no result yet.
        """
        # Each batch is the argument of `create`, so that the same checks find what is wrong in it.
        sender = Sender(events, max_rounds, lambda batch: Events.create.call((batch,), {}))
        results: Iterator[EventResult] | AsyncIterator[EventResult]
        results = self._client._perform_batches(events, MAX_EVENTS_PER_BATCH, sender.send)
        return results
