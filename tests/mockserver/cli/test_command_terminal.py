"""What ``followup-mock`` shows on a terminal: names and texts of data are shown, and never obeyed."""

import json
import unicodedata

import httpx
import pytest
from support.shell import Shell

from followup_mockserver import MockServer

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x1b[31mRED\x9b5m\u202egnirts\u2028next"
SHOWN = r"\x1b]0;owned\x07\x1b[2J\x1b[31mRED\x9b5m\u202egnirts\u2028next"


def controls(text: str) -> set[str]:
    """The characters that a terminal may obey, or that change how others are shown; but for line ends."""
    return {each for each in text if unicodedata.category(each) in ("Cc", "Cf", "Zl", "Zp", "Cs")} - {"\n"}


@pytest.fixture
def message(server: MockServer) -> str:
    """A message to a patient whose name is hostile."""
    with server.client() as client:
        client.visits.create(
            patient={"phone": "+5491155550000", "full_name": HOSTILE}, visited_at=server.clock.now.replace(year=2020)
        )
    server.advance()
    (sent,) = server.messages
    assert HOSTILE in sent.text
    return sent.text


def test_a_text_in_a_table_and_in_json(shell: Shell, message: str) -> None:
    shown, written = shell.on_a_terminal(400, "messages"), shell.on_a_terminal(400, "messages", "--json")
    assert SHOWN in shown
    assert controls(shown + written) == set()
    assert json.loads(written)["text"] == message


@pytest.mark.parametrize("width", [60, 80, 110])
def test_a_list_fits(shell: Shell, server: MockServer, width: int) -> None:
    server.mount("https://clinic.example", lambda _: httpx.Response(503))
    with server.client() as client:
        client.webhook_endpoints.create(url="https://clinic.example/hooks", enabled_events=["*"])
        client.appointments.create(
            patient={"phone": "+5491155550000"}, start_at=server.clock.now.replace(year=2099).isoformat()
        )
    server.add_fault(operation="webhook_deliveries.retrieve", kind="delay", seconds=1, probability=0.5)
    server.advance()
    first = {
        "deliveries": "appointment.created",
        "requests": "appointments.create",
        "reminders": "2099-",
        "clock": "2099-",
        "fault": "webhook_deliveries.retrieve",
    }
    for command, text in first.items():
        lines = shell.on_a_terminal(width, command).splitlines()
        assert all(len(line) <= width for line in lines), lines
        assert any(text in line for line in lines), lines  # and so on one line
