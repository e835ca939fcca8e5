"""How what a caller passes goes out on the wire, and what is refused before anything is sent."""

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from support.answers import TIME, appointment, page, patient
from support.server import ScriptedServer, reply

from followup import AsyncFollowUp, ConfigurationError, FollowUp, FollowUpError

BUENOS_AIRES = timezone(timedelta(hours=-3))
NOON = datetime(2026, 9, 28, 12, tzinfo=BUENOS_AIRES)


def sent(server: ScriptedServer, make: Callable[[FollowUp], Any], answer: Any = None) -> Any:
    """The body that a call sends."""
    server.script = [reply(200, answer or patient())]
    with FollowUp(api_key="k", base_url=server.url) as client:
        make(client)
    body = server.received[-1].body
    return json.loads(body) if body else None


APPOINTMENT = appointment()
BATCH = {"object": "event_batch", "results": []}
DELIVERY = {
    "id": "whd_1",
    "object": "webhook_delivery",
    "webhookEndpoint": "we_1",
    "eventType": "webhook.ping",
    "status": "pending",
    "attempts": 0,
    "payload": {},
    "createdAt": TIME,
}


def test_names_are_camel_case_and_what_is_left_out_is_not_sent(server: ScriptedServer) -> None:
    body = sent(server, lambda client: client.patients.create(phone="1", full_name="Ana", date_of_birth="1980-05-17"))
    assert body == {"phone": "1", "fullName": "Ana", "dateOfBirth": "1980-05-17"}


def test_none_in_an_update_is_null(server: ScriptedServer) -> None:
    assert sent(server, lambda client: client.patients.update("pat_1", email=None)) == {"email": None}


def test_an_update_of_nothing_still_has_a_body(server: ScriptedServer) -> None:
    assert sent(server, lambda client: client.patients.update("pat_1")) == {}


def test_dates_and_times(server: ScriptedServer) -> None:
    body = sent(
        server,
        lambda client: client.appointments.create(
            patient={"phone": "1", "date_of_birth": date(1980, 5, 17)}, start_at=NOON
        ),
        APPOINTMENT,
    )
    assert body["patient"] == {"phone": "1", "dateOfBirth": "1980-05-17"}
    assert datetime.fromisoformat(body["startAt"]) == NOON


def test_nested_inputs(server: ScriptedServer) -> None:
    answer = {
        "id": "int_1",
        "object": "intake_request",
        "status": "new",
        "missing": [],
        "data": {},
        "createdAt": TIME,
        "updatedAt": TIME,
    }
    body = sent(
        server,
        lambda client: client.intake_requests.create(
            patient={"full_name": "Ana"},
            contacts=({"name": name, "relationship": "son"} for name in ("Luis", "Juan")),
            coverage={"insurer": "Salud", "member_id": "1"},
            requested_service="nursing",
            hospitalized=False,
        ),
        answer,
    )
    assert body == {
        "patient": {"fullName": "Ana"},
        "contacts": [{"name": "Luis", "relationship": "son"}, {"name": "Juan", "relationship": "son"}],
        "coverage": {"insurer": "Salud", "memberId": "1"},
        "requestedService": "nursing",
        "hospitalized": False,
    }


def test_the_data_of_an_event_goes_out_untouched(server: ScriptedServer) -> None:
    data = {"patient": {"fullName": "Ana", "snake_case": None}, "visit": {"visitedAt": TIME}}
    one = sent(
        server,
        lambda client: client.events.create(
            {"id": "1", "type": "visit.completed", "data": data, "occurred_at": NOON, "schema_version": 1}
        ),
        BATCH,
    )
    assert one["data"] == data
    assert one["schemaVersion"] == 1
    assert one["occurredAt"] == NOON.isoformat()
    many = sent(
        server,
        lambda client: client.events.create(
            {"id": str(number), "type": "order.issued", "data": {}} for number in range(100)
        ),
        BATCH,
    )
    assert [each["id"] for each in many] == [str(number) for number in range(100)]


def test_booleans_in_a_query_are_words(server: ScriptedServer) -> None:
    sent(server, lambda client: client.doctors.list(active=True), page())
    assert parse_qs(urlsplit(server.received[-1].target).query) == {"active": ["true"]}


def test_times_in_a_query(server: ScriptedServer) -> None:
    sent(server, lambda client: client.appointments.list(start_at_gte=NOON, start_at_lt="2026-10-01T00:00:00Z"), page())
    query = parse_qs(urlsplit(server.received[-1].target).query)
    assert datetime.fromisoformat(query["startAtGte"][0]) == NOON
    assert query["startAtLt"] == ["2026-10-01T00:00:00Z"]


def test_a_ping_and_a_bare_cancel_send_no_body(server: ScriptedServer) -> None:
    assert sent(server, lambda client: client.webhook_endpoints.ping("we_1"), DELIVERY) is None
    assert sent(server, lambda client: client.appointments.cancel("apt_1"), APPOINTMENT) is None
    assert "content-type" not in server.received[-1].headers
    assert sent(server, lambda client: client.appointments.cancel("apt_1", reason="x"), APPOINTMENT) == {"reason": "x"}


def test_every_request_says_who_asks_and_in_which_version(server: ScriptedServer) -> None:
    sent(server, lambda client: client.patients.retrieve("pat_1"))
    headers = server.received[-1].headers
    assert headers["authorization"] == "Bearer k"
    assert headers["service-version"] == "2026-09-28"
    assert headers["user-agent"].startswith("followup-python/")


def test_a_path_in_the_base_url_stays(server: ScriptedServer) -> None:
    server.script = [reply(200, patient())]
    with FollowUp(api_key="k", base_url=f"{server.url}/api/") as client:
        client.patients.retrieve("pat_1")
    assert server.received[-1].target == "/api/v1/patients/pat_1"


REFUSED: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
    (lambda c: c.patients.retrieve(""), ValueError, "patients.retrieve needs the id"),
    (lambda c: c.patients.retrieve(None), ValueError, "patients.retrieve needs the id"),
    (lambda c: c.patients.retrieve("apt_1"), ValueError, "begins with 'pat_'"),
    (lambda c: c.patients.retrieve("../x"), ValueError, "begins with 'pat_'"),
    (lambda c: c.patients.retrieve("pat_../../account"), ValueError, "without spaces"),
    (lambda c: c.patients.retrieve("pat_1?x=1"), ValueError, "without spaces"),
    (lambda c: c.patients.retrieve("pat_1%2f"), ValueError, "without spaces"),
    (lambda c: c.appointments.cancel("pat_1"), ValueError, "begins with 'apt_'"),
    (lambda c: c.patients.create(), TypeError, "phone"),
    (lambda c: c.patients.create("1"), TypeError, "positional"),
    (lambda c: c.patients.create(phone="1", fullName="x"), TypeError, "fullName"),
    (lambda c: c.patients.create(phone="1", date_of_birth=datetime(2026, 1, 1, tzinfo=UTC)), ValueError, "a date"),
    (lambda c: c.appointments.create(patient="pat_1", start_at=datetime(2026, 1, 1)), ValueError, "naive"),  # noqa: DTZ001
    (lambda c: c.appointments.create(patient={"fullName": "x"}, start_at=TIME), ValueError, "no key 'fullName'"),
    (lambda c: c.appointments.create(patient=5, start_at=TIME), TypeError, "patient must be a dict"),
    (lambda c: c.appointments.list(start_at_gte=datetime(2026, 1, 1)), ValueError, "naive"),  # noqa: DTZ001
    (lambda c: c.events.create([]), ValueError, "1 to 100 items"),
    (lambda c: c.events.create([{"id": "1"}] * 101), ValueError, "1 to 100 items"),
    (lambda c: c.events.create("x"), TypeError, "events must be a list"),
    (lambda c: c.events.create([{"id": "1", "typ": "x"}]), ValueError, r"events\[0\] has no key 'typ'"),
    (lambda c: c.webhook_endpoints.create(url="https://x", enabled_events="*"), TypeError, "must be a list"),
    (lambda c: c.patients.create(phone="1", idempotency_key=""), ValueError, "idempotency_key"),
    (lambda c: c.patients.create(phone="1", idempotency_key="a\nb"), ValueError, "idempotency_key"),
    (lambda c: c.patients.create(phone=Decimal(1)), ValueError, "patients.create: the request cannot be written"),
    (lambda c: c.patients.create(phone="\ud800"), ValueError, "lone surrogate"),
    (
        lambda c: c.events.create({"id": "1", "type": "order.issued", "data": {"x": float("nan")}}),
        ValueError,
        "cannot be written as JSON",
    ),
]


@pytest.mark.parametrize(("make", "kind", "text"), REFUSED)
def test_what_cannot_be_right_is_refused_before_anything_is_sent(
    server: ScriptedServer, make: Callable[[Any], Any], kind: type[Exception], text: str
) -> None:
    async def with_async_client() -> None:
        async with AsyncFollowUp(api_key="k", base_url=server.url) as client:
            await make(client)

    with FollowUp(api_key="k", base_url=server.url) as client, pytest.raises(kind, match=text):
        make(client)
    with pytest.raises(kind, match=text):
        asyncio.run(with_async_client())
    assert server.received == []


@pytest.mark.parametrize("kind", [FollowUp, AsyncFollowUp])
class TestConfiguration:
    @pytest.mark.parametrize(
        ("options", "text"),
        [
            ({"api_key": None}, "FOLLOWUP_API_KEY"),
            ({"base_url": None}, "FOLLOWUP_BASE_URL"),
            ({"api_key": ""}, "no api_key"),
            ({"api_key": "a\nb"}, "api_key must be visible"),
            ({"api_key": "ñ"}, "api_key must be visible"),
            ({"base_url": "api.example.com"}, "http or https URL"),
            ({"base_url": "ftp://api.example.com"}, "http or https URL"),
            ({"base_url": "https://"}, "http or https URL"),
            ({"base_url": "https://x:99999"}, "http or https URL"),
            ({"base_url": "https://us er@x"}, "http or https URL"),
            ({"base_url": "https://user:secret@x"}, "without user name"),
            ({"base_url": "https://x/?a=1"}, "without query"),
            ({"base_url": "https://x/v1"}, "without /v1"),
            ({"timeout": 0}, "timeout must be"),
            ({"timeout": "5"}, "timeout must be"),
            ({"deadline": -1}, "deadline must be"),
            ({"deadline": float("nan")}, "deadline must be"),
            ({"max_retries": -1}, "max_retries must be"),
            ({"max_retries": 1.5}, "max_retries must be"),
            ({"service_version": ""}, "service_version must be"),
            ({"http_client": object()}, "http_client must be"),
        ],
    )
    def test_an_option_that_cannot_be_used_is_named(
        self, kind: Any, options: dict[str, Any], text: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("FOLLOWUP_API_KEY", raising=False)
        monkeypatch.delenv("FOLLOWUP_BASE_URL", raising=False)
        given = {"api_key": "fu_secret_key", "base_url": "https://api.example.com", **options}
        with pytest.raises(ConfigurationError, match=text) as caught:
            kind(**given)
        assert isinstance(caught.value, FollowUpError)
        assert isinstance(caught.value, ValueError)
        assert "secret" not in str(caught.value)

    def test_the_environment_stands_in(self, kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("FOLLOWUP_API_KEY", "fu_secret_key")
        monkeypatch.setenv("FOLLOWUP_BASE_URL", "https://api.example.com/")
        text = repr(kind())
        assert "https://api.example.com" in text
        assert "secret" not in text
