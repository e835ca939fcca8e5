"""How arguments and options are encoded and sent, and which options are rejected."""

import enum
import functools
import json
import math
import types
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from support.responses import TIME, error, patient
from support.server import ScriptedServer, reply

from followup import (
    NOT_GIVEN,
    ConfigurationError,
    EventInput,
    FollowUp,
    FollowUpError,
    InvalidRequestError,
    __version__,
)

BUENOS_AIRES = timezone(timedelta(hours=-3))
NOON = datetime(2026, 9, 28, 12, tzinfo=BUENOS_AIRES)


def sent(server: ScriptedServer, make: Callable[[FollowUp], Any]) -> Any:
    """Return the body that a call sends."""
    server.script = [reply(400, error())]
    with FollowUp(api_key="k", base_url=server.url) as client, pytest.raises(InvalidRequestError):
        make(client)
    body = server.received[-1].body
    return json.loads(body) if body else None


ORDER: EventInput = {"id": "1", "type": "order.issued", "data": {}}
DATA = {"patient": {"fullName": "Ana", "snake_case": None}, "visit": {"visitedAt": TIME}}
FULL: EventInput = {
    "id": "1", "type": "visit.completed", "data": DATA, "occurred_at": NOON, "schema_version": 1,
    "source": {"system": "pms", "version": None},
}  # fmt: skip
FULL_SENT = {
    "id": "1", "type": "visit.completed", "data": DATA, "occurredAt": "2026-09-28T15:00:00.000Z", "schemaVersion": 1,
    "source": {"system": "pms"},
}  # fmt: skip
NONE: Any = {"doctor": None, "type": None, "external_id": None, "idempotency_key": None}
EMPTY: Any = {"phone": "1", "dni": None, "date_of_birth": None, "email": NOT_GIVEN}

BODIES: dict[str, tuple[Callable[[FollowUp], Any], Any]] = {
    "names are camelCase, and omitted arguments are not sent": (
        lambda c: c.patients.create(phone="1", full_name="Ana", date_of_birth="1980-05-17"),
        {"phone": "1", "fullName": "Ana", "dateOfBirth": "1980-05-17"},
    ),
    "None in an update is null": (lambda c: c.patients.update("pat_1", email=None), {"email": None}),
    "an update of nothing has a body": (lambda c: c.patients.update("pat_1"), {}),
    "dates and times": (
        lambda c: c.appointments.create(patient={"phone": "1", "date_of_birth": date(1980, 5, 17)}, start_at=NOON),
        {"patient": {"phone": "1", "dateOfBirth": "1980-05-17"}, "startAt": "2026-09-28T15:00:00.000Z"},
    ),
    "nested inputs, also of a generator": (
        lambda c: c.intake_requests.create(
            contacts=({"name": name, "relationship": "son"} for name in ("Luis", "Juan")),
            coverage={"insurer": "Salud", "member_id": "1"},
            requested_service="nursing",
            hospitalized=False,
        ),
        {
            "contacts": [{"name": "Luis", "relationship": "son"}, {"name": "Juan", "relationship": "son"}],
            "coverage": {"insurer": "Salud", "memberId": "1"},
            "requestedService": "nursing",
            "hospitalized": False,
        },
    ),
    "the data of an event is sent unchanged": (lambda c: c.events.create(FULL), FULL_SENT),
    "data may be any mapping": (
        lambda c: c.events.create({**ORDER, "data": types.MappingProxyType(DATA)}), {**ORDER, "data": DATA},
    ),
    "a batch of a generator": (
        lambda c: c.events.create({**ORDER, "id": str(number)} for number in range(100)),
        [{**ORDER, "id": str(number)} for number in range(100)],
    ),
    "None in an event": (
        lambda c: c.events.create([{**ORDER, "occurred_at": None, "schema_version": None, "source": None}]),
        [ORDER],
    ),
    "a ping": (lambda c: c.webhook_endpoints.ping("we_1"), None),
    "a bare cancel": (lambda c: c.appointments.cancel("apt_1"), None),
    "a cancel without a reason": (lambda c: c.appointments.cancel("apt_1", reason=None), None),
    "a cancel": (lambda c: c.appointments.cancel("apt_1", reason="x"), {"reason": "x"}),
    "None for optional arguments": (
        lambda c: c.patients.create(phone="1", full_name=None, date_of_birth=None, email=NOT_GIVEN),
        {"phone": "1"},
    ),
    "None in inputs": (
        lambda c: c.appointments.create(patient=EMPTY, start_at=TIME, **NONE),
        {"patient": {"phone": "1"}, "startAt": TIME},
    ),
    "None in an input of an update": (
        lambda c: c.appointments.update("apt_1", doctor={"external_id": "D-1", "specialty": None}, type=None),
        {"doctor": {"externalId": "D-1"}, "type": None},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_the_body_that_is_sent(server: ScriptedServer, name: str) -> None:
    make, expected = BODIES[name]
    assert sent(server, make) == expected
    assert ("content-type" in server.received[-1].headers) is (expected is not None)


def test_no_filters_send_no_query(server: ScriptedServer) -> None:
    sent(server, lambda c: c.patients.list(limit=None, starting_after=None, ending_before=None, phone=None))
    assert urlsplit(server.received[-1].target).query == ""


def test_times_in_a_query(server: ScriptedServer) -> None:
    sent(server, lambda client: client.appointments.list(start_at_gte=NOON, start_at_lt="2026-10-01T00:00:00Z"))
    query = parse_qs(urlsplit(server.received[-1].target).query)
    assert datetime.fromisoformat(query["startAtGte"][0]) == NOON
    assert query["startAtLt"] == ["2026-10-01T00:00:00Z"]


def test_every_request_has_the_key_the_version_and_the_user_agent(server: ScriptedServer) -> None:
    sent(server, lambda client: client.patients.retrieve("pat_1"))
    headers = server.received[-1].headers
    assert headers["authorization"] == "Bearer k"
    assert headers["service-version"] == "2026-09-28"
    assert headers["user-agent"].startswith("followup-python/")


@pytest.mark.parametrize(
    ("app_info", "shown"),
    [
        ({"name": "Clinic"}, " Clinic"),
        ({"name": "Clinic", "version": None, "url": "http://clinic.example"}, " Clinic (http://clinic.example)"),
        (
            {"name": "a_b-c.d+1", "version": "1.2", "url": "https://x.example/?a=1"},
            " a_b-c.d+1/1.2 (https://x.example/?a=1)",
        ),
        (None, ""),
    ],
)
def test_the_user_agent_names_the_program_after_the_package(server: ScriptedServer, app_info: Any, shown: str) -> None:
    server.script = [reply(200, patient())]
    with FollowUp(api_key="k", base_url=server.url, app_info=app_info) as client:
        for each in (client, client.with_options(app_info={"name": "Plugin"}), client.with_options(deadline=9)):
            each.patients.retrieve("pat_1")
    own = f"followup-python/{__version__}"
    assert [each.headers["user-agent"] for each in server.received] == [own + shown, f"{own} Plugin", own + shown]


@pytest.mark.parametrize(
    "app_info",
    [
        "Clinic",
        {},
        {"version": "1"},
        *({"name": each} for each in ("", "Mi Clínica", "a\r\nX-Other: 1", "a\n", "x" * 101)),
        *({"name": "Clinic", "version": each} for each in ("", "1 (b)")),
        *({"name": "Clinic", "url": each} for each in ("clinic.example", "https://x.example/)\r\n")),
        {"name": "Clinic", "Url": "https://x.example"},
    ],
)
def test_what_does_not_fit_into_the_user_agent_is_rejected(app_info: Any) -> None:
    with pytest.raises(ConfigurationError, match="app_info must be a dict of name and version") as caught:
        FollowUp(api_key="k", base_url="http://127.0.0.1:9", app_info=app_info)
    assert "\n" not in str(caught.value)
    with FollowUp(api_key="k", base_url="http://127.0.0.1:9") as client, pytest.raises(ConfigurationError):
        client.with_options(app_info=app_info)


def test_a_path_in_the_base_url_stays(server: ScriptedServer) -> None:
    server.script = [reply(200, patient())]
    with FollowUp(api_key="k", base_url=f"{server.url}/api/") as client:
        client.patients.retrieve("pat_1")
    assert server.received[-1].target == "/api/v1/patients/pat_1"


class Text(str, enum.Enum):  # noqa: UP042 - the form that prints its name
    ANA = "ana"
    VERSION = "2026-09-28"


class Size(int, enum.Enum):
    PAGE = 50


class Day(date):
    def isoformat(self) -> str:
        return "28/9/2026"


class Moment(datetime):
    def isoformat(self, *_: Any, **__: Any) -> str:
        return "28/9/2026 12:00"


def test_a_subclass_is_sent_as_its_value_whatever_it_prints(server: ScriptedServer) -> None:
    moment = Moment(2026, 9, 28, 12, tzinfo=BUENOS_AIRES)
    sent(server, lambda c: c.appointments.list(limit=Size.PAGE, start_at_gte=moment, external_id=Text.ANA))
    query = {"limit": ["50"], "startAtGte": ["2026-09-28T15:00:00.000Z"], "externalId": ["ana"]}
    assert parse_qs(urlsplit(server.received[-1].target).query) == query
    day = Day(2026, 9, 28)
    body = sent(server, lambda c: c.patients.create(phone=Text.ANA, date_of_birth=day, idempotency_key=Text.ANA))
    assert body == {"phone": "ana", "dateOfBirth": "2026-09-28"}
    assert server.received[-1].headers["idempotency-key"] == "ana"
    server.script = [reply(200, patient())]
    with FollowUp(api_key=Text.ANA, base_url=server.url, service_version=Text.VERSION) as client:
        client.patients.retrieve("pat_1")
    headers = server.received[-1].headers
    assert (headers["authorization"], headers["service-version"]) == ("Bearer ana", "2026-09-28")


class SecretStr:
    """As in pydantic."""

    def get_secret_value(self) -> str:
        return "key"


class AnyHttpUrl:
    """As in pydantic, which appends a slash."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return f"{self.text}/"


class TestConfiguration:
    @pytest.mark.parametrize(
        ("options", "text"),
        [
            ({"api_key": None}, "FOLLOWUP_API_KEY"),
            ({"base_url": None}, "FOLLOWUP_BASE_URL"),
            ({"api_key": ""}, "no api_key"),
            ({"api_key": "a\nb"}, "api_key must be printable ASCII"),
            ({"api_key": "ñ"}, "api_key must be printable ASCII"),
            ({"api_key": "key\n"}, "api_key begins or ends with white space or a line break"),
            ({"api_key": "'key'"}, "api_key begins or ends with a quotation mark"),
            ({"api_key": b"key"}, "api_key must be a str, not bytes"),
            ({"api_key": SecretStr()}, r"api_key must be a str, not SecretStr: pass its get_.*_value\(\)"),
            ({"base_url": "https://x\r\n"}, "base_url begins or ends with white space or a line break"),
            ({"base_url": 5}, "base_url must be a str, not int"),
            ({"base_url": "api.example.com"}, "http or https URL"),
            ({"base_url": "ftp://api.example.com"}, "http or https URL"),
            ({"base_url": "https://"}, "http or https URL"),
            ({"base_url": "http://api..example"}, "http or https URL"),
            ({"base_url": f"https://{'a' * 64}.example"}, "http or https URL"),
            ({"base_url": "https://x:99999"}, "http or https URL"),
            ({"base_url": "https://x:0"}, "http or https URL"),
            ({"base_url": "https://us er@x"}, "http or https URL"),
            ({"base_url": "https://user:secret@x"}, "without user name"),
            ({"base_url": "https://x/?a=1"}, "without query"),
            ({"base_url": "https://x/v1"}, "without /v1"),
            ({"timeout": 0}, "timeout must be"),
            ({"timeout": "5"}, "timeout must be a positive number of seconds or an httpx.Timeout"),
            ({"deadline": -1}, "deadline must be a positive number of seconds or None"),
            ({"deadline": float("nan")}, "deadline must be"),
            *[
                ({name: each}, f"{name} must be")
                for name in ("timeout", "deadline")
                for each in (10**400, 1e300, math.inf)
            ],
            ({"timeout": httpx.Timeout(math.inf)}, "timeout must be an httpx.Timeout of at most"),
            ({"timeout": httpx.Timeout(5, read=10**400)}, "timeout must be an httpx.Timeout of at most"),
            *[
                ({"requests_per_minute": each}, "requests_per_minute must be a whole number from 1 to 1,000,000")
                for each in (0, True, 1.5, "600", math.nan, 10**30)
            ],
            ({"max_retries": -1}, "max_retries must be"),
            ({"max_retries": 1.5}, "max_retries must be"),
            ({"service_version": ""}, "service_version must be"),
            ({"http_client": object()}, "http_client must be"),
        ],
    )
    def test_the_error_names_an_invalid_option(
        self, options: dict[str, Any], text: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("FOLLOWUP_API_KEY", raising=False)
        monkeypatch.delenv("FOLLOWUP_BASE_URL", raising=False)
        given = {"api_key": "fu_secret_key", "base_url": "https://api.example.com", **options}
        with pytest.raises(ConfigurationError, match=text) as caught:
            FollowUp(**given)
        assert isinstance(caught.value, FollowUpError)
        assert isinstance(caught.value, ValueError)
        assert "fu_secret_key" not in str(caught.value)

    def test_omitted_options_default_to_the_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("FOLLOWUP_API_KEY", "fu_secret_key")
        monkeypatch.setenv("FOLLOWUP_BASE_URL", "HTTPS://Api.example.com/")
        text = repr(FollowUp())
        assert "https://api.example.com" in text
        assert "secret" not in text
        monkeypatch.setenv("FOLLOWUP_BASE_URL", "https://api.example.com\n")
        with pytest.raises(ConfigurationError, match="FOLLOWUP_BASE_URL begins or ends with white space"):
            FollowUp()

    @pytest.mark.parametrize("kind", [httpx.URL, AnyHttpUrl])
    def test_a_base_url_may_be_an_object_of_another_library(self, kind: Callable[[str], Any]) -> None:
        assert "'https://api.example.com'" in repr(FollowUp(api_key="k", base_url=kind("https://api.example.com")))

    def test_a_subclass_keeps_its_attributes_with_other_options(self) -> None:
        class Clinic(FollowUp):
            def __init__(self, tenant: str) -> None:
                self.tenant = tenant
                super().__init__(api_key="k", base_url="https://api.example.com")

            @functools.cached_property
            def first_page(self) -> object:
                return self.patients

        clinic = Clinic("norte")
        assert clinic.first_page is clinic.patients
        derived = clinic.with_options(timeout=3)
        assert (type(derived), derived.tenant) == (Clinic, "norte")
        assert derived.patients is not clinic.patients
        assert derived.first_page is derived.patients
