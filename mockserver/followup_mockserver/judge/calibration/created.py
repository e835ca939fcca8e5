"""What a run has created, taken from the responses alone, so that no probe can forget to clean up."""

from collections.abc import Mapping, MutableMapping
from typing import Any

import attrs

from followup_mockserver.judge.calibration.service import EnvironmentResponse, word

PREFIX = "followup-calibrate-"
"""Every external id begins with it, so that a team recognizes the objects in its environment."""


KINDS = ("patient", "appointment", "visit", "intake_request", "treatment", "event", "webhook_endpoint")
"""The objects that a run creates."""


CANCELLED = "cancelled"
DELETED = "deleted"
"""The notes of objects that are cleaned up."""


@attrs.define
class Created:
    """An object that the run has created, or found under the phone of an invented patient.

    Attributes:
        kind: the ``object`` of it, such as ``appointment``.
        id: its id.
        external_id: its external id, if it has one.
        note: what became of it, such as ``cancelled``.
    """

    kind: str
    id: str
    external_id: str | None = None
    note: str = ""


def record_response(created: MutableMapping[str, Created], response: EnvironmentResponse) -> None:
    """Add the objects in a response to what was created: the object itself, or the results of events."""
    body = response.body
    if not isinstance(body, dict) or body.get("object") == "list":
        return
    for found in (body, *results_of(response), *(each.get("result") for each in results_of(response))):
        if isinstance(found, dict):
            record(created, found)


def record(created: MutableMapping[str, Created], found: Mapping[str, Any]) -> None:
    """Add an object of the API, or the result of an event, to what was created."""
    kind, object_id, external_id = found.get("object"), found.get("id"), found.get("externalId")
    if kind is None and isinstance(found.get("event"), str):  # the result of an event
        kind, object_id, external_id = "event", found["event"], found.get("id")
    if not isinstance(kind, str) or kind not in KINDS or not isinstance(object_id, str):
        return
    known = created.setdefault(object_id, Created(word(kind), word(object_id)))
    if isinstance(external_id, str) and external_id.startswith(PREFIX):
        known.external_id = external_id
    if found.get("status") == CANCELLED:
        known.note = CANCELLED
    elif found.get("deleted") is True:
        known.note = DELETED


def results_of(response: EnvironmentResponse) -> list[dict[str, Any]]:
    """Return the results in a response to a batch of events; empty if there are none."""
    body = response.body
    results = body.get("results") if isinstance(body, dict) else None
    return [each for each in results if isinstance(each, dict)] if isinstance(results, list) else []
