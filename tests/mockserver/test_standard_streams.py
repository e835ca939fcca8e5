"""Commands of ``followup-mock`` that read standard input or write to standard output instead of a file."""

import json
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from support.shell import Shell, clean_environment

from followup_mockserver import MockServer

MOCK = [sys.executable, "-m", "followup_mockserver"]


def served(*options: str, stdin: bytes) -> dict[str, object]:
    """Start a mock with standard input, and return its account."""
    command = [*MOCK, "serve", "--port", "0", *options]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean_environment()
    ) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(stdin)
        process.stdin.close()
        url = process.stdout.readline().decode().split()[-1]
        headers = {"Authorization": "Bearer fu_test_mock"}
        found: dict[str, object] = httpx.get(f"{url}/v1/account", headers=headers, trust_env=False).json()
        process.terminate()
        assert process.wait(60) == 0
    return found


def test_serve_reads_settings() -> None:
    settings = b'[settings]\ntime_zone = "Europe/Madrid"\n'
    assert served("--settings", "-", stdin=settings)["timeZone"] == "Europe/Madrid"
    options = ("--settings", "-", "--time-zone", "Europe/Lisbon")
    assert served(*options, stdin=settings)["timeZone"] == "Europe/Lisbon"


def test_a_snapshot_goes_from_one_mock_to_another() -> None:
    with MockServer() as server:
        server.update_organization(name="Clínica del Sol\x1b")
        command = [*MOCK, "snapshot", "save", "-", "--url", server.url]
        saved = subprocess.run(command, capture_output=True, check=True, timeout=60, env=clean_environment()).stdout
    assert b"\x1b" not in saved
    assert served("--from", "-", stdin=saved)["name"] == "Clínica del Sol\x1b"


@pytest.mark.parametrize(
    ("option", "text", "problem"),
    [
        ("--settings", "[settings", "--settings standard input: this must be TOML: "),
        (
            "--settings",
            '[settings]\ncountry = "ZZ"',
            "--settings standard input: settings.country must be the ISO 3166",
        ),
        ("--settings", "", "--settings: standard input is empty"),
        ("--from", "{", "cannot load standard input: The snapshot must be JSON."),
        ("--from", "", "--from: standard input is empty"),
    ],
)
def test_what_is_invalid_is_one_line(option: str, text: str, problem: str, tmp_path: Path) -> None:
    shell = Shell("http://127.0.0.1:9", "", tmp_path, MOCK)
    assert shell.error("serve", "--port", "0", option, "-", stdin=text).startswith(f"followup-mock: {problem}")


def test_a_collection_goes_to_standard_output(tmp_path: Path) -> None:
    written = Shell("http://127.0.0.1:9", "", tmp_path, MOCK).run("collection", "--output", "-").stdout
    assert "item" in json.loads(written)
    assert [*tmp_path.iterdir()] == []
