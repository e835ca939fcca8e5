"""Commands of ``followup-mock`` that read standard input or write to standard output instead of a file."""

import subprocess
from pathlib import Path

import pytest
from support.serving import serving
from support.shell import COMMAND_OF_MOCK, Shell, clean_environment

from followup import Account
from followup_mockserver import MockServer


def account(folder: Path, *options: str, stdin: str) -> Account:
    """Start a mock with standard input, and return its account."""
    with serving(folder, *options, stdin=stdin) as served, served.client() as client:
        return client.account.retrieve()


def test_serve_reads_settings(tmp_path: Path) -> None:
    settings = '[settings]\ntime_zone = "Europe/Madrid"\n'
    (tmp_path / "clinic.toml").write_text(settings)
    assert account(tmp_path, "--settings", str(tmp_path / "clinic.toml"), stdin="").time_zone == "Europe/Madrid"
    assert account(tmp_path, "--settings", "-", stdin=settings).time_zone == "Europe/Madrid"
    options = ("--settings", "-", "--time-zone", "Europe/Lisbon")
    assert account(tmp_path, *options, stdin=settings).time_zone == "Europe/Lisbon"


def test_a_snapshot_goes_from_one_mock_to_another(tmp_path: Path) -> None:
    with MockServer() as server:
        server.update_organization(name="Clínica del Sol\x1b")
        command = [*COMMAND_OF_MOCK, "snapshot", "save", "-", "--url", server.url]
        saved = subprocess.run(command, capture_output=True, check=True, timeout=60, env=clean_environment()).stdout
    assert b"\x1b" not in saved
    assert account(tmp_path, "--from", "-", stdin=saved.decode()).name == "Clínica del Sol\x1b"


@pytest.mark.parametrize(
    ("option", "text", "problem"),
    [
        ("--settings", "[settings]\ncountry = 5", "--settings standard input: settings.country must be the ISO 3166"),
        ("--settings", "", "--settings: standard input is empty"),
        ("--from", "{", "cannot load standard input: The snapshot must be JSON."),
        ("--from", "", "--from: standard input is empty"),
    ],
)
def test_what_is_invalid_is_one_line(option: str, text: str, problem: str, tmp_path: Path) -> None:
    shell = Shell("http://127.0.0.1:9", "", tmp_path, COMMAND_OF_MOCK)
    assert shell.error("serve", "--port", "0", option, "-", stdin=text).startswith(f"followup-mock: {problem}")
