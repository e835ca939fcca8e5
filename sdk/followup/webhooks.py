"""Webhooks: is this request from the service, and what does it say? (Specification, section 6.2.)

Needs neither a client nor a network. The header names and the way of signing stand here and nowhere else; the mock
server signs with them too.
"""

import hmac
import json
import math
import re
import time
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Literal, Protocol

import attrs

from followup._annotations import WEBHOOK_TOLERANCE, OutboundEventType, WebhookDeliveryId
from followup._codec.decode import WireError, decode
from followup._errors import WebhookSignatureError
from followup._results import Model, personal

SIGNATURE_HEADER = "x-service-signature"
TIMESTAMP_HEADER = "x-service-timestamp"
EVENT_TYPE_HEADER = "x-service-event-type"
ATTEMPT_HEADER = "x-service-delivery-attempt"

_SCHEME = "sha256="
_SIGNATURE = re.compile(r"sha256=[0-9a-f]{64}")
_TIMESTAMP_DIGITS = 12
_NO_TIME = 10**_TIMESTAMP_DIGITS  # seconds since the epoch; datetime ends long before


class Headers(Protocol):
    """The headers of a request, as any framework gives them: a dict, or what has ``items()`` as a dict has."""

    def items(self) -> Iterable[tuple[Any, Any]]: ...


@attrs.define(kw_only=True)
class WebhookEvent(Model):
    """What the service tells (specification, section 6.2, Request body). ``repr`` shows nothing of its data.

    The same event may arrive twice, and out of order: deduplicate by ``id``, order by ``occurred_at``.

    Attributes:
        id: delivery id, identical across retries.
        object: ``event``.
        type: one of the outbound event types, such as ``appointment.created``.
        api_version: dated version of the body.
        livemode: true in production, false in the test environment.
        occurred_at: when it happened.
        ref: the service's id of what triggered the event.
        data: the facts, untouched.
    """

    id: WebhookDeliveryId
    object: Literal["event"] = "event"
    type: OutboundEventType
    api_version: str
    livemode: bool
    occurred_at: datetime
    ref: str
    data: Mapping[str, Any] = personal()


def sign(payload: bytes, secret: str, timestamp: int) -> str:
    """The signature header for a body that is sent at this time (seconds since the epoch)."""
    return _hmac(secret.encode(), b"%d." % timestamp + payload)


def verify_signature(
    payload: bytes | str,
    headers: Headers,
    secret: str | Iterable[str],
    *,
    tolerance: float | None = WEBHOOK_TOLERANCE,
    now: float | datetime | None = None,
) -> None:
    """Return if the request was signed with the secret, and not long ago (specification, section 6.2, Signature).

    Args:
        payload: the raw body, exactly as it arrived; text is taken as UTF-8. Never parsed and written again.
        headers: the request's headers, as the framework gives them; their case does not matter.
        secret: the endpoint's ``whsec_…`` secret, or several while one replaces another.
        tolerance: seconds that the time of sending may differ from ``now``, either way; None checks no time, for a
            request that was stored.
        now: seconds since the epoch, or an aware datetime; the real time when left out.

    Raises:
        WebhookSignatureError: the request must not be trusted; ``reason`` says which check failed.
        TypeError, ValueError: ``secret``, ``tolerance`` or ``now`` cannot be used.
    """
    body = _raw(payload)
    secrets = _secrets(secret)
    current = _seconds(now)
    if tolerance is not None and (isinstance(tolerance, bool) or not 0 <= tolerance < math.inf):
        raise ValueError("tolerance must be a number of seconds, 0 or more, or None")
    signature, sent = _header(headers, SIGNATURE_HEADER), _timestamp(headers)
    genuine = _is_signed_by_any(secrets, sent.encode() + b"." + body, signature)
    # A signature of another shape matches nothing; only one that does not match is worth the look.
    if not genuine and not _SIGNATURE.fullmatch(signature):
        raise _malformed(SIGNATURE_HEADER, f"{_SCHEME} and 64 lowercase hexadecimal digits")
    age = current - int(sent)
    if tolerance is not None and abs(age) > tolerance:
        raise _untimely(age, tolerance)
    if not genuine:
        raise WebhookSignatureError(
            "wrong signature: signed with another secret, or the body is not the one that was sent",
            reason="wrong_signature",
        )


def construct_event(
    payload: bytes | str,
    headers: Headers,
    secret: str | Iterable[str],
    *,
    tolerance: float | None = WEBHOOK_TOLERANCE,
    now: float | datetime | None = None,
) -> WebhookEvent:
    """Verify a webhook request and return what it says; the arguments are those of ``verify_signature``.

    Raises:
        WebhookSignatureError: as ``verify_signature``; ``malformed_payload`` for a signed body that is no event.
        TypeError, ValueError: ``secret``, ``tolerance`` or ``now`` cannot be used.
    """
    verify_signature(payload, headers, secret, tolerance=tolerance, now=now)
    try:
        return decode(WebhookEvent, json.loads(_raw(payload)))
    except WireError as error:
        problem = str(error)
    except (ValueError, RecursionError):
        problem = "the body is not JSON"
    # Outside the handler: the original error would carry the body along.
    raise WebhookSignatureError(f"malformed payload: {problem}", reason="malformed_payload")


def _raw(payload: object) -> bytes:
    if isinstance(payload, bytes):
        return payload
    if isinstance(payload, str):
        try:
            return payload.encode()
        except UnicodeEncodeError:
            problem = "the text cannot be written as UTF-8; pass the raw body as bytes"
    elif isinstance(payload, (bytearray, memoryview)):
        return bytes(payload)
    elif isinstance(payload, (Mapping, list)):
        problem = "this is parsed JSON; pass the raw body, as bytes, exactly as it arrived"
    else:
        problem = f"pass the raw body as bytes, not a {type(payload).__name__}"
    raise WebhookSignatureError(f"malformed payload: {problem}", reason="malformed_payload")


def _secrets(secret: object) -> list[bytes]:
    if isinstance(secret, str) and secret and secret.isascii():
        return [secret.encode()]
    secrets = [secret] if isinstance(secret, str) else list(secret) if isinstance(secret, Iterable) else []
    if not secrets or isinstance(secret, (bytes, bytearray, Mapping)):
        raise TypeError("secret must be a string, or an iterable of strings with at least one")
    for each in secrets:
        if not isinstance(each, str):
            raise TypeError("secret must be a string, or an iterable of strings")
        if not each or not each.isascii():
            raise ValueError("secret must not be empty, and is made of ASCII characters")
    return [each.encode() for each in secrets if isinstance(each, str)]


def _seconds(now: object) -> float:
    if now is None:
        return time.time()
    if isinstance(now, datetime):
        if now.utcoffset() is None:
            raise ValueError("now is a naive datetime, which names no instant; give it a time zone")
        return now.timestamp()
    # The bounds also refuse milliseconds, which would make every request look thousands of years old.
    if isinstance(now, bool) or not isinstance(now, (int, float)) or not -_NO_TIME < now < _NO_TIME:
        raise ValueError("now must be seconds since the epoch, or an aware datetime")
    return now


def _timestamp(headers: object) -> str:
    """The time of sending as it was written, because so it was signed."""
    sent = _header(headers, TIMESTAMP_HEADER)
    # Not int() alone, which also takes signs, underscores, spaces and the digits of every script.
    if len(sent) > _TIMESTAMP_DIGITS or not (sent.isascii() and sent.isdigit()):
        raise _malformed(TIMESTAMP_HEADER, "whole seconds since the epoch")
    return sent


def _header(headers: Any, name: str) -> str:
    # Most frameworks' dicts are found without a look at every header.
    value = (headers.get(name) or headers.get(name.title())) if isinstance(headers, dict) else None
    if isinstance(value, str):
        return value
    # Not only mappings: the headers of werkzeug and of the standard library are none.
    if not callable(getattr(headers, "items", None)):
        raise WebhookSignatureError("malformed headers: pass a mapping of names to values", reason="malformed_header")
    value = next((each for key, each in headers.items() if _text(key).lower() == name), None)
    if isinstance(value, (list, tuple)) and len(value) < 2:
        value = value[0] if value else None
    if value is None or value in ("", b""):
        raise WebhookSignatureError(f"missing header {name}", reason="missing_header")
    return _text(value)


def _text(value: object) -> str:
    """A header's name or value, as text or bytes; anything else is one that matches nothing."""
    if isinstance(value, str):
        return value
    return value.decode("latin-1") if isinstance(value, bytes) else ""


def _hmac(secret: bytes, signed: bytes) -> str:
    # As fast as hmac.digest, and hexadecimal already.
    return _SCHEME + hmac.new(secret, signed, "sha256").hexdigest()


def _is_signed_by_any(secrets: list[bytes], signed: bytes, signature: str) -> bool:
    if not signature.isascii():
        # compare_digest takes no such text.
        return False
    genuine = False
    for each in secrets:
        # Every secret is tried, so that the time it takes does not tell which one matched.
        genuine |= hmac.compare_digest(_hmac(each, signed), signature)
    return genuine


def _malformed(name: str, expected: str) -> WebhookSignatureError:
    return WebhookSignatureError(f"malformed header {name}: expected {expected}", reason="malformed_header")


def _untimely(age: float, tolerance: float) -> WebhookSignatureError:
    too, reason = ("old", "too_old") if age > 0 else ("new", "too_new")
    return WebhookSignatureError(
        f"too {too} by {math.ceil(abs(age) - tolerance)} s: sent {abs(age):.0f} s {'ago' if age > 0 else 'from now'}, "
        f"the tolerance is {tolerance:g} s",
        reason=reason,
    )
