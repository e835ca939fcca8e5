"""For any input, only documented errors are raised. ``nox -s nightly`` tries 100,000 inputs."""

import json
from typing import Any

import httpx
from hypothesis import given
from hypothesis import strategies as st

from followup import (
    FollowUp,
    FollowUpError,
    Patient,
    WebhookEvent,
    WebhookSignatureError,
    construct_event,
    verify_signature,
)
from followup.webhooks import sign

SECRET = "whsec_abc"
NOW = 1_700_000_000

PATIENT: dict[str, Any] = {
    "id": "pat_a", "object": "patient", "fullName": None, "phone": "+5491155550000", "email": None, "dni": None,
    "externalId": None, "dateOfBirth": "1990-05-17", "stage": "scheduled", "optedOut": False,
    "createdAt": "2026-09-28T12:00:00.000Z", "updatedAt": "2026-09-28T12:00:00.000Z",
}  # fmt: skip
EVENT: dict[str, Any] = {
    "id": "whd_a", "object": "event", "type": "patient.upserted", "apiVersion": "2026-09-28", "livemode": False,
    "occurredAt": "2026-09-28T12:00:00.000Z", "ref": "pat_a", "data": {},
}  # fmt: skip

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(
        ["2026-09-28T12:00:00Z", "2026-02-30", "", "pat_", "\ud800", "1990-05-17T00:00:00", "0001-01-01T00:00:00+23:59"]
    )
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def spoiled(whole: dict[str, Any]) -> st.SearchStrategy[Any]:
    """The object with some fields replaced, dropped or added; or something else altogether."""
    changes = st.dictionaries(st.sampled_from([*whole, "newField"]), JSON, max_size=3)
    dropped = st.sets(st.sampled_from([*whole]), max_size=2)
    changed = st.builds(
        lambda change, drop: {name: value for name, value in {**whole, **change}.items() if name not in drop},
        changes,
        dropped,
    )
    return changed | JSON


def as_bytes(value: Any) -> bytes:
    return json.dumps(value).encode("utf-8", "surrogatepass")


BODIES = spoiled(PATIENT).map(as_bytes) | st.binary(max_size=200)
ANSWERS = st.builds(
    lambda items, envelope: as_bytes({"object": "list", "data": items, "hasMore": False, "url": "/", **envelope}),
    st.lists(spoiled(PATIENT), max_size=3) | JSON,
    st.dictionaries(st.sampled_from(["data", "hasMore", "url", "object", "new"]), JSON, max_size=2),
)
HEADER_NAMES = st.sampled_from(["x-service-signature", "X-Service-Timestamp", "x-service-timestamp", "x"]) | st.text()
SIGNATURES = st.text(max_size=80) | st.from_regex(r"sha256=[0-9a-fA-F]{63,65}", fullmatch=True)
TIMES = st.integers(-(10**20), 10**20).map(str) | st.sampled_from([str(NOW), f" {NOW}", "1e9", "٣", "+1", "1_0"])


@given(
    payload=st.binary(max_size=200) | st.text(max_size=50),
    headers=st.dictionaries(HEADER_NAMES, SIGNATURES | TIMES | st.binary(max_size=80) | st.none(), max_size=4),
    secret=st.text(min_size=1, max_size=20) | st.lists(st.text(max_size=20), max_size=3),
    signed=st.booleans(),
)
def test_verify_signature(payload: Any, headers: dict[Any, Any], secret: Any, signed: bool) -> None:
    if signed and isinstance(payload, bytes) and isinstance(secret, str) and secret.isascii():
        headers = {**headers, "x-service-timestamp": str(NOW), "x-service-signature": sign(payload, secret, NOW)}
    try:
        verify_signature(payload, headers, secret, now=NOW)
    except WebhookSignatureError as error:
        assert error.reason
    except (TypeError, ValueError) as error:
        assert "secret" in str(error)


@given(body=spoiled(EVENT).map(as_bytes) | st.binary(max_size=200), tampered=st.booleans())
def test_construct_event(body: bytes, tampered: bool) -> None:
    headers = {"X-Service-Timestamp": str(NOW), "X-Service-Signature": sign(body, SECRET, NOW)}
    try:
        event = construct_event(body + b" " if tampered else body, headers, SECRET, now=NOW)
    except WebhookSignatureError as error:
        assert (error.reason == "wrong_signature") is tampered
        return
    assert not tampered
    assert isinstance(event, WebhookEvent)
    assert event.occurred_at.utcoffset() is not None


@given(
    status=st.sampled_from([200, 200, 200, 201, 204, 302, 400, 401, 404, 409, 429, 500, 599]),
    body=BODIES | ANSWERS,
    headers=st.dictionaries(
        st.sampled_from(["Content-Type", "Retry-After", "Request-Id", "Idempotent-Replayed"]),
        st.sampled_from(["application/json", "text/html; charset=nonsense", "0", "-1", "1e999", "é", ""]),
        max_size=3,
    ),
)
def test_answers(status: int, body: bytes, headers: dict[str, str]) -> None:
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    transport = httpx.MockTransport(lambda _: httpx.Response(status, headers=raw, content=body))
    with FollowUp(
        api_key="k", base_url="https://api.example", http_client=httpx.Client(transport=transport), max_retries=0
    ) as client:
        for call in (
            lambda: client.patients.retrieve("pat_a"),
            lambda: client.patients.create(phone="1"),
            lambda: client.patients.list(),
            lambda: client.events.create({"id": "e", "type": "order.issued", "data": {}}),
        ):
            try:
                result = call()
            except FollowUpError as error:
                assert repr(error)
                continue
            assert status // 100 == 2
            if isinstance(result, Patient):
                sent = json.loads(body)
                assert (result.id, result.stage, result.opted_out) == (sent["id"], sent["stage"], sent["optedOut"])
                assert set(result.extra) == set(sent) - set(PATIENT)
