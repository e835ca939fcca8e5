"""What a call sends, and what it means for its events and for the service: judged without I/O."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Literal

import attrs

from followup._core.errors import APIStatusError, FollowUpError, IdempotencyError, RateLimitError
from followup._store.leases import retry_wait
from followup._store.schema import DEAD, WAITING
from followup.outbox.events import SENT, WIRE_NAMES
from followup.resources import event_batches

LONGEST_WAIT = 300.0
"""Seconds, at most, between two attempts to send an event."""

_LONGEST_WAIT_AFTER_FAILED_CALL = 30.0
"""Seconds until an event is sent again whose call failed as a whole; all relays pause in addition."""

_WITHOUT_RETRY_AFTER = 1.0
"""Seconds to wait after a 429 that does not say how long."""


@attrs.frozen
class ClaimedEvent:
    """An event that this process may send.

    Attributes:
        attempts: number of times that it has been sent, this time included.
    """

    id: str
    text: str = attrs.field(repr=False)
    attempts: int


@attrs.frozen
class Claim:
    """The events of one call, claimed until the lease ends."""

    lease_token: str
    events: Sequence[ClaimedEvent]


@attrs.frozen
class Verdict:
    """What becomes of a claimed event.

    Attributes:
        state: ``sent``, ``dead`` or ``waiting``.
        reason: why it was not accepted.
        wait: milliseconds until the next attempt.
    """

    state: str
    reason: str | None = attrs.field(default=None, repr=False)
    wait: int = 0


@attrs.frozen
class Settlement:
    """What a call means for its events, and for the service.

    Attributes:
        verdicts: by the id of the event. Events that are not named stay claimed for the rest of their lease.
        text: what happened, for the log.
        batch_limit: the largest batch in which the events may be sent from now on; None if that does not change.
        is_late: whether the call took too long for so many events, so that others should be fewer, too.
        counts_as_attempt: whether the events were sent.
        duplicates: how many of the accepted events the service had before.
        service: whether the service works or fails; None if the call says nothing about it.
        retry_after: seconds that the service asked to wait.
    """

    verdicts: Mapping[str, Verdict]
    text: str
    batch_limit: int | None = None
    is_late: bool = False
    counts_as_attempt: bool = True
    duplicates: int = 0
    service: Literal["works", "fails"] | None = None
    retry_after: float | None = None


def of_results(claim: Claim, results: Sequence[event_batches.EventResult]) -> Settlement:
    """Judge a call that has results for its events."""
    # Of several results for an event, that counts which loses nothing: accepted, else to be tried again.
    in_order = sorted(
        results, key=lambda result: ("invalid", "failed", "accepted").index(event_batches.outcome_of(result))
    )
    by_id = {result.id: result for result in in_order}
    verdicts = {event.id: _verdict(event, by_id.get(event.id)) for event in claim.events}
    states = Counter(verdict.state for verdict in verdicts.values())
    sent = (by_id[key] for key, verdict in verdicts.items() if verdict.state == SENT)
    duplicates = sum(each.status == "duplicate" for each in sent)
    accepted = f"{states[SENT]} accepted ({duplicates} duplicates)"
    text = f"{accepted}, {states[WAITING]} failed, {states[DEAD]} rejected"
    return Settlement(verdicts, text, duplicates=duplicates, service="works")


def _verdict(event: ClaimedEvent, result: event_batches.EventResult | None) -> Verdict:
    if result is None:
        return _wait(event, LONGEST_WAIT, event_batches.MISSING)
    outcome = event_batches.outcome_of(result)
    if outcome == "accepted":
        return Verdict(SENT)
    reason = event_batches.problem_of(result)
    return Verdict(DEAD, reason) if outcome == "invalid" else _wait(event, LONGEST_WAIT, reason)


def of_error(claim: Claim, error: FollowUpError) -> Settlement:
    """Judge a call that failed, perhaps with results for its events.

    Only the service can reject an event, by a response that names it: the page of a proxy has the same status.
    """
    if isinstance(error, event_batches.EventBatchError) and error.results:
        return of_results(claim, error.results)
    if not isinstance(error, APIStatusError):
        return _of_failure(claim, error)
    is_named = _names_a_field_of_an_event(error.param or "")
    is_too_large = error.status_code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    is_bad = error.status_code == HTTPStatus.BAD_REQUEST and not isinstance(error, IdempotencyError)
    if not is_too_large and not (is_bad and (is_named or error.param is None)):
        is_limited = isinstance(error, RateLimitError) and error.retry_after is None
        return _of_failure(claim, error, _WITHOUT_RETRY_AFTER if is_limited else error.retry_after)
    if len(claim.events) > 1:
        return apart(claim, str(error))
    if is_named or (is_too_large and error.type is not None):
        verdict = Verdict(DEAD, event_batches.without_position(error.message))
        return Settlement({claim.events[0].id: verdict}, "the service rejected an event", service="works")
    # Whether the event or the whole call is wrong is unknown. The others do not wait for it.
    return _of_failure(claim, error, longest_wait=LONGEST_WAIT)


def _of_failure(
    claim: Claim,
    error: FollowUpError,
    retry_after: float | None = None,
    longest_wait: float = _LONGEST_WAIT_AFTER_FAILED_CALL,
) -> Settlement:
    verdicts = {event.id: _wait(event, longest_wait, str(error)) for event in claim.events}
    text = f"a call failed, its events wait again: {error}"
    is_repeated = all(event.attempts > 1 for event in claim.events)
    is_late = len(claim.events) > 1 and event_batches.takes_too_long(error, is_repeated=is_repeated)
    limit = _half(claim) if is_late else None
    return Settlement(verdicts, text, limit, is_late, service="fails", retry_after=retry_after)


def cut_off(
    claim: Claim, reason: str, longest_wait: float = _LONGEST_WAIT_AFTER_FAILED_CALL, *, is_late: bool = False
) -> Settlement:
    """Let the events of a call wait that ended on this side, which says nothing about the service.

    Args:
        claim: the events.
        reason: why the call ended.
        longest_wait: seconds, at most, until their next attempt.
        is_late: whether it took too long: then fewer of them go into a call.
    """
    verdicts = {event.id: _wait(event, longest_wait, reason) for event in claim.events}
    return Settlement(verdicts, f"{reason}, the events wait again", _half(claim) if is_late else None, is_late)


def _half(claim: Claim) -> int | None:
    return len(claim.events) // 2 or None


def apart(claim: Claim, reason: str) -> Settlement:
    """Let the events be sent at once in smaller batches, down to the one that spoils them; one that is alone waits."""
    size = len(claim.events)
    if size == 1:
        return cut_off(claim, reason, LONGEST_WAIT)
    return at_once(claim, f"a batch of {size} events was rejected as a whole", reason, batch_limit=_half(claim))


def at_once(claim: Claim, text: str, reason: str | None = None, batch_limit: int | None = None) -> Settlement:
    """Let the events be sent again at once. This time does not count."""
    verdict = Verdict(WAITING, reason)
    return Settlement({event.id: verdict for event in claim.events}, text, batch_limit, counts_as_attempt=False)


def _wait(event: ClaimedEvent, longest: float, reason: str) -> Verdict:
    return Verdict(WAITING, reason, retry_wait(event.attempts, longest))


def _names_a_field_of_an_event(param: str) -> bool:
    """Return whether the ``param`` of an error is the place of an event, such as ``events[3]``, or of its field."""
    names = re.findall(r"\w+", param)
    if names and names[0] in ("event", "events"):
        names.pop(0)
    return bool(names) and (names[0].isdecimal() or names[0] in WIRE_NAMES)
