"""The options of a mock, as arguments and in a settings file."""

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.http import Api, problem

from followup import RateLimitError
from followup_mockserver import MockService
from followup_mockserver.service import InProcessTransport

NOON = "2026-09-28T12:00:00Z"

OPTIONS: Any = {
    "country": "UY",
    "idempotency_hours": 2,
    "refuse_unknown_fields": False,
    "reminder_hours": (48,),
    "post_visit_hours": 1.5,
    "intake_required": ["dni", "patient.email"],
    "language": "en",
    "time_zone": "Europe/Madrid",
    "mobiles": "assume",
    "ref": "trigger",
}


@pytest.fixture
def service() -> MockService:
    return MockService(start_time=NOON, rate_limit=0, **OPTIONS)


def behaves_as_asked(service: MockService, key: str) -> None:
    """Every one of ``OPTIONS`` shows in what the organization of this key does."""
    client = service.client(api_key=key, max_retries=0)
    organization = service.organization(key)
    now = organization.clock.now
    patient = client.patients.create(phone="094 123 456", idempotency_key="k")
    assert patient.phone == "+59894123456"
    assert client.intake_requests.create(patient={"full_name": "Ana"}).missing == ["dni", "patient.email"]
    client.appointments.create(patient=patient.id, start_at=now + timedelta(days=3))
    assert [each.send_at for each in organization.reminders] == [now + timedelta(days=1)]
    client.visits.create(patient=patient.id, visited_at=now)
    organization.advance(hours=1.5)
    assert [each.kind for each in organization.messages] == ["post_visit"]
    assert "visit" in organization.messages[0].text
    assert client.patients.create(phone="+54 11 5555 0000").phone == "+5491155550000"
    client.webhook_endpoints.create(url="https://clinic.example", enabled_events=["*"])
    sent = client.events.create({"id": "1", "type": "intake.requested", "data": {"patient": {"phone": "094 123 456"}}})
    assert client.webhook_deliveries.list(limit=1).data[0].payload["ref"] == sent.results[0].event
    assert client.account.retrieve().time_zone == "Europe/Madrid"
    replayed = client.patients.create(phone="094 123 456", idempotency_key="k")
    assert replayed.last_response.headers.get("Idempotent-Replayed") == "true"
    organization.advance(hours=1)
    forgotten = client.patients.create(phone="094 123 456", idempotency_key="k")
    assert "Idempotent-Replayed" not in forgotten.last_response.headers


def test_the_default_organization_and_new_ones_have_them(service: MockService) -> None:
    behaves_as_asked(service, service.api_key)
    behaves_as_asked(service, service.create_organization().keys[0].value)


def test_a_reset_keeps_them_and_forgets_what_was_changed_since(service: MockService) -> None:
    key = service.create_organization().keys[0].value
    service.organization(key).update_organization(country="AR", reminder_hours=[])
    service.organization(key).reset()
    behaves_as_asked(service, key)
    service.update_organization(country="AR", reminder_hours=[], intake_required=[], post_visit_hours=0)
    service.reset()
    behaves_as_asked(service, service.api_key)


def test_a_list_that_was_passed_can_be_changed_afterwards() -> None:
    hours, required = [48.0], ["dni"]
    service = MockService(start_time=NOON, reminder_hours=hours, intake_required=required)
    hours.append(-1.0)
    required.clear()
    client = service.client()
    client.appointments.create(patient={"phone": "+5491155550000"}, start_at="2026-10-03T12:00:00Z")
    assert len(service.reminders) == 1
    assert client.intake_requests.create(patient={"full_name": "Ana"}).missing == ["dni"]


INVALID: list[tuple[Any, str]] = [
    ({"rate_limit": -1}, "rate_limit must be a whole number, 0 or more"),
    ({"start_time": "yesterday"}, "start_time must be a time with an offset, such as 2026-09-28T12:00:00Z"),
    ({"start_time": datetime(2026, 1, 1)}, "start_time must be a time with an offset, such as 2026-09-28T12:00:00Z"),  # noqa: DTZ001
    ({"start_time": datetime.max.replace(tzinfo=UTC)}, "start_time must be a time before the year 9000"),
    ({"forward_to": "http://clinic.example"}, "forward_to must be an https URL, or an http URL of a loopback address"),
    ({"country": "XX"}, "country must be the ISO 3166 code of a country, such as AR"),
    ({"idempotency_hours": 0}, "idempotency_hours must be more than 0 and at most 87600 hours"),
    ({"refuse_unknown_fields": 1}, "refuse_unknown_fields must be true or false"),
    ({"reminder_hours": [24, -1]}, "reminder_hours[1] must be from 0 to 4320 hours"),
    ({"reminder_hours": "24,3"}, "reminder_hours must be a list"),
    ({"reminder_hours": [10**400]}, "reminder_hours[0] must be from 0 to 4320 hours"),
    ({"post_visit_hours": float("inf")}, "post_visit_hours must be from 0 to 4320 hours"),
    ({"intake_required": ["dni", "shoeSize"]}, "intake_required[1] must be a field of an intake request"),
    ({"language": "fr"}, "language must be one of es, en, pt"),
    ({"ref": None}, "ref must be one of described, trigger"),
    ({"time_zone": "Madrid"}, "time_zone must be the IANA name of a time zone, such as Europe/Madrid"),
    ({"settings": 3}, "settings must be the path of a settings file"),
]


@pytest.mark.parametrize(("option", "text"), INVALID)
def test_an_invalid_option_is_one_clear_sentence(option: Any, text: str) -> None:
    with pytest.raises(ValueError, match="must be") as caught:
        MockService(**option)
    assert str(caught.value).startswith(text)


CHANGES: list[tuple[str, Any]] = [
    ("serviceLines", ["network"]),
    ("postVisitHours", 0.5),
    ("intakeMessages", False),
    ("name", "Clínica Sur"),
    ("language", "en"),
]


@pytest.mark.parametrize(("name", "value"), CHANGES)
def test_a_setting_of_an_organization_can_be_changed_while_the_mock_runs(name: str, value: Any) -> None:
    service = MockService()
    with httpx.Client(transport=InProcessTransport(service._wsgi_app), base_url=service.url) as http:
        api = Api(http, service.api_key)
        assert api.patch("/_mock/organization", {name: value}).status_code == 200
        assert problem(api.patch("/_mock/organization", {name: {"x": 1}})) == (400, "parameter_invalid", name)


FILE = [
    "\ufeff# What calibrate found.",  # the byte order mark of an editor on Windows
    "[settings]",
    *(f"{name} = {json.dumps(value)}" for name, value in OPTIONS.items()),
    "rate_limit = 7",
    "start_time = 2026-09-28T12:00:00Z",
    "[asked]",
    'unknown_fields = "found: 200"',
]


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    path = tmp_path / "clinic.toml"
    path.write_text("\n".join(FILE), encoding="utf-8")
    return path


def test_each_option_in_the_file_takes_effect(settings: Path) -> None:
    service = MockService(settings=settings, rate_limit=0)
    settings.unlink()
    for each in (service.fork(), service):
        each.reset()
        assert each.clock.frozen
        assert each.clock.now.isoformat() == "2026-09-28T12:00:00+00:00"
        behaves_as_asked(each, each.api_key)


def test_the_file_may_set_the_rate_limit_and_may_be_empty(settings: Path, tmp_path: Path) -> None:
    client = MockService(settings=settings).client(max_retries=0)
    for _ in range(7):
        client.account.retrieve()
    with pytest.raises(RateLimitError):
        client.account.retrieve()
    (empty := tmp_path / "empty.toml").touch()
    assert MockService(settings=empty).client().patients.create(phone="11 4123-4567").phone == "+541141234567"


def test_the_path_may_be_text_and_a_passed_option_takes_precedence(settings: Path) -> None:
    service = MockService(settings=str(settings), country="AR", rate_limit=0)
    client = service.client()
    assert client.patients.create(phone="11 4123-4567").phone == "+5491141234567"
    assert client.intake_requests.create(contacts=[{"name": "Ana"}]).missing == ["dni", "patient.email"]
    for _ in range(8):
        client.account.retrieve()


INVALID_FILES: list[tuple[str, str]] = [
    ('[settings]\ncountry = "XX"', "settings.country must be the ISO 3166 code of a country, such as AR"),
    ('[settings]\nreminder_hours = [24, "3"]', "settings.reminder_hours[1] must be from 0 to 4320 hours"),
    (
        "[settings]\nstart_time = 2026-09-28T12:00:00",
        "settings.start_time must be a time with an offset, such as 2026-09-28T12:00:00Z",
    ),
    ("[settings]\ncuontry = 5", "settings.cuontry is unknown; the settings are allow_http_webhooks, country, "),
    ('[settings]\nsettings = "other.toml"', "settings.settings is unknown; "),
    ("[Settings]\ncountry = 5", "Settings is unknown; the tables are [settings] and [asked]"),
    ('country = "UY"', "country is unknown; the tables are [settings] and [asked]"),
    ("settings = 5", "settings must be a table"),
    ("[settings", "this must be TOML: "),
    ("\udcff", "this must be UTF-8 text"),
]


@pytest.mark.parametrize(("text", "problem"), INVALID_FILES, ids=[problem for _, problem in INVALID_FILES])
def test_an_invalid_file_is_one_sentence_that_names_file_and_key(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "clinic.toml"
    path.write_text(text, errors="surrogateescape", encoding="utf-8")
    with pytest.raises(ValueError, match="clinic") as caught:
        MockService(settings=path)
    assert str(caught.value).startswith(f"{path}: {problem}")
    assert "\n" not in str(caught.value)


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


def test_serve_ends_with_one_line_and_status_2(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "followup_mockserver", "serve", "--port", "0", "--settings", "none.toml"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    problem = "followup-mock: cannot read --settings none.toml: No such file or directory\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", problem)
