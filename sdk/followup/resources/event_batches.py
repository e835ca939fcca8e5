"""Batches of inbound events: their input and their results (specification, sections 4 and 6.1)."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, Required, TypedDict

import attrs

from followup._core.api_rules import MAX_EVENTS_PER_BATCH, SCHEMA_VERSION, Constant, EventId, EventType, NonEmpty
from followup._core.call.responses import OTHER_EVENTS, put_in_order
from followup._core.codec.decode import decode
from followup._core.codec.wire import WireError
from followup._core.privacy.redaction import SentValues, redacted
from followup._core.results.errors import APIConnectionError, APIStatusError, APITimeoutError, FollowUpError
from followup._core.results.results import Model, Result, personal

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

    id: Required[NonEmpty]
    type: Required[EventType]
    data: Required[Mapping[str, Any]]
    schema_version: Annotated[int, Constant(SCHEMA_VERSION)] | None
    occurred_at: datetime | str | None
    source: EventSourceInput | None


@attrs.define(kw_only=True, eq=False, repr=False)
class EventOutcome(Model):
    """The object that an event created or changed.

    Attributes:
        object: type of the object, such as ``appointment``.
        id: id of the object.
    """

    object: str
    id: str


@attrs.define(kw_only=True, eq=False, repr=False)
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


@attrs.define(kw_only=True, eq=False, repr=False)
class EventBatch(Result):
    """The results of a batch of events (specification, section 2).

    Attributes:
        results: one result per event, in the order of sending.
    """

    object: Literal["event_batch"]
    results: list[EventResult]


ACCEPTED = frozenset({"processed", "duplicate", "unhandled"})
"""The statuses of events that the service accepted."""

MISSING = "the response has no result for it"

_PLACE = r"^events\[\d+\]\.?"
"""A position in a batch, which is meaningless to a caller of ``send_all``."""


def outcome_of(result: EventResult) -> Literal["accepted", "failed", "invalid"]:
    """Return what a result means for its event.

    A result that contradicts itself decides nothing, and the event is sent again, which has no effect if the service
    had accepted it:

    ============  ================================  ============  ===================
    ``accepted``  processed, duplicate, unhandled   invalid       failed, any other
    ============  ================================  ============  ===================
    true          accepted                          failed        failed
    false         failed                            invalid       failed
    ============  ================================  ============  ===================
    """
    if result.accepted != (result.status in ACCEPTED):
        return "failed"
    return "accepted" if result.accepted else "invalid" if result.status == "invalid" else "failed"


def without_position(reason: str) -> str:
    """Return the reason why an event was not accepted, without the event's position in its batch."""
    return re.sub(_PLACE, "", reason)


def problem_of(result: EventResult) -> str:
    """Return why an event was not accepted."""
    if result.accepted or result.status in ACCEPTED:
        accepted = str(result.accepted).lower()
        return f"the service contradicts itself: accepted is {accepted}, but the status is {result.status}"
    return without_position(result.error or f"the service reported the status {result.status}")


def takes_too_long(error: FollowUpError, *, is_repeated: bool) -> bool:
    """Return whether a call may have failed because of the size of its batch: a smaller one may succeed.

    Args:
        error: the error of the call.
        is_repeated: whether the events had been sent before. A connection may break once for any reason.
    """
    if isinstance(error, APIStatusError):
        is_late, is_broken = (error.status_code == each for each in (504, 408))
    else:
        is_broken = isinstance(error, APIConnectionError) and error.was_sent != "no"
        is_late = is_broken and isinstance(error, APITimeoutError)
    return is_late or (is_broken and is_repeated)


def larger_batch(size: int) -> int:
    """Return the size of the next batch after one that succeeded: it grows slowly, since a failure costs a timeout."""
    return min(MAX_EVENTS_PER_BATCH, size + 1 + size // 10)


_REASONS_SHOWN = 3


class EventBatchError(APIStatusError):
    """400 or 500 of ``events.create``: no event of the batch was accepted (specification, section 4, Events).

    The message names the first three reasons with the positions of their events. Fix the events according to
    ``results``, and send them again with the same ids.

    Attributes:
        results: one result per event, in the order of sending; as they came if they are about other events, which the
            message then says; empty if they cannot be read.
    """

    results: list[EventResult]

    def __init__(
        self, text: str = "", *, body: Any = None, event_ids: Sequence[str] | None = None, **response: Any
    ) -> None:
        try:
            self.results = decode(list[EventResult], body["results"])
        except (WireError, TypeError, KeyError):
            self.results = []
        if event_ids is not None and not put_in_order(self.results, event_ids):
            response["note"] = ". ".join(filter(None, (OTHER_EVENTS.capitalize(), response.get("note"))))
        super().__init__(text, body=body, **response)

    def _details(self, sent: SentValues) -> str:
        reasons = [
            f"events[{position}]: {redacted(result.error or result.status, sent, max_length=200)}"
            for position, result in enumerate(self.results[:_REASONS_SHOWN])
        ]
        if len(self.results) > _REASONS_SHOWN:
            reasons.append(f"and {len(self.results) - _REASONS_SHOWN} more")
        return f" ({'; '.join(reasons)})" if reasons else ""
