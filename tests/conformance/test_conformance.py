"""The mock meets the cases of this folder: in process, over a socket, and as the runner in JavaScript plays them."""

import re
import shutil
import subprocess
from collections.abc import Iterator

import httpx
import pytest
from conformance.player import FOLDER, Case, Player, cases
from support.contract import CheckedTransport
from support.receivers import Inbox, listening

from followup_mockserver import MockServer, MockService

NOON = "2026-09-28T12:00:00Z"
RECEIVER = "https://receiver.example"
OPEN_POINTS = FOLDER.parents[1] / "docs" / "open-points.md"


@pytest.fixture(scope="module")
def inbox() -> Inbox:
    return Inbox()


@pytest.fixture(scope="module")
def http(inbox: Inbox) -> Iterator[httpx.Client]:
    service = MockService(start_time=NOON, allow_http_webhooks=True)
    service.mount(RECEIVER, inbox.receive)
    with httpx.Client(transport=CheckedTransport(service.app), base_url=service.url) as client:
        yield client


@pytest.fixture(scope="module")
def server() -> Iterator[MockServer]:
    with MockServer(start_time=NOON, allow_http_webhooks=True) as running:
        yield running


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.id)
def test_in_process(http: httpx.Client, inbox: Inbox, case: Case) -> None:
    Player(http, inbox, RECEIVER).play(case)


def test_over_a_socket(server: MockServer) -> None:
    inbox = Inbox()
    with listening(inbox) as receiver, httpx.Client(base_url=server.url, trust_env=False) as http:
        for case in cases():
            if "choice" not in case.content:  # the runner in JavaScript plays all of them over a socket
                Player(http, inbox, receiver).play(case)


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
@pytest.mark.parametrize(
    "options",
    [[], pytest.param(["--specification-only"], marks=pytest.mark.nightly)],
    ids=["all", "specification only"],
)
def test_in_javascript(server: MockServer, options: list[str]) -> None:
    command = ["node", str(FOLDER / "run.mjs"), server.url, *options]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert result.returncode == 0, re.findall("^FAIL .*\n.*", result.stdout, re.MULTILINE) or result.stderr
    assert " 0 failed" in result.stdout


def test_choices_are_open_points() -> None:
    points = set(re.findall(r"\| `([a-z_]+)` \|$", OPEN_POINTS.read_text(), re.MULTILINE))
    named = re.findall(r'"choice": "([^"]+)"', "".join(path.read_text() for path in FOLDER.glob("*.json")))
    assert {each for names in named for each in names.split(", ")} <= points
