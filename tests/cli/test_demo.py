"""``followup demo``, as a newcomer runs it."""

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from support.shell import COMMAND, clean_environment, run_here


def demo(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return run_here("followup", "demo", *map(str, arguments), environment=clean_environment())


def test_the_default_file() -> None:
    result = demo()
    assert result.returncode == 0, result.stderr
    assert "Ana María Pérez" in result.stdout
    assert "MISSING" not in result.stdout
    assert result.stdout.count("verified") == 5
    assert "10 webhooks received; all signatures are valid." in result.stdout
    assert "10 reminders sent" in result.stdout
    assert [line for line in result.stdout.splitlines() if line != line.rstrip()] == []


@pytest.mark.parametrize(
    "text",
    [
        "start_at;full_name;phone\r\n2026-12-03T13:30:00Z;Gómez, Ana;+54 9 11 4812-0001\r\n",
        '[{"phone": "+54 9 11 4812-0001", "start_at": "2026-12-03T13:30:00Z", "full_name": "Gómez, Ana"}]',
    ],
    ids=["CSV", "JSON"],
)
def test_standard_input(text: str) -> None:
    command = [*COMMAND, "demo", "-"]
    result = subprocess.run(command, capture_output=True, input=text.encode(), timeout=60, env=clean_environment())
    assert result.returncode == 0, result.stderr
    assert "Gómez, Ana  +5491148120001" in result.stdout.decode()


def test_a_name_of_the_file_is_neither_markup_nor_a_command_to_the_terminal(tmp_path: Path) -> None:
    file = tmp_path / "clinic.json"
    row = {"phone": "+54 9 11 4812-0001", "start_at": "2026-12-03T13:30:00Z", "full_name": "[red]Ana\x1b[2J"}
    file.write_text(json.dumps([row]))
    result = demo(file)
    assert result.returncode == 0, result.stderr
    assert r"[red]Ana\x1b[2J" in result.stdout
    assert "\x1b" not in result.stdout


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("a.csv", "phone\n1\n", "row 1: start_at is missing"),
        ("a.csv", "", "no rows"),
        ("a.json", "{", "is neither CSV nor JSON"),
        ("a.json", "{}", "an array of objects"),
        ("a.csv", "phone,start_at\n12,2026-12-03T13:30:00Z\n", "row 1: "),
        ("a.csv", "phone,start_at\n+54 9 11 4812-0001,tomorrow\n", "row 1: "),
    ],
)
def test_a_bad_file_is_one_clear_line(tmp_path: Path, name: str, content: str, text: str) -> None:
    file = tmp_path / name
    file.write_text(content)
    result = demo(file)
    assert result.returncode != 0
    assert text in result.stderr
    assert "Traceback" not in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_without_the_mock_it_says_what_to_install() -> None:
    program = "import sys; sys.modules['flask'] = None; from followup.cli import main; main()"
    command = [sys.executable, "-c", program, "demo"]
    result = subprocess.run(command, capture_output=True, text=True, env=clean_environment(), check=False)
    assert result.returncode == 1
    assert result.stderr.endswith("run python -m pip install '.[all]' (the extra followup[all])\n")


def test_a_machine_with_ipv6_only_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    class WithoutIPv4(socket.socket):
        def bind(self, address: object) -> None:
            raise OSError(99, "Cannot assign requested address")

    monkeypatch.setattr(socket, "socket", WithoutIPv4)
    result = demo()
    expected = "followup demo: cannot listen on 127.0.0.1: Cannot assign requested address\n"
    assert (result.returncode, result.stderr) == (1, expected)
