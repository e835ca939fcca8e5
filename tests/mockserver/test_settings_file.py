"""A settings file sets the options of a mock: ``serve --settings``, ``MockService(settings=…)``, ``MockServer``."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from followup import RateLimitError
from followup_mockserver import MockServer, MockService

FILE = """
# What calibrate found.
[settings]
country = "UY"
idempotency_hours = 2
refuse_unknown_fields = false
reminder_hours = [48, 1.5]
post_visit_hours = 1.5
intake_required = ["dni", "patient.email"]
language = "en"
time_zone = "Europe/Madrid"
rate_limit = 7
start_time = 2026-09-28T12:00:00Z

[asked]
unknown_fields = "found: 200"
"""


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    path = tmp_path / "clinic.toml"
    path.write_text(FILE)
    return path


def test_each_option_in_the_file_takes_effect(settings: Path) -> None:
    service = MockService(settings=settings)
    client = service.client(max_retries=0)
    assert service.clock.frozen
    assert service.clock.now.isoformat() == "2026-09-28T12:00:00+00:00"
    assert client.account.retrieve().time_zone == "Europe/Madrid"
    booked = client.appointments.create(patient={"phone": "094 123 456"}, start_at="2026-10-05T12:00:00Z")
    assert client.patients.retrieve(booked.patient).phone == "+59894123456"
    assert [f"{each.send_at:%m-%d %H:%M}" for each in service.reminders] == ["10-03 12:00", "10-05 10:30"]
    assert client.intake_requests.create(contacts=[{"name": "Ana"}]).missing == ["dni", "patient.email"]
    visit = client.visits.create(patient=booked.patient, visited_at=service.clock.now, idempotency_key="k")
    service.advance(hours=1.5)
    assert [each.about for each in service.messages if each.kind == "post_visit"] == [visit.id]
    service.advance(hours=1)
    again = client.visits.create(patient=booked.patient, visited_at=service.clock.now, idempotency_key="k")
    assert again.id != visit.id


def test_the_file_may_set_the_rate_limit(settings: Path) -> None:
    client = MockService(settings=settings).client(max_retries=0)
    for _ in range(7):
        client.account.retrieve()
    with pytest.raises(RateLimitError):
        client.account.retrieve()


def test_the_path_may_be_text_and_a_passed_option_takes_precedence(settings: Path) -> None:
    service = MockService(settings=str(settings), country="AR", rate_limit=0)
    client = service.client()
    assert client.patients.create(phone="11 4123-4567").phone == "+541141234567"
    assert client.intake_requests.create(contacts=[{"name": "Ana"}]).missing == ["dni", "patient.email"]
    for _ in range(8):
        client.account.retrieve()


def test_new_organizations_a_reset_and_a_fork_have_the_settings_too(settings: Path) -> None:
    service = MockService(settings=settings)
    settings.unlink()
    service.update_organization(country="AR")
    service.reset()
    for each in (service, service.fork()):
        key = each.create_organization().keys[0].value
        for client in (each.client(), each.client(api_key=key)):
            assert client.patients.create(phone="094 123 456").phone == "+59894123456"


def test_a_server_takes_the_same_file(settings: Path) -> None:
    with MockServer(settings=settings) as server:
        body = {"phone": "094 123 456", "paint": "red"}
        headers = {"Authorization": f"Bearer {server.api_key}"}
        response = httpx.post(f"{server.url}/v1/patients", json=body, headers=headers, trust_env=False)
        assert response.json()["phone"] == "+59894123456"


def test_serve_takes_the_same_file_and_a_passed_option_takes_precedence(settings: Path) -> None:
    command = [sys.executable, "-m", "followup_mockserver", "serve", "--port", "0", "--settings", settings.name]
    command += ["--language", "pt", "--time-zone", "America/Sao_Paulo"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=settings.parent) as process:
        assert process.stdout
        url = process.stdout.readline().split()[-1]
        with httpx.Client(base_url=url, headers={"Authorization": "Bearer fu_test_mock"}, trust_env=False) as http:
            patient = http.post("/v1/patients", json={"phone": "094 123 456", "paint": "red"}).json()
            account = http.get("/v1/account").json()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert patient["phone"] == "+59894123456"
    assert account["timeZone"] == "America/Sao_Paulo"


INVALID: list[tuple[str, str]] = [
    ('[settings]\ncountry = "XX"', "settings.country must be the ISO 3166 code of a country, such as AR"),
    ('[settings]\nreminder_hours = [24, "3"]', "settings.reminder_hours[1] must be from 0 to 4320 hours"),
    (
        "[settings]\nstart_time = 2026-09-28T12:00:00",
        "settings.start_time must be a time with an offset, such as 2026-09-28T12:00:00Z",
    ),
    ("[settings]\ncuontry = 5", "settings.cuontry is unknown; did you mean country?"),
    ('[settings]\nsettings = "other.toml"', "settings.settings is unknown; "),
    ("[settings]\npaint = 5", "settings.paint is unknown; the settings are allow_http_webhooks, country, "),
    ("[Settings]\ncountry = 5", "Settings is unknown; the tables are [settings] and [asked]"),
    ('country = "UY"', "country is unknown; the tables are [settings] and [asked]"),
    ("settings = 5", "settings must be a table"),
    ("asked = 5", "asked must be a table"),
    ("[settings", "this must be TOML: "),
    ("[asked]\nx = " + "[" * 20_000, "this must be TOML"),
    ("[asked]\nx = '" + "x" * 1024 * 1024 + "'", "a settings file has at most 1048576 bytes"),
    ("\udcff", "this must be UTF-8 text"),
]


@pytest.mark.parametrize(("text", "problem"), INVALID, ids=[problem for _, problem in INVALID])
def test_an_invalid_file_is_one_sentence_that_names_file_and_key(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "clinic.toml"
    path.write_text(text, errors="surrogateescape")
    with pytest.raises(ValueError, match="clinic") as caught:
        MockService(settings=path)
    assert str(caught.value).startswith(f"{path}: {problem}")
    assert "\n" not in str(caught.value)


def test_a_file_without_tables_sets_nothing(tmp_path: Path) -> None:
    path = tmp_path / "clinic.toml"
    path.write_text("")
    assert MockService(settings=path).client().patients.create(phone="11 4123-4567").phone == "+541141234567"


def test_a_missing_file_a_folder_and_a_pipe_are_errors(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none\.toml"):
        MockService(settings=tmp_path / "none.toml")
    with pytest.raises(IsADirectoryError):
        MockService(settings=tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="pipe: this must be a regular file"):
        MockService(settings=tmp_path / "pipe")


def test_a_snapshot_has_the_settings_of_its_organizations(settings: Path) -> None:
    state = MockService(settings=settings).save()
    with pytest.raises(ValueError, match=r"^settings must be omitted with a snapshot"):
        MockService.load(state, settings=settings)
    for name, value in {"language": "en", "time_zone": "Europe/Madrid"}.items():
        with pytest.raises(ValueError, match=f"^{name} must be omitted with a snapshot"):
            MockService.load(state, **{name: value})  # type: ignore[arg-type]
    loaded = MockService.load(state)
    key = loaded.create_organization().keys[0].value
    assert loaded.client(api_key=key).account.retrieve().time_zone == "Europe/Madrid"


@pytest.mark.parametrize("name", ["none.toml", "broken.toml"])
def test_serve_ends_with_one_line_and_status_2(tmp_path: Path, name: str) -> None:
    (tmp_path / "broken.toml").write_text("[settings]\ncountry = 5")
    command = [sys.executable, "-m", "followup_mockserver", "serve", "--port", "0", "--settings", name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    problems = {
        "none.toml": "cannot read --settings none.toml: No such file or directory",
        "broken.toml": f"--settings broken.toml: {INVALID[0][1]}",
    }
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"followup-mock: {problems[name]}\n")
