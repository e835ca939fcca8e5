"""The examples work as their descriptions say."""

import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from followup import inbound
from followup.outbox import Outbox
from followup_mockserver import MockServer

pytest_plugins = ["pytester"]

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(command: list[str | Path], server: MockServer) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "FOLLOWUP_BASE_URL": server.url, "FOLLOWUP_API_KEY": server.api_key}
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=60, env=environment, cwd=EXAMPLES
    )


def test_the_clinics_own_tests_pass(pytester: pytest.Pytester) -> None:
    for name in EXAMPLES.glob("*.py"):
        shutil.copy(name, pytester.path)
    shutil.copytree(EXAMPLES / "import", pytester.path / "import")
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=27)


def test_the_asynchronous_import(followup_server: MockServer, tmp_path: Path) -> None:
    visits = tmp_path / "visits.jsonl"
    line = '{{"patient": {{"phone": "+5491155550000"}}, "visited_at": "2026-09-01T10:00:00Z", "external_id": "V-{}"}}\n'
    visits.write_text("".join(line.format(number) for number in range(150)), encoding="utf-8")
    for outcome in ("processed", "duplicate"):
        result = run([sys.executable, EXAMPLES / "async_import.py", visits], followup_server)
        assert result.returncode == 0, result.stderr
        assert result.stdout.splitlines() == [f"V-{number} {outcome}" for number in range(150)]
    assert len([each for each in followup_server.requests if each.operation == "events.create"]) == 4

    async def count() -> int:
        async with followup_server.async_client() as client:
            return len([visit async for visit in client.visits.list(limit=100)])

    assert asyncio.run(count()) == 150


def test_the_integration_of_a_clinic_sends_its_outbox(
    followup_server: MockServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "clinic.db"
    monkeypatch.setenv("CLINIC_DATABASE", str(path))
    command = [sys.executable, EXAMPLES / "clinic_integration.py"]
    result = run(command, followup_server)  # creates the tables
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    outbox = Outbox(f"sqlite:///{path}")
    with closing(sqlite3.connect(path)) as database, database:
        outbox.record(database, inbound.patient_upserted(patient={"phone": "+54 9 11 5555-0000", "external_id": "P-1"}))
    result = run(command, followup_server)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert outbox.status().sent == 1
    with followup_server.client() as client:
        assert len([*client.patients.list(external_id="P-1")]) == 1
