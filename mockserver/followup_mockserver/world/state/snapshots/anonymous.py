"""Replaces what is personal in a snapshot, so that it can be attached to a report.

What is kept is chosen, not what is replaced: of records, messages and payloads only ids, times and the words of the API
remain. Equal values get equal replacements, so a patient keeps the same phone in all of them.
"""

import itertools
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from followup_mockserver.world.state.mock_state import COLLECTIONS

_REPLACEMENTS: Mapping[str, Callable[[int], str]] = {
    "fullName": "Person {}".format,
    "phone": lambda number: f"+54911{40_000_000 + number}",
    "email": "person{}@example.com".format,
    "dni": lambda number: f"{10_000_000 + number}",
    "dateOfBirth": lambda number: f"{1930 + number % 80}-01-01",
}
"""By the name of a field: the replacement with a number. That of all other texts is ``Text`` and a number."""

_REPLACED = {*COLLECTIONS, "messages", "intakeRequests", "webhookDeliveries"} - {"webhook_endpoints"}
"""The parts of an organization with data of patients and doctors, besides the attempts."""

_WORDS = {"object", "status", "stage", "source", "missing", "kind", "apiVersion", "eventType", "lastError"}
"""Fields whose values are words of the API or of the mock."""

_KEPT = re.compile(
    r"(?:org|pat|doc|apt|vis|int|trt|evt|we|whd|msg|req)_[0-9A-Za-z]+"
    r"|\d{4}-\d\d-\d\d(?:T[0-9:.]+(?:Z|[+-]\d\d:\d\d))?"
    r"|(?:appointment|conversation|intake|order|patient|treatment|visit|webhook)\.[a-z]+|"
)
"""Ids, dates and times, and the types of events."""


_LONG_NUMBER = 100_000
"""From here on, a number may be a document or a phone. No field of a record has such a number of its own."""


def anonymized(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a snapshot without names, phones, documents, e-mail addresses, texts and bodies.

    Idempotency keys are dropped, because their responses and the hashes of their requests are personal: the mock that
    loads the snapshot takes a repeated request for a new one.

    Args:
        document: what ``save`` returned.
    """
    return {**document, "organizations": [_organization(each) for each in document["organizations"]]}


def _organization(saved: Mapping[str, Any]) -> dict[str, Any]:
    numbers: dict[tuple[str, str], int] = defaultdict(itertools.count(1).__next__)
    parts = {name: _replaced(part, name, numbers) if name in _REPLACED else part for name, part in saved.items()}
    return {**parts, "attempts": [_attempt(each) for each in saved["attempts"]], "idempotency": []}


def _replaced(value: Any, field: str, numbers: Mapping[tuple[str, str], int]) -> Any:
    if isinstance(value, dict):
        return {name: _replaced(each, name, numbers) for name, each in value.items()}
    if isinstance(value, list):
        return [_replaced(each, field, numbers) for each in value]
    if isinstance(value, (int, float)) and abs(value) >= _LONG_NUMBER:
        return numbers[field, str(value)]
    if not isinstance(value, str) or field in _WORDS:
        return value
    if field in _REPLACEMENTS:
        return _REPLACEMENTS[field](numbers[field, value])
    return value if _KEPT.fullmatch(value) else f"Text {numbers['', value]}"


def _attempt(saved: Mapping[str, Any]) -> dict[str, Any]:
    """Return an attempt without what the receiver wrote, and without the signature, which confirms a guessed body."""
    response = saved.get("response") and {**saved["response"], "headers": {}, "body": "", "bodyIsWhole": False}
    return {**saved, "signature": f"sha256={0:064}", "traceback": None, "response": response}
