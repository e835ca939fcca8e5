"""Outcomes: their tones, their sentences, and their checks in snapshots."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from followup_mockserver import MockService
from followup_mockserver.world.state.snapshots.codecs import SnapshotError

NOON = datetime(2026, 9, 28, 12, tzinfo=UTC)
HOOKS = "https://clinic.example/hooks"
PHONE = "+5491155550000"
SNAPSHOT = Path(__file__).parent / "snapshots" / "version_2.json"


def delivered(receive: Any) -> list[tuple[str, str, str]]:
    """Return kind, tone and sentence of the outcomes of the attempts of a delivery, and of their jobs."""
    service = MockService(start_time=NOON)
    with service.client() as client:
        client.webhook_endpoints.create(url=HOOKS, enabled_events=["*"])
        if receive is not None:
            service.mount(HOOKS, receive, raise_exceptions=False)
        client.patients.create(phone=PHONE)
        service.advance()
    ended = [each for each in service._tenant.history.records if each.kind in ("attempt", "delivery")]
    return [(each.kind, each.outcome.tone, each.outcome.text) for each in ended if each.outcome is not None]


def raising(_: httpx.Request) -> httpx.Response:
    raise ValueError("x")


@pytest.mark.parametrize(
    ("receive", "tone", "sentence"),
    [
        (raising, "failed", "The receiver raised ValueError."),
        (None, "failed", f"Nothing is mounted for {HOOKS}; mounted: nothing."),
        (lambda _: httpx.Response(100), "failed", "HTTP status 100."),
        (lambda _: httpx.Response(301), "failed", "HTTP status 301."),
        (lambda _: httpx.Response(204), "succeeded", "204"),
    ],
)
def test_an_attempt_and_its_job_have_the_same_tone(receive: Any, tone: str, sentence: str) -> None:
    ended = delivered(receive)
    assert {kind for kind, _, _ in ended} == {"attempt", "delivery"}
    for _, found, text in ended:
        assert found == tone
        assert text.startswith(sentence)


@pytest.mark.parametrize(
    ("outcome", "problem"),
    [
        ({"kind": "sold"}, "kind: This must be one of other, changed, "),
        ({"kind": "responded"}, "This field is required."),
        ({"kind": "changed", "names": [1]}, "names[0]: This must be a string."),
        ({"kind": "timed_out", "seconds": True}, "seconds: This must be null or a number."),
        ({"kind": "due", "at": "yesterday"}, "at: This must be an RFC 3339 timestamp"),
        ({"kind": "sent", "colour": "red"}, "colour: There is no such field"),
    ],
)
def test_an_invalid_outcome_in_a_snapshot(outcome: Any, problem: str) -> None:
    saved = json.loads(SNAPSHOT.read_text())
    saved["organizations"][0]["history"]["outcomes"][3] = outcome
    with pytest.raises(SnapshotError, match=r"history\.outcomes\[3\].*" + re.escape(problem)):
        MockService.load(saved)
