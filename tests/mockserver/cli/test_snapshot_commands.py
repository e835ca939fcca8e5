"""``serve --from`` and ``followup-mock snapshot``, as processes of their own."""

import base64
import json
import os
import stat
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.serving import serving
from support.shell import run_here

from followup import inbound
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


def test_an_anonymous_snapshot_has_nothing_personal_and_keeps_what_belongs_together(tmp_path: Path) -> None:
    marks = "Ana Núñez|54911555500|ana@clinic|30123456|HC-77|1980-02-03|gripe|vuelve|Consulta|T-99|Tía Eva"
    marks += "|Iron pills|1 tabl|c/12 h|ayunas|Acme S.A.|refe-1|Hemograma|20301234563|MARKTRACE|MARKRESPONSE"
    with MockServer(start_time=NOON) as server, server.client() as client:
        server.mount("https://clinic.example/hooks", lambda _: httpx.Response(200, content=b"MARKRESPONSE Ana"))
        server.mount("https://broken.example/hooks", fail, raise_exceptions=False)
        for host in ("clinic", "broken"):
            client.webhook_endpoints.create(url=f"https://{host}.example/hooks", enabled_events=["*"])
        ana = client.patients.create(
            phone=PHONE,
            full_name="Ana Núñez",
            dni="30123456",
            email="ana@clinic.example",
            external_id="HC-77",
            date_of_birth="1980-02-03",
        )
        client.appointments.create(patient=ana.id, start_at="2026-10-02T12:00:00Z", external_id="T-99", type="Consulta")
        client.visits.create(patient=ana.id, visited_at="2026-09-01T10:00:00Z", diagnosis="gripe", notes="vuelve")
        client.treatments.create(
            patient=ana.id,
            name="Iron pills",
            kind="medication",
            dosage="1 tabl",
            frequency="c/12 h",
            instructions="ayunas",
        )
        client.intake_requests.create(
            patient={"phone": "+54 9 11 5555-0001", "full_name": "Ana Núñez"},
            contacts=[{"phone": "+54 9 11 5555-0002", "name": "Tía Eva"}],
            coverage={"insurer": "Acme S.A."},
        )
        order = {"type": "lab", "description": "Hemograma de Ana Núñez", "studies": ["Hemograma"], "cuil": 20301234563}
        patient: Any = {"phone": PHONE, "full_name": "Ana Núñez"}
        client.events.create(inbound.order_issued(id="refe-1", patient=patient, order=order))
        server.advance(days=1)
        whole, anonymous = tmp_path / "whole.json", tmp_path / "anonymous.json"
        assert run("snapshot", "save", whole, "--url", server.url).returncode == 0
        assert run("snapshot", "save", anonymous, "--anonymize", "--url", server.url).returncode == 0
    before, after = whole.read_text(), anonymous.read_text()
    assert [mark for mark in marks.split("|") if mark not in before] == ["MARKRESPONSE"], "the body is base64"
    assert [mark for mark in marks.split("|") if mark in after] == []
    assert base64.b64encode(b"MARKRESPONSE Ana").decode() not in after
    with MockService.load(json.loads(after)) as service:
        patient, other = service.client().patients.list().data[::-1]
        assert {each.phone for each in service.messages if each.patient == patient.id} == {patient.phone}
        assert patient.full_name == other.full_name
        assert patient.phone != other.phone
        payloads = [each.payload["data"]["patient"] for each in service.deliveries if "patient" in each.payload["data"]]
        assert {each["phone"] for each in payloads if each["id"] == patient.id} == {patient.phone}
        assert service.client().appointments.list(status="confirmed").data == service.client().appointments.list().data
        service.advance(days=3)


def fail(_: httpx.Request) -> httpx.Response:
    raise LookupError("MARKTRACE Ana Núñez")


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
