"""The mock meets the cases of this folder: in process, over a socket, and as the runner in JavaScript plays them."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from conformance.player import FOLDER, Case, Player, cases
from support.contract import CheckedTransport
from support.receivers import Inbox

from followup_mockserver import MockServer, MockService

NOON = "2026-09-28T12:00:00Z"
RECEIVER = "https://receiver.example"
OPEN_POINTS = FOLDER.parents[1] / "docs" / "open-points.md"
OTHER_CHOICES: Any = {
    "country": "UY",
    "idempotency_hours": 1,
    "intake_required": ["address"],
    "language": "pt",
    "mobiles": "assume",
    "post_visit_hours": 1,
    "ref": "trigger",
    "refuse_unknown_fields": False,
    "reminder_hours": [48],
    "time_zone": "Asia/Tokyo",
}
"""Every option of the mock that follows an open point, with another value than the default."""

DEVIATIONS = {
    "a retry waits for 3 h": ("webhooks", '"next": "2026-09-28T14:36:00.000Z"', '"next": "2026-09-28T15:36:00.000Z"'),
    "closed appointments change": ("appointments", '{"status": [400, 403, 409, 422]}', '{"status": 200}'),
    "completed ones stay": ("appointments", '{"status": "cancelled"}}', '{"status": "completed"}}'),
    "intake.created is not sent": ("intake_requests", '{"webhooks": [{"type": "intake.created"}]}', '{"webhooks": []}'),
    "a filter is ignored": ("intake_requests", '"status=discarded", ', '"limit=9", '),
    "no message after a visit": ("visits", '{"kind": "post_visit", "patient"', '{"kind": "reminder", "patient"'),
    "500 has another type": ("requests", '"api_error"', '"server_error"'),
    "a member is missing": ("patients", '"optedOut": false', '"optedOut": false, "more": "$present"'),
    "a member is null": ("webhooks", '"ref": "$any", "data": "$any"}', '"ref": "$any", "data": null}'),
    "a signature is wrong": ("webhooks", "PING", '"wrong_signature"'),
    "a timestamp is old": ("webhooks", "PING", '"old_signature"'),
}
"""What another mock does: the file, and an expectation as it stands there and as that mock would meet it."""


def planted(folder: Path) -> None:
    """Write the cases that a deviation concerns, with the expectation that the deviation contradicts."""
    for number, (file, stated, instead) in enumerate(DEVIATIONS.values()):
        content = json.loads(text := (FOLDER / f"{file}.json").read_text(encoding="utf-8"))
        changed = json.loads(text.replace(stated, instead))["cases"]
        content["cases"] = [one for one, other in zip(changed, content["cases"], strict=True) if one != other]
        if stated == "PING":
            content["cases"] = [{"name": instead, "steps": json.loads(SIGNED.replace(stated, instead))}]
        (folder / f"{number}.json").write_text(json.dumps(content), encoding="utf-8")


SIGNED = """[
    {"request": "POST /v1/webhook_endpoints", "body": {"url": "${receiver}", "enabledEvents": ["*"]}, "save": "made"},
    {"request": "POST /_mock/deliveries/disturb", "body": {"kind": PING}},
    {"request": "POST /v1/webhook_endpoints/${made.id}/ping"},
    {"webhooks": [{}]}
]"""


@pytest.fixture(scope="module")
def inbox() -> Inbox:
    return Inbox()


def client_of(inbox: Inbox, **options: Any) -> httpx.Client:
    service = MockService(start_time=NOON, allow_http_webhooks=True, **options)
    service.mount(RECEIVER, inbox.receive)
    return httpx.Client(transport=CheckedTransport(service._wsgi_app), base_url=service.url)


@pytest.fixture(scope="module")
def http(inbox: Inbox) -> Iterator[httpx.Client]:
    with client_of(inbox) as client:
        yield client


@pytest.fixture(scope="module")
def server() -> Iterator[MockServer]:
    with MockServer(start_time=NOON, allow_http_webhooks=True) as running:
        yield running


@pytest.fixture(scope="module")
def other_server() -> Iterator[MockServer]:
    with MockServer(start_time=NOON, allow_http_webhooks=True, **OTHER_CHOICES) as running:
        yield running


def run_javascript(folder: Path, server: MockServer, *options: str) -> subprocess.CompletedProcess[str]:
    command = ["node", str(folder / "run.mjs"), server.url, *options]
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=False, timeout=300)


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.id)
def test_in_process(http: httpx.Client, inbox: Inbox, case: Case) -> None:
    Player(http, inbox, RECEIVER).play(case)


def test_a_mock_with_other_choices_meets_the_specification(inbox: Inbox) -> None:
    with client_of(inbox, **OTHER_CHOICES) as http:
        for case in cases(specification_only=True):
            Player(http, inbox, RECEIVER, specification_only=True).play(case)


def test_other_choices_are_all_that_options_can_make() -> None:
    options = re.findall(r"^\| `--[^|]*\| `(\w+)=", OPEN_POINTS.read_text(encoding="utf-8"), re.MULTILINE)
    assert {*options} == {*OTHER_CHOICES, "rate_limit", "settings"}  # the specification states the rate limit


ALL_KINDS_OF_STEPS = ("idempotency", "requests", "webhook_endpoints", "webhooks")
"""Files that together have every kind of step and of expectation that the runner in JavaScript has to know."""

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")


@needs_node
@pytest.mark.parametrize(
    ("fixture", "options"),
    [
        ("server", [f"{each}.json" for each in ALL_KINDS_OF_STEPS]),
        pytest.param("server", [], marks=pytest.mark.nightly),
        pytest.param("other_server", ["--specification-only"], marks=pytest.mark.nightly),
    ],
    ids=["some", "all", "specification only"],
)
def test_in_javascript(request: pytest.FixtureRequest, fixture: str, options: list[str]) -> None:
    result = run_javascript(FOLDER, request.getfixturevalue(fixture), *options)
    assert result.returncode == 0, re.findall("^FAIL .*\n.*", result.stdout, re.MULTILINE) or result.stderr
    assert " 0 failed" in result.stdout


def test_each_deviation_fails(http: httpx.Client, inbox: Inbox, tmp_path: Path) -> None:
    planted(tmp_path)
    played = cases(tmp_path, specification_only=True)
    assert {case.file for case in played} == {str(number) for number in range(len(DEVIATIONS))}
    for case in played:
        with pytest.raises(AssertionError):
            Player(http, inbox, RECEIVER, specification_only=True).play(case)


@needs_node
def test_each_deviation_fails_in_javascript(server: MockServer, tmp_path: Path) -> None:
    planted(tmp_path)
    shutil.copy(FOLDER / "run.mjs", tmp_path)
    result = run_javascript(tmp_path, server, "--specification-only")
    failed = re.findall(r"^FAIL (\d+)\.json", result.stdout, re.MULTILINE)
    assert {*failed} == {str(number) for number in range(len(DEVIATIONS))}, result.stderr
    assert "\nok" not in result.stdout


def test_choices_are_open_points() -> None:
    points = set(re.findall(r"\| `([a-z_]+)` \|$", OPEN_POINTS.read_text(encoding="utf-8"), re.MULTILINE))
    files = "".join(path.read_text(encoding="utf-8") for path in FOLDER.glob("*.json"))
    named = re.findall(r'"choice": "([^"]+)"', files)
    assert {each for names in named for each in names.split(", ")} <= points
