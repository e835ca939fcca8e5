"""The catalogue of events: every type has its page, and the handlers of the pages handle the bodies that they show."""

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from followup.webhooks import sign

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs/reference/events"

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

REFERENCES = {
    "intake": "int_",
    "patient": "pat_",
    "appointment": "apt_",
    "visit": "vis_",
    "treatment": "trt_",
    "order": "evt_",
    "conversation": "pat_",
    "webhook": "we_",
}
"""The prefix of ``ref``, by the first part of the type."""


def page(event_type: str) -> str:
    return (FOLDER / f"{event_type.replace('.', '-')}.md").read_text()


def section(event_type: str, title: str) -> str:
    _, _, after = page(event_type).partition(f"\n## {title}\n")
    return after.partition("\n## ")[0]


def blocks(text: str, kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


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
    text = section(event_type, "Inbound")
    assert f"event = inbound.{event_type.replace('.', '_')}(" in text
    request, response = blocks(text, "http")
    head, _, body = request.partition("\n\n")
    assert head.startswith("POST /v1/events HTTP/1.1\n")
    assert (json.loads(body)["type"], "id" in json.loads(body), bool(json.loads(body)["data"])) == (
        event_type,
        True,
        True,
    )
    (result,) = json.loads(response.partition("\n\n")[2])["results"]
    assert (result["accepted"], result["status"]) == (
        True,
        "unhandled" if event_type == "order.issued" else "processed",
    )


@pytest.mark.parametrize("event_type", [each for each in OUTBOUND if each not in INBOUND])
def test_a_type_that_only_the_service_sends_has_no_inbound_section(event_type: str) -> None:
    assert section(event_type, "Inbound") == ""


@pytest.mark.parametrize("event_type", OUTBOUND)
def test_the_handlers_of_a_page_handle_the_body_that_it_shows(
    event_type: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = section(event_type, "Outbound")
    (shown,) = blocks(text, "json")
    event = json.loads(shown)
    assert list(event) == ["id", "object", "type", "apiVersion", "livemode", "occurredAt", "ref", "data"]
    assert (event["type"], event["object"]) == (event_type, "event")
    assert event["ref"].startswith(REFERENCES[event_type.partition(".")[0]])
    names: dict[str, Any] = {}
    for code in blocks(text, "python"):
        exec(compile(code, event_type, "exec"), names)
    body, now = shown.encode(), int(time.time())
    headers = {"x-service-signature": sign(body, "whsec_...", now), "x-service-timestamp": str(now)}
    names["inbox"].create_tables()
    assert names["inbox"].receive(body, headers) == 204
    assert names["inbox"].drain().done == 1
    printed = capsys.readouterr().out
    assert printed
    assert (names["receive"](body, headers, "whsec_..."), names["receive"](body, headers, "whsec_...")) == (204, 204)
    assert capsys.readouterr().out == printed
    assert names["seen"] == {event["id"]}
    names["inbox"].close()


@pytest.mark.parametrize("event_type", OUTBOUND)
def test_a_page_says_whether_the_service_sends_the_type_yet(event_type: str) -> None:
    is_marked = "The service does not send this type yet" in section(event_type, "Outbound")
    assert is_marked is (event_type in NOT_YET_SENT)
