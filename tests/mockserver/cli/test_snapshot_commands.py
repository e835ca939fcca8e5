"""``serve --from`` and ``followup-mock snapshot``, as processes of their own."""

import json
import os
import stat
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest
from support.serving import serving
from support.shell import run_here

from followup_mockserver import MockServer, MockService

NOON = "2026-09-28T12:00:00Z"
PHONE = "+5491155550000"


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FOLLOWUP_")}
    return run_here("followup-mock", *map(str, arguments), environment=environment)


@pytest.fixture
def clinic() -> MockService:
    service = MockService(start_time=NOON, seed=7, refuse_unknown_fields=False)
    start = service.clock.now + timedelta(days=2)
    service.client().appointments.create(patient={"phone": PHONE}, start_at=start, external_id="A-1")
    return service


@pytest.fixture
def file(clinic: MockService, tmp_path: Path) -> Path:
    path = tmp_path / "clinic.json"
    path.write_text(json.dumps(clinic.save()))
    return path


class TestServe:
    def test_from_a_file(self, clinic: MockService, file: Path, tmp_path: Path) -> None:
        expected = clinic.client().appointments.list().data
        with serving(tmp_path, "--from", file) as served, served.client() as client:
            assert client.appointments.list().data == expected
            result = run("snapshot", "save", tmp_path / "again.json", "--url", served.url)
            assert result.returncode == 0, result.stderr
        again = json.loads((tmp_path / "again.json").read_text())
        assert again["options"] == clinic.save()["options"]
        assert again["organizations"][0]["jobs"] == clinic.save()["organizations"][0]["jobs"]

    def test_options_that_are_passed_replace_those_in_the_file(self, file: Path, tmp_path: Path) -> None:
        options = ("--start-time", "2026-09-29T12:00:00Z", "--refuse-unknown-fields")
        with serving(tmp_path, "--from", file, *options) as served, served.client() as client:
            created = client.patients.create(phone="+5491155550001")
        assert created.created_at.isoformat() == "2026-09-29T12:00:00+00:00"

    @pytest.mark.parametrize(
        ("content", "line"),
        [
            (b"", "The snapshot must be JSON."),
            (
                b'{"format": "followup-mock-snapshot", "version": 99}',
                "version: This must be 3: a newer followup saved this snapshot; upgrade followup to load it.",
            ),
        ],
    )
    def test_a_file_that_is_no_snapshot_is_one_line(self, tmp_path: Path, content: bytes, line: str) -> None:
        path = tmp_path / "broken.json"
        path.write_bytes(content)
        result = run("serve", "--port", 0, "--from", path)
        assert (result.returncode, result.stdout) == (1, "")
        assert result.stderr == f"followup-mock: cannot load {path}: {line}\n"

    @pytest.mark.parametrize(
        ("option", "value", "text"),
        [
            ("--country", "ES", "--country must be omitted with a snapshot"),
            ("--start-time", "2026-09-28T11:00:00Z", "--start-time must be the time of the snapshot, 2026-09-28T12:00"),
        ],
    )
    def test_options_that_do_not_fit(self, file: Path, option: str, value: str, text: str) -> None:
        result = run("serve", "--port", 0, "--from", file, option, value)
        assert result.returncode == 2
        assert text in result.stderr
        assert len(result.stderr.splitlines()) == 1


class TestSnapshot:
    def test_save_and_load_the_whole_mock(self, clinic: MockService, tmp_path: Path) -> None:
        path = tmp_path / "clinic.json"
        path.touch(mode=0o644)
        with MockServer.load(clinic.save()) as server:
            saved = server.save()
            assert run("snapshot", "save", path, "--url", server.url).returncode == 0
            server.reset()
            with server.client() as client:
                client.patients.create(phone="+5491155550001")
            result = run("snapshot", "load", path, "--url", server.url)
            assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
            assert server.save() == saved
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, "although it was there, and others could read it"
            path.write_text(path.read_text().replace(f'"{PHONE}"', "5"))
            rejected = run("snapshot", "load", path, "--url", server.url)
        assert rejected.returncode == 1
        assert rejected.stderr.startswith("followup-mock: organizations[0].patients[0].phone: ")
