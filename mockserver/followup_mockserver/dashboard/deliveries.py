"""The page of a webhook delivery: its verdict, its attempts and what the receiver responded."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, Literal

import attrs

from followup import WebhookDelivery
from followup._for_mockserver import MAX_WEBHOOK_ATTEMPTS
from followup_mockserver.dashboard.texts import body_text, in_words, json_body, redacted_response_headers
from followup_mockserver.state.records import Attempt, ReceiverResponse
from followup_mockserver.state.tenant import Tenant
from followup_mockserver.webhooks.attempting import url_of
from followup_mockserver.webhooks.payloads import body_of, headers_of

_REASONS = ("error", "message", "detail", "title", "description", "reason", "error_description", "msg")
"""Names under which servers put the reason of an error into a JSON object, the most common first."""

_LONGEST_REASON = 160
"""Characters of a reason that are shown; the whole body is shown beside it."""

_LONGEST_SENTENCE = 300
"""A body of text is the reason only if it is no longer than this."""


@attrs.frozen(kw_only=True)
class ShownResponse:
    """A response as the page shows it.

    Attributes:
        status_line: such as ``HTTP/1.1 500 Internal Server Error``.
        headers: values by names, sorted.
        body: the text of the body, indented if it is JSON; None if there is none, or it is binary.
        is_json: whether the body is JSON.
        note: what the body does not say itself: that it is empty, binary, or only the beginning.
    """

    status_line: str
    headers: Mapping[str, str]
    body: str | None
    is_json: bool
    note: str | None


def shown(response: ReceiverResponse) -> ShownResponse:
    """Return a response as the page shows it."""
    body, note = None, None
    if not response.body:
        note = "The response has no body." if response.body_is_whole else "The body did not arrive."
    elif _is_binary(response.body):
        note = f"The body is binary, {_size(response)}."
    else:
        body = body_text(response.body, response.body_is_whole)
        note = None if response.body_is_whole else f"This is the beginning of the body, {_size(response)}."
    return ShownResponse(
        status_line=response.status_line,
        headers=redacted_response_headers(response.headers),
        body=body,
        is_json=_json(response) is not None,
        note=note,
    )


def result_of(attempt: Attempt) -> str:
    """Return the result of an attempt in a few words, such as ``500 database is locked``."""
    if attempt.status_code is None:
        return (attempt.error or "No response.").rstrip(".")
    if attempt.response is None:
        return str(attempt.status_code)
    if attempt.error is None:
        return _status_of(attempt.response)
    reason = _reason(attempt.response)
    return f"{attempt.status_code} {reason}" if reason else _status_of(attempt.response)


def last_result(tenant: Tenant, delivery: WebhookDelivery) -> str | None:
    """Return why a delivery has not succeeded: the result of its last attempt, or why it was given up; or None."""
    if delivery.status == "succeeded" or delivery.last_error is None:
        return None
    attempts = [each for each in tenant.attempts.of(delivery.id) if each.error == delivery.last_error]
    return result_of(attempts[-1]) if attempts else delivery.last_error.rstrip(".")


def _status_of(response: ReceiverResponse) -> str:
    return response.status_line.partition(" ")[2]


def _reason(response: ReceiverResponse) -> str | None:
    """Return the reason of an error that a body gives; None if it gives none that is short enough to be one."""
    if not response.body or _is_binary(response.body):
        return None
    found = _json(response)
    text = _reason_in(found) if found is not None else _sentence(response)
    if text is None:
        return None
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_REASON else f"{line[:_LONGEST_REASON]}…"


def _reason_in(value: Any) -> str | None:
    """Return the first text under one of the usual names, at most two levels deep."""
    if isinstance(value, str):
        return value or None
    if not isinstance(value, dict):
        return None
    for name in _REASONS:
        text = _reason_in(value.get(name))
        if text is not None:
            return text
    return None


def _sentence(response: ReceiverResponse) -> str | None:
    text = response.body.decode(errors="replace").strip()
    is_markup = text.startswith("<") or "html" in response.headers.get("content-type", "")
    return None if is_markup or not text or len(text) > _LONGEST_SENTENCE else text


def _json(response: ReceiverResponse) -> Any:
    """Return the body as JSON; None if it is not, or is not whole."""
    found = json_body(response.body, response.body_is_whole)
    return found if isinstance(found, (dict, list)) else None


def _is_binary(body: bytes) -> bool:
    """Return whether a body has control characters that no text has."""
    return any(byte < 32 and byte not in b"\t\n\r\f\x1b" for byte in body)


def _size(response: ReceiverResponse) -> str:
    return f"{len(response.body):,} bytes" if response.body_is_whole else f"{len(response.body):,} bytes of it are kept"


SIGNATURE_REJECTIONS = (400, 401, 403)
"""The statuses with which a receiver may reject a signature."""

_SHOWN_ELSEWHERE = ("payload", "eventType", "webhookEndpoint", "attempts", "lastStatusCode", "lastError")
"""Fields that the verdict, the attempts or the payload show."""

_TRIGGERS = {"manual": "manual retry", "disturbance": "repeated by a webhook fault"}

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")

_FORGED = {
    "wrong_signature": "A webhook fault signed the first attempt with another secret on purpose.",
    "old_signature": "A webhook fault gave the first attempt an expired timestamp on purpose.",
}


@attrs.frozen(kw_only=True)
class Verdict:
    """What became of a delivery.

    Attributes:
        tone: the class of its colour.
        headline: such as ``Not delivered yet``.
        reason: the result of the last attempt that counts; None if there was none.
        sentence: the sentence about that attempt, with the reason in place of ``{}``; empty if there is none.
        next_at: when the next attempt is due; None if there is none.
    """

    tone: Literal["succeeded", "failed", "pending"]
    headline: str
    sentence: str = ""
    reason: str | None = None
    next_at: datetime | None = None


@attrs.frozen(kw_only=True)
class ShownAttempt:
    """An attempt as the page shows it.

    Attributes:
        attempt: the attempt.
        position: its position among the attempts of the delivery, from 1.
        result: its result, such as ``500 database is locked``.
        trigger: why it was made, if not by the schedule.
        wait: time since the attempt before it, such as ``+1 min``; None for the first.
        sent_at: the real time of sending, which its timestamp header states.
        headers: the request headers.
        response: the response of the receiver; None if there was none or it is no longer kept.
    """

    attempt: Attempt
    position: int
    result: str
    trigger: str | None
    wait: str | None
    sent_at: datetime
    headers: Mapping[str, str]
    response: ShownResponse | None


def delivery_details(tenant: Tenant, delivery: WebhookDelivery) -> dict[str, Any]:
    """Return the variables of the page of a delivery."""
    attempts = [*_shown(tenant.attempts.of(delivery.id))]
    last = attempts[-1].attempt if attempts else None
    fault = tenant.webhook_faults.applied.get(delivery.id)
    endpoint = tenant.webhook_endpoints.get(delivery.webhook_endpoint)
    return {
        "verdict": verdict_of(tenant, delivery),
        "endpoint": endpoint,
        "target": "a deleted endpoint" if endpoint is None else url_of(tenant, endpoint),
        "groups": [*_grouped(attempts)],
        "attempts": attempts,
        "may_be_rejected_signature": last is not None and last.status_code in SIGNATURE_REJECTIONS,
        "forged": None if fault is None else _FORGED.get(fault.kind),
        "max_attempts": MAX_WEBHOOK_ATTEMPTS,
        "body": body_of(delivery).decode(),
        "shown_elsewhere": _SHOWN_ELSEWHERE,
    }


def verdict_of(tenant: Tenant, delivery: WebhookDelivery) -> Verdict:
    """Return what became of a delivery."""
    # A repetition by a webhook fault does not count, and neither does a manual retry that failed after the end.
    attempts = [each for each in tenant.attempts.of(delivery.id) if each.trigger != "disturbance"]
    if delivery.status == "succeeded":
        return _delivered(attempts)
    if delivery.status == "failed":
        return _failed(delivery, attempts)
    if not attempts:
        return Verdict(tone="pending", headline="Not attempted yet", next_at=delivery.next_attempt_at)
    return Verdict(
        tone="pending",
        headline="Not delivered yet",
        sentence=f"Attempt {attempts[-1].number} of {MAX_WEBHOOK_ATTEMPTS} failed: {{}}.",
        reason=result_of(attempts[-1]),
        next_at=delivery.next_attempt_at,
    )


def _delivered(attempts: Sequence[Attempt]) -> Verdict:
    successful = next((each for each in attempts if each.error is None), None)
    if successful is None:  # a snapshot may lack the attempts
        return Verdict(tone="succeeded", headline="Delivered")
    which = "the first attempt" if successful.number == 1 else f"attempt {successful.number}"
    shown, sentence = successful, f"The receiver responded with {{}} after {successful.seconds * 1000:.0f} ms."
    if attempts[-1].error is not None:
        shown, sentence = attempts[-1], f"{_named(attempts[-1])} after that failed: {{}}."
    return Verdict(tone="succeeded", headline=f"Delivered at {which}", sentence=sentence, reason=result_of(shown))


def _failed(delivery: WebhookDelivery, attempts: Sequence[Attempt]) -> Verdict:
    if delivery.attempts < MAX_WEBHOOK_ATTEMPTS:
        reason = (delivery.last_error or "it was cancelled").rstrip(".")
        reason = reason[:1].lower() + reason[1:]
        if not attempts:
            return Verdict(tone="failed", headline=f"Not attempted: {reason}")
        sentence, result = f"{_named(attempts[-1])} had failed: {{}}.", result_of(attempts[-1])
        return Verdict(tone="failed", headline=f"Given up: {reason}", sentence=sentence, reason=result)
    if not attempts:
        return Verdict(tone="failed", headline="Failed", sentence="{}.", reason=delivery.last_error)
    number = _NUMBERS[len(attempts)] if len(attempts) < len(_NUMBERS) else len(attempts)
    headline = f"Failed: {number} attempts{_over(attempts)}"
    return Verdict(tone="failed", headline=headline, sentence="The last one: {}.", reason=result_of(attempts[-1]))


def _over(attempts: Sequence[Attempt]) -> str:
    duration = attempts[-1].at - attempts[0].at
    return f" over {in_words(duration)}" if duration else ""


def _named(attempt: Attempt) -> str:
    return f"Attempt {attempt.number}" if attempt.trigger == "schedule" else "The manual retry"


def _shown(attempts: Sequence[Attempt]) -> Iterator[ShownAttempt]:
    waits: list[timedelta | None] = [None, *(after.at - before.at for before, after in pairwise(attempts))]
    for position, (attempt, wait) in enumerate(zip(attempts, waits, strict=False), 1):
        yield ShownAttempt(
            attempt=attempt,
            position=position,
            result=result_of(attempt),
            trigger=_TRIGGERS.get(attempt.trigger),
            wait=f"+{in_words(wait)}" if wait else None,
            sent_at=datetime.fromtimestamp(attempt.timestamp, UTC),
            headers=headers_of(
                event_type=attempt.event_type,
                number=attempt.number,
                timestamp=attempt.timestamp,
                signature=attempt.signature,
            ),
            response=None if attempt.response is None else shown(attempt.response),
        )


def _grouped(attempts: Sequence[ShownAttempt]) -> Iterator[list[ShownAttempt]]:
    """Yield the attempts, consecutive ones that failed in the same way together; the last one is always alone."""
    group: list[ShownAttempt] = []
    for each in attempts:
        is_last = each is attempts[-1]
        if group and (is_last or not _is_repetition(group[-1], each)):
            yield group
            group = []
        group.append(each)
    if group:
        yield group


def _is_repetition(before: ShownAttempt, after: ShownAttempt) -> bool:
    failed = before.attempt.error is not None and after.attempt.error is not None
    return failed and (before.result, before.trigger) == (after.result, after.trigger)
