"""Verifying and parsing webhooks (specification, section 6.2)."""

import hashlib
import hmac
import json
import pickle
import time
from datetime import UTC, datetime, timedelta
from email.message import Message
from typing import Any

import httpx
import pytest
import werkzeug.datastructures
from hypothesis import given
from hypothesis import strategies as st
from support.responses import TIME

from followup import WebhookEvent, WebhookSignatureError, construct_event, verify_signature

SECRET = "whsec_correct"
SENT = 1_790_000_000
BODY = json.dumps(
    {
        "id": "whd_1",
        "object": "event",
        "type": "visit.completed",
        "apiVersion": "2026-09-28",
        "livemode": False,
        "occurredAt": TIME,
        "ref": "vis_1",
        "data": {"patient": {"fullName": "Ana Pérez"}},
        "later": 1,
    },
    ensure_ascii=False,
).encode()


def signature(body: bytes = BODY, secret: str = SECRET, sent: int = SENT) -> str:
    """Sign as the specification says, without the code under test."""
    return "sha256=" + hmac.new(secret.encode(), str(sent).encode() + b"." + body, hashlib.sha256).hexdigest()


def headers(**changes: Any) -> dict[str, Any]:
    return {"x-service-signature": signature(), "x-service-timestamp": str(SENT), **changes}


def rejected(
    *, reason: str, payload: Any = BODY, given_headers: Any = None, secret: Any = SECRET, now: Any = SENT
) -> str:
    with pytest.raises(WebhookSignatureError) as caught:
        verify_signature(payload, headers() if given_headers is None else given_headers, secret, now=now)
    text = str(caught.value)
    assert caught.value.reason == reason
    for telling in (SECRET, signature(), "Ana"):
        assert telling not in text
    assert str(pickle.loads(pickle.dumps(caught.value))) == text
    return text


def message(values: dict[str, str]) -> Message:
    """Headers in the class of the standard library's servers."""
    result = Message()
    for name, value in values.items():
        result[name.title()] = value
    return result


@pytest.mark.parametrize(
    "given_headers",
    [
        headers(),
        {name.upper(): value for name, value in headers().items()},
        {name.title(): value for name, value in headers().items()},
        {name.encode(): value.encode() for name, value in headers().items()},
        {name: [value] for name, value in headers().items()},
        httpx.Headers(headers()),
        werkzeug.datastructures.Headers(headers()),
        message(headers()),
    ],
)
def test_a_signed_request_is_accepted_whatever_the_case_of_its_headers(given_headers: Any) -> None:
    verify_signature(BODY, given_headers, SECRET, now=SENT)


def test_now_defaults_to_the_system_clock() -> None:
    sent = int(time.time())
    verify_signature(
        BODY, headers(**{"x-service-signature": signature(sent=sent), "x-service-timestamp": str(sent)}), SECRET
    )


@pytest.mark.parametrize("now", [SENT, SENT + 0.5, SENT - 300, SENT + 300, datetime.fromtimestamp(SENT, UTC)])
def test_within_the_tolerance(now: Any) -> None:
    verify_signature(BODY, headers(), SECRET, now=now)


def test_an_expired_and_a_future_signature_say_by_how_much() -> None:
    assert "expired 12 s ago: the request was sent 312 s ago" in rejected(reason="too_old", now=SENT + 312)
    assert "from the future by 12 s more than allowed; the tolerance is 300 s" in rejected(
        reason="too_new", now=SENT - 312
    )
    assert "expired 1 s ago" in rejected(reason="too_old", now=SENT + 300.25)


def test_no_tolerance_checks_no_time_and_one_may_be_of_any_length() -> None:
    for unlimited in (None, 10**400):
        verify_signature(BODY, headers(), SECRET, tolerance=unlimited, now=0)


def test_several_secrets_while_one_replaces_another() -> None:
    verify_signature(BODY, headers(), ["whsec_new", SECRET], now=SENT)
    verify_signature(BODY, headers(), (each for each in (SECRET, "whsec_new")), now=SENT)
    rejected(reason="wrong_signature", secret=["whsec_new", "whsec_newer"])


def test_any_changed_byte_is_rejected() -> None:
    rejected(reason="wrong_signature", payload=BODY + b" ")
    rejected(reason="wrong_signature", payload=json.dumps(json.loads(BODY)).encode())
    rejected(reason="wrong_signature", secret="whsec_wrong")
    rejected(reason="wrong_signature", given_headers=headers(**{"x-service-timestamp": str(SENT + 1)}))


@pytest.mark.parametrize("name", ["x-service-signature", "x-service-timestamp"])
@pytest.mark.parametrize("value", [None, "", b"", [], [""]])
def test_a_missing_header_is_named(name: str, value: Any) -> None:
    assert name in rejected(reason="missing_header", given_headers=headers(**{name: value}))


def test_the_keys_of_a_wsgi_environ_are_no_header_names() -> None:
    environ = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers().items()}
    rejected(reason="missing_header", given_headers=environ)


@pytest.mark.parametrize(
    "value",
    ["sha256=", "sha1=abc", "x", "sha256=" + "g" * 64, "sha256=" + "A" * 64, "sha256=ñ", signature() + "0", 5, b"\xff",
     signature() + "\n", " " + signature(), signature()[:-1] + "ñ", "sha256=" + "A" + signature()[8:], ["a", "b"], {},
     float("nan")],
)  # fmt: skip
def test_a_malformed_signature_is_rejected(value: Any) -> None:
    rejected(reason="malformed_header", given_headers=headers(**{"x-service-signature": value}))


@pytest.mark.parametrize(
    "value", ["now", "1_0", "１２", " 1", "1 ", "+1", "-1", "1.0", "1e3", "9" * 5000, "٣", 5, b"\xff"]
)
def test_a_malformed_timestamp_is_rejected(value: Any) -> None:
    rejected(reason="malformed_header", given_headers=headers(**{"x-service-timestamp": value}))


@pytest.mark.parametrize("payload", [{}, [], None, 5, json.loads(BODY), object()])
def test_a_payload_that_is_no_raw_body_is_rejected(payload: Any) -> None:
    assert "raw body" in rejected(reason="malformed_payload", payload=payload)


@pytest.mark.parametrize("given_headers", ["x", 5, [("a", "b")]])
def test_headers_that_are_no_mapping_are_rejected(given_headers: Any) -> None:
    rejected(reason="malformed_header", given_headers=given_headers)


@pytest.mark.parametrize("secret", ["", [], [""], None, 5, [5], b"whsec", {}, ["ñ"], {"a": "b"}])
def test_a_secret_that_cannot_be_one_is_a_programming_error(secret: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="secret"):
        verify_signature(BODY, headers(), secret, now=SENT)


class SecretStr:
    """A type of pydantic and others that hides a text."""

    def __init__(self, text: str) -> None:
        self.get_secret_value = lambda: text


@pytest.mark.parametrize(
    ("secret", "problem"),
    [
        (f"{SECRET}\n", "secret begins or ends with white space or a line break"),
        ([SECRET, f" {SECRET}"], "secret begins or ends with white space or a line break"),
        ("whsec_...", "secret is a placeholder: pass the one that the creation of your endpoint returned"),
        ([SECRET, "whsec_…"], "secret is a placeholder"),
        (f'"{SECRET}"', "secret begins or ends with a quotation mark"),
        (SecretStr(SECRET), r"not SecretStr: pass its get_secret_value\(\)"),
        ([SecretStr(SECRET)], r"not SecretStr: pass its get_secret_value\(\)"),
    ],
)
def test_a_secret_with_something_around_it_is_rejected_with_the_reason(secret: Any, problem: str) -> None:
    with pytest.raises((TypeError, ValueError), match=problem) as caught:
        verify_signature(BODY, headers(), secret, now=SENT)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [{"tolerance": -1}, {"tolerance": float("nan")}, {"now": float("inf")}, {"now": "x"},
     {"now": datetime(2026, 1, 1)}, {"now": SENT * 1000}, {"now": 10**400},  # noqa: DTZ001
     {"now": float("nan")}, {"tolerance": float("inf")}, {"tolerance": timedelta(minutes=5)}],
)  # fmt: skip
def test_times_that_cannot_be_used_are_programming_errors(options: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError), match=r"(tolerance|now) (must be|is a naive)"):
        verify_signature(BODY, headers(), SECRET, **options)


@pytest.mark.parametrize("payload", [BODY, BODY.decode(), bytearray(BODY), memoryview(BODY)])
def test_construct_event_says_what_it_says(payload: Any) -> None:
    event = construct_event(payload, headers(), SECRET, now=SENT)
    assert event == WebhookEvent(
        id="whd_1",
        type="visit.completed",
        api_version="2026-09-28",
        livemode=False,
        occurred_at=datetime(2026, 9, 28, 12, tzinfo=UTC),
        ref="vis_1",
        data={"patient": {"fullName": "Ana Pérez"}},
        extra={"later": 1},
    )
    assert "Ana" not in repr(event)


def test_construct_event_verifies_first() -> None:
    with pytest.raises(WebhookSignatureError) as caught:
        construct_event(b"no json", headers(), SECRET, now=SENT)
    assert caught.value.reason == "wrong_signature"


@pytest.mark.parametrize("body", [b"", b"no json", b"[]", b"{}", b"\xff", b"[" * 100_000, b'{"id": 5}'])
def test_a_signed_body_that_is_no_event_is_rejected(body: bytes) -> None:
    signed = headers(**{"x-service-signature": signature(body)})
    with pytest.raises(WebhookSignatureError) as caught:
        construct_event(body, signed, SECRET, now=SENT)
    assert caught.value.reason == "malformed_payload"
    assert caught.value.__context__ is None


ANYTHING = st.one_of(st.none(), st.integers(), st.floats(), st.text(), st.binary(), st.lists(st.text()))


@given(
    payload=ANYTHING, sign=ANYTHING, sent=ANYTHING, name=st.sampled_from(["x-service-signature", "X-SERVICE-SIGNATURE"])
)
def test_whatever_arrives_only_the_documented_error_is_raised(payload: Any, sign: Any, sent: Any, name: str) -> None:
    with pytest.raises(WebhookSignatureError):
        construct_event(payload, {name: sign, "x-service-timestamp": sent}, SECRET, now=SENT)
