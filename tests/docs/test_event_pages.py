"""The catalogue of events: every type has its page, and the handlers of the pages handle the bodies that they show."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.pages import DOCS, blocks, read, section
from support.webhook_events import SECRET, headers_of

FOLDER = DOCS / "reference/events"

INBOUND = [
    "intake.requested",
    "patient.upserted",
    "appointment.created",
    "appointment.rescheduled",
    "appointment.cancelled",
    "visit.completed",
    "treatment.prescribed",
    "order.issued",
]
OUTBOUND = [*INBOUND, "intake.created", "intake.ready", "conversation.handoff", "patient.silent", "webhook.ping"]
NOT_YET_SENT = ["order.issued", "conversation.handoff", "patient.silent"]


def part(event_type: str, title: str) -> str:
    return section(read(f"reference/events/{event_type.replace('.', '-')}.md"), title)


def test_each_type_has_a_page() -> None:
    expected = {"index.md", *(f"{each.replace('.', '-')}.md" for each in OUTBOUND)}
    assert {each.name for each in FOLDER.glob("*.md")} == expected


def test_the_index_lists_8_inbound_and_13_outbound_types() -> None:
    index = (FOLDER / "index.md").read_text()
    assert re.findall(r"^\| \[`(\S+)`\]\(\S+#inbound\)", index, re.MULTILINE) == INBOUND
    assert re.findall(r"^\| \[`(\S+)`\]\(\S+#outbound\)", index, re.MULTILINE) == OUTBOUND
    assert re.findall(r"^\| \[`(\S+)`\]\(\S+\) \| .+ \| not yet \| `\w+` \|$", index, re.MULTILINE) == NOT_YET_SENT


@pytest.mark.parametrize("event_type", INBOUND)
def test_an_inbound_event_is_shown_as_it_is_sent(event_type: str) -> None:
    text = part(event_type, "Inbound")
    assert f"event = inbound.{event_type.replace('.', '_')}(" in text
    request, response = blocks(text, "http")
    head, _, body = request.partition("\n\n")
    assert head.startswith("POST /v1/events HTTP/1.1\n")
    event = json.loads(body)
    assert event["type"] == event_type
    assert event["id"]
    assert event["data"]
    (result,) = json.loads(response.partition("\n\n")[2])["results"]
    status = "unhandled" if event_type == "order.issued" else "processed"
    assert (result["accepted"], result["status"]) == (True, status)


@pytest.mark.parametrize("event_type", OUTBOUND)
def test_the_handlers_of_a_page_handle_the_body_that_it_shows(
    event_type: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = part(event_type, "Outbound")
    (shown,) = blocks(text, "json")
    event = json.loads(shown)
    assert list(event) == ["id", "object", "type", "apiVersion", "livemode", "occurredAt", "ref", "data"]
    assert (event["type"], event["object"]) == (event_type, "event")
    names: dict[str, Any] = {}
    monkeypatch.setenv("FOLLOWUP_DATABASE_URL", "sqlite:///clinic.db")
    monkeypatch.setenv("FOLLOWUP_WEBHOOK_SECRET", SECRET)
    for code in blocks(text, "python"):
        exec(compile(code, event_type, "exec"), names)
    body = shown.encode()
    headers = headers_of(body)
    names["inbox"].create_tables()
    assert names["inbox"].receive(body, headers) == 204
    assert names["inbox"].drain().done == 1
    printed = capsys.readouterr().out
    assert printed
    assert (names["receive"](body, headers, SECRET), names["receive"](body, headers, SECRET)) == (204, 204)
    assert capsys.readouterr().out == printed
    assert names["seen"] == {event["id"]}
    names["inbox"].close()
