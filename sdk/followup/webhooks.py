"""Verifies and parses webhooks (specification, section 6.2).

No client and no network is needed. The header names and the signature scheme are defined here only; the mock server
signs with them as well.

A function in the cloud imports this module in each cold start. So it imports nothing but what a verification needs, not
even ``typing`` or ``datetime``; what builds the event is imported with the first event.
"""

from __future__ import annotations

import hmac
import json
import math
import os
import re
import time
from collections.abc import Iterable, Mapping

from followup._core.errors import ConfigurationError, WebhookSignatureError
from followup._core.plain import TYPE_CHECKING, Late, surroundings, unwrapped
from followup._core.tracebacks import clears_frames

if TYPE_CHECKING:
    import datetime
    from typing import Any

    from followup.resources import webhook_event as events
else:
    datetime, events = Late("datetime"), Late("followup.resources.webhook_event")


WEBHOOK_TOLERANCE = 300
"""Seconds by which the timestamp may differ from the receiver's clock, in either direction."""

SIGNATURE_HEADER = "x-service-signature"
TIMESTAMP_HEADER = "x-service-timestamp"
EVENT_TYPE_HEADER = "x-service-event-type"
ATTEMPT_HEADER = "x-service-delivery-attempt"

MAX_BODY = 2 * 1024 * 1024
"""Bytes of a body that receivers of ours read. A request of a client has 1 MiB at most, so that no event comes near."""

SECRET_VARIABLE = "FOLLOWUP_WEBHOOK_SECRET"  # noqa: S105 - the name of the variable

_SCHEME = "sha256="
_SIGNATURE = r"sha256=[0-9a-f]{64}"
_TIMESTAMP_DIGITS = 12
_MAX_TIMESTAMP = 10**_TIMESTAMP_DIGITS  # seconds since the epoch; datetime ends long before


def sign(payload: bytes, secret: str, timestamp: int) -> str:
    """Return the value of the signature header.

    Args:
        payload: the body.
        secret: the endpoint's secret.
        timestamp: time of sending, in seconds since the epoch.

    Returns:
        ``sha256=`` and the HMAC-SHA256 of timestamp and body, as lowercase hexadecimal digits.
    """
    return _hmac(secret.encode(), b"%d." % timestamp + payload)


@clears_frames
def verify_signature(
    payload: bytes | str,
    headers: events.Headers,
    secret: str | Iterable[str],
    *,
    tolerance: float | None = WEBHOOK_TOLERANCE,
    now: float | datetime.datetime | None = None,
) -> None:
    """Verify the signature and the timestamp of a webhook request (specification, section 6.2, Signature).

    Args:
        payload: the raw body, exactly as it was received; text is encoded as UTF-8. Re-serialized JSON does not match
            the signature.
        headers: the headers of the request, as the framework provides them; their case does not matter.
        secret: the endpoint's ``whsec_...`` secret, or several of them during a rotation.
        tolerance: seconds by which the timestamp may differ from ``now``, in either direction. None skips this check,
            for a stored request.
        now: current time, as seconds since the epoch or an aware datetime. Defaults to the system clock.

    Raises:
        WebhookSignatureError: the request must not be trusted; ``reason`` names the check that failed.
        TypeError, ValueError: ``secret``, ``tolerance`` or ``now`` is invalid.
    """
    body = _raw(payload)
    secrets = checked_secrets(secret)
    current = _seconds(now)
    if tolerance is not None and not (isinstance(tolerance, (int, float)) and 0 <= tolerance < math.inf):
        raise ValueError("tolerance must be a number of seconds, 0 or more, or None")
    signature, sent = _header(headers, SIGNATURE_HEADER), _timestamp(headers)
    genuine = _is_signed_by_any(secrets, sent.encode() + b"." + body, signature)
    # A malformed signature never matches, so its format is checked only to explain the mismatch.
    if not genuine and not re.fullmatch(_SIGNATURE, signature):
        raise _malformed(SIGNATURE_HEADER, f"{_SCHEME} and 64 lowercase hexadecimal digits")
    age = current - int(sent)
    if tolerance is not None and abs(age) > tolerance:
        raise _outside_tolerance(age, tolerance)
    if not genuine:
        raise WebhookSignatureError(
            "signature is invalid: the request was signed with another secret, or payload is not its raw body",
            reason="wrong_signature",
        )


@clears_frames
def construct_event(
    payload: bytes | str,
    headers: events.Headers,
    secret: str | Iterable[str],
    *,
    tolerance: float | None = WEBHOOK_TOLERANCE,
    now: float | datetime.datetime | None = None,
) -> events.WebhookEvent:
    """Verify a webhook request and return its event (specification, section 6.2).

    Args:
        payload: the raw body, exactly as it was received; text is encoded as UTF-8. Re-serialized JSON does not match
            the signature.
        headers: the headers of the request, as the framework provides them; their case does not matter.
        secret: the endpoint's ``whsec_...`` secret, or several of them during a rotation.
        tolerance: seconds by which the timestamp may differ from ``now``, in either direction. None skips this check,
            for a stored request.
        now: current time, as seconds since the epoch or an aware datetime. Defaults to the system clock.

    Returns:
        The event.

    Raises:
        WebhookSignatureError: the request must not be trusted, or its body is not an event (then ``reason`` is
            ``malformed_payload``).
        TypeError, ValueError: ``secret``, ``tolerance`` or ``now`` is invalid.
    """
    verify_signature(payload, headers, secret, tolerance=tolerance, now=now)
    from followup._core.codec.decode import decode
    from followup._core.codec.wire import WireError

    try:
        return decode(events.WebhookEvent, json.loads(_raw(payload)))
    except WireError as error:
        problem = str(error)
    except (ValueError, RecursionError):
        problem = "the body is not JSON"
    # Raised outside the handler, because the original error holds the body.
    raise WebhookSignatureError(f"payload is not an event: {problem}", reason="malformed_payload")


def _raw(payload: object) -> bytes:
    if isinstance(payload, (bytes, bytearray, memoryview)):
        return bytes(payload)
    if isinstance(payload, str):
        return payload.encode(errors="replace")  # half a character, which no body has, does not match
    problem = f"payload is {type(payload).__name__}: pass the raw body as bytes, exactly as it was received"
    raise WebhookSignatureError(problem, reason="malformed_payload")


def secrets_of_environment() -> list[str]:
    """Return the secrets in ``FOLLOWUP_WEBHOOK_SECRET``, where a comma separates several.

    Raises:
        ConfigurationError: there is none.
    """
    secrets = [each.strip() for each in os.environ.get(SECRET_VARIABLE, "").split(",") if each.strip()]
    if not secrets:
        raise ConfigurationError(f"no secret: pass secret=..., or set {SECRET_VARIABLE}")
    return secrets


def checked_secrets(secret: object) -> list[bytes]:
    """Return one secret, or several of them, as bytes.

    Raises:
        TypeError, ValueError: it is invalid.
    """
    is_one = isinstance(secret, (str, bytes, bytearray, Mapping))
    secrets = list(secret) if isinstance(secret, Iterable) and not is_one else []
    found = []
    for each in secrets or [secret]:
        if not isinstance(each, str):
            kind = f"{type(each).__name__}{unwrapped(each)}"
            raise TypeError(f"secret must be a string or a non-empty iterable of strings, not {kind}")
        if problem := surroundings(each):
            raise ValueError(f"secret {problem}")
        if each.rstrip(".…") == "whsec_":
            raise ValueError("secret is a placeholder: pass the one that the creation of your endpoint returned")
        if not each or not each.isascii():
            raise ValueError("secret must be non-empty ASCII text, such as whsec_...")
        found.append(each.encode())
    return found


def _seconds(now: object) -> float:
    if now is None:
        return time.time()
    # The bounds also reject milliseconds, which would make every request look thousands of years old.
    if isinstance(now, (int, float)) and -_MAX_TIMESTAMP < now < _MAX_TIMESTAMP:
        return now
    from datetime import datetime

    from followup._core.codec.wire import in_utc

    if not isinstance(now, datetime):
        raise ValueError("now must be seconds since the epoch or an aware datetime")  # noqa: TRY004 - as out of range
    return in_utc(now, "now").timestamp()


def _timestamp(headers: object) -> str:
    """Return the timestamp as text, because the signature covers exactly this text."""
    sent = _header(headers, TIMESTAMP_HEADER)
    # int() would also accept signs, underscores, spaces and the digits of every script.
    if len(sent) > _TIMESTAMP_DIGITS or not (sent.isascii() and sent.isdigit()):
        raise _malformed(TIMESTAMP_HEADER, "whole seconds since the epoch")
    return sent


def _header(headers: Any, name: str) -> str:
    # In the dicts of most frameworks, one of these two spellings is found at once.
    value = (headers.get(name) or headers.get(name.title())) if isinstance(headers, dict) else None
    if isinstance(value, str):
        return value
    # Not isinstance of Mapping: the headers of Werkzeug and of the standard library are not mappings.
    if not callable(getattr(headers, "items", None)):
        raise WebhookSignatureError("headers must be a mapping of names to values", reason="malformed_header")
    value = next((each for key, each in headers.items() if _text(key).lower() == name), None)
    if isinstance(value, (list, tuple)) and len(value) < 2:
        value = value[0] if value else None
    if value is None or value in ("", b""):
        raise WebhookSignatureError(f"header {name} is missing", reason="missing_header")
    return _text(value)


def _text(value: object) -> str:
    """Return the name or value of a header as text; empty, which matches nothing, if it is neither text nor bytes."""
    if isinstance(value, str):
        return value
    return value.decode("latin-1") if isinstance(value, bytes) else ""


def _hmac(secret: bytes, signed: bytes) -> str:
    # As fast as hmac.digest, and already hexadecimal.
    return _SCHEME + hmac.new(secret, signed, "sha256").hexdigest()


def _is_signed_by_any(secrets: list[bytes], signed: bytes, signature: str) -> bool:
    sent = signature.encode(errors="replace")
    # A list, so that every secret is compared, and the duration does not reveal which one matched.
    return any([hmac.compare_digest(_hmac(each, signed).encode(), sent) for each in secrets])  # noqa: C419


def _malformed(name: str, expected: str) -> WebhookSignatureError:
    return WebhookSignatureError(f"header {name} is malformed: expected {expected}", reason="malformed_header")


def _outside_tolerance(age: float, tolerance: float) -> WebhookSignatureError:
    beyond = math.ceil(abs(age) - tolerance)
    limit = f"the tolerance is {tolerance:g} s"
    if age > 0:
        text = f"signature expired {beyond} s ago: the request was sent {age:.0f} s ago, {limit}"
        return WebhookSignatureError(text, reason="too_old")
    text = f"signature is from the future by {beyond} s more than allowed; {limit}: check this machine's clock"
    return WebhookSignatureError(text, reason="too_new")
