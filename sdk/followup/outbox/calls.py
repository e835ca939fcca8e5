"""Makes the call for a claim, and judges its outcome: event by event, or for the batch as a whole."""

import re
from collections.abc import Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING

import attrs

from followup._results.errors import APIStatusError, FollowUpError, IdempotencyError, RateLimitError
from followup.outbox.claims import Claim
from followup.outbox.events import WIRE_NAMES, as_input
from followup.resources.event_batches import EventBatchError, EventResult, without_position

if TYPE_CHECKING:
    from followup._client import FollowUp


_WITHOUT_RETRY_AFTER = 1.0
"""Seconds to wait after a 429 that does not say how long."""


@attrs.frozen
class Results:
    """The service decided about each event."""

    results: Sequence[EventResult]


@attrs.frozen
class RejectedAsAWhole:
    """The batch was rejected without a result for each event: it is too large, or one event spoils it.

    Attributes:
        error: the error of the call.
        names_an_event: whether the response is the service's and says that an event is invalid or too large. Only then
            does it decide about the event of a batch of one: the page of a proxy has the same status.
    """

    error: APIStatusError
    names_an_event: bool


@attrs.frozen
class Failed:
    """The call failed, which decides nothing about its events.

    Attributes:
        retry_after: seconds that the service asked to wait.
    """

    error: FollowUpError
    retry_after: float | None


def send(client: "FollowUp", claim: Claim) -> Results | RejectedAsAWhole | Failed:
    """Send the events of a claim in one call, which is one attempt.

    Args:
        client: a client without retries, because each attempt is reserved in the request rate.
        claim: the events. Its token is the idempotency key: another claim of the same events may have others beside
            them, and the key of a call that succeeded would replay its response.
    """
    try:
        batch = client.events.create([as_input(each.text) for each in claim.events], idempotency_key=claim.lease_token)
        return Results(batch.results)
    except EventBatchError as error:
        if error.results:
            return Results(error.results)
        return _judged(error)
    except FollowUpError as error:
        return _judged(error)


def reason_of(result: EventResult) -> str:
    """Return the reason why an event was not accepted, without the position that it had in its batch."""
    return without_position(result.error or f"the service reported the status {result.status}")


def _judged(error: FollowUpError) -> RejectedAsAWhole | Failed:
    if not isinstance(error, APIStatusError):
        return Failed(error, None)
    if error.status_code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return RejectedAsAWhole(error, names_an_event=error.type is not None)
    is_bad_request = error.status_code == HTTPStatus.BAD_REQUEST and not isinstance(error, IdempotencyError)
    names_an_event = names_a_field_of_an_event(error.param or "")
    if is_bad_request and (names_an_event or error.param is None):
        return RejectedAsAWhole(error, names_an_event)
    is_limited = isinstance(error, RateLimitError) and error.retry_after is None
    return Failed(error, _WITHOUT_RETRY_AFTER if is_limited else error.retry_after)


def names_a_field_of_an_event(param: str) -> bool:
    """Return whether the ``param`` of an error is the place of an event, such as ``events[3]``, or of its field."""
    names = re.findall(r"\w+", param)
    if names and names[0] in ("event", "events"):
        names.pop(0)
    return bool(names) and (names[0].isdecimal() or names[0] in WIRE_NAMES)
