"""What a receiver responded to an attempt: its head, its body, and the reason that it states for an error."""

from collections.abc import Mapping
from typing import Any

import attrs

from followup import WebhookDelivery
from followup_mockserver.dashboard.json_bodies import body_text, json_body
from followup_mockserver.dashboard.redaction import redacted_response_headers
from followup_mockserver.state.records import Attempt, ReceiverResponse
from followup_mockserver.state.tenant import Tenant

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
