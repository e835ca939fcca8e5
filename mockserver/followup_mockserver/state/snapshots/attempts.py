"""The attempts in a snapshot, with the responses of the receivers."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any

import attrs

from followup_mockserver.state.records import Attempt, Attempts, ReceiverResponse
from followup_mockserver.state.snapshots.codecs import RecordCodec, items, members, scalar
from followup_mockserver.state.snapshots.errors import SnapshotError
from followup_mockserver.state.tenant import Tenant

_ATTEMPT: RecordCodec[Attempt] = RecordCodec(Attempt, omit=("response",))
_FIELDS = ("statusLine", "headers", "body", "bodyIsWhole")


def save_attempts(attempts: Attempts) -> Any:
    """Return the attempts of all deliveries as one JSON array."""
    return [{**_ATTEMPT.encode(attempt), "response": _save_response(attempt.response)} for attempt in attempts]


def load_attempts(_: Tenant, data: Any, path: str) -> Attempts:
    """Return the attempts."""
    attempts = Attempts()
    for item, place in items(data, path):
        # Optional, because the format had no responses at first.
        fields, response = _without_response(item)
        attempt = _ATTEMPT.decode(fields, place)
        attempts.add(attrs.evolve(attempt, response=_load_response(response, f"{place}.response")))
    return attempts


def _without_response(item: Any) -> tuple[Any, Any]:
    if not isinstance(item, dict):
        return item, None
    return {name: value for name, value in item.items() if name != "response"}, item.get("response")


def _save_response(response: ReceiverResponse | None) -> Any:
    if response is None:
        return None
    return {
        "statusLine": response.status_line,
        "headers": dict(response.headers),
        "body": base64.b64encode(response.body).decode(),  # a body may be binary
        "bodyIsWhole": response.body_is_whole,
    }


def _load_response(data: Any, path: str) -> ReceiverResponse | None:
    if data is None:
        return None
    found = members(data, path, _FIELDS)
    return ReceiverResponse(
        status_line=scalar(str, found["statusLine"], f"{path}.statusLine"),
        headers=_headers(found["headers"], f"{path}.headers"),
        body=_bytes(found["body"], f"{path}.body"),
        body_is_whole=scalar(bool, found["bodyIsWhole"], f"{path}.bodyIsWhole"),
    )


def _headers(data: Any, path: str) -> Mapping[str, str]:
    if not isinstance(data, dict) or not all(isinstance(value, str) for value in data.values()):
        raise SnapshotError(path, "This must be an object whose values are strings.")
    return data


def _bytes(data: Any, path: str) -> bytes:
    try:
        return base64.b64decode(scalar(str, data, path), validate=True)
    except (binascii.Error, ValueError):
        raise SnapshotError(path, "This must be a string in base64.") from None
