"""Batches of inbound events: the input, and the result of each event (specification, sections 4 and 6.1)."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, Required, TypedDict

import attrs

from followup._annotations import MAX_EVENTS_PER_BATCH, SCHEMA_VERSION, Default, EventId, EventType, Limits
from followup._codec.decode import WireError, decode
from followup._redaction import SentValues, redacted
from followup._results.model import Model, personal
from followup._results.results import Result
from followup._results.status_errors import APIStatusError

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
        occurred_at: time at which the event happened; the time of arrival when omitted. An aware ``datetime`` or
            an ISO 8601 string.
        source: the system that the event comes from.
    """

    id: Required[str]
    type: Required[EventType]
    data: Required[Mapping[str, Any]]
    schema_version: Annotated[int, Default(SCHEMA_VERSION)] | None
    occurred_at: datetime | str | None
    source: EventSourceInput | None


EventBatchInput = Annotated[Iterable[EventInput], Limits(1, MAX_EVENTS_PER_BATCH)]


@attrs.define(kw_only=True, repr=False)
class EventOutcome(Model):
    """The object that an event created or changed.

    Attributes:
        object: type of the object, such as ``appointment``.
        id: id of the object.
    """

    object: str
    id: str


@attrs.define(kw_only=True, repr=False)
class EventResult(Model):
    """The result of one event of a batch.

    Attributes:
        id: your id of the event.
        accepted: whether the service accepted it; sending an accepted id again has no effect.
        status: ``processed``, ``duplicate``, ``unhandled``, ``invalid`` or ``failed``.
        event: id of the stored event.
        result: the object that the event created or changed.
        error: reason why the event was not accepted.
    """

    id: str
    accepted: bool
    status: EventResultStatus
    event: EventId | None = None
    result: EventOutcome | None = None
    error: str | None = personal(None)


@attrs.define(kw_only=True, repr=False)
class EventBatch(Result):
    """The results of a batch of events (specification, section 2).

    Attributes:
        results: one result per event, in the order of sending.
    """

    object: Literal["event_batch"]
    results: list[EventResult]


_REASONS_SHOWN = 3


class EventBatchError(APIStatusError):
    """400 or 500 of ``events.create``: no event of the batch was accepted (specification, section 4, Events).

    The message names the first three reasons with the positions of their events. Fix the events according to
    ``results``, and send them again with the same ids.

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
