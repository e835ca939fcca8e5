"""``catch_up`` adds the events that never arrived, and no others."""

import json
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.databases import engine_of
from support.times import ManualTime

from followup import AsyncFollowUp, FollowUp, NotFoundError, WebhookEndpoint
from followup.inbox import CatchUpReport, Inbox, Received
from followup.inbox.tables import CURSORS
from followup_mockserver import MockService

from .conftest import Desk, write

URL = "https://clinic.example/webhooks"


@pytest.fixture
def service() -> Iterator[MockService]:
    with MockService(start_time="2026-09-28T12:00:00Z", rate_limit=0) as service:
        yield service


@pytest.fixture
def client(service: MockService) -> Iterator[FollowUp]:
    with service.client() as client:
        yield client


@pytest.fixture
def endpoint(client: FollowUp) -> WebhookEndpoint:
    return client.webhook_endpoints.create(url=URL, enabled_events=["patient.upserted"])


@pytest.fixture
def receiving(
    inbox: Desk, service: MockService, endpoint: WebhookEndpoint, database_url: str
) -> Iterator[Callable[[bool], None]]:
    """Return a function that switches the receiver on or off."""
    receiver = Inbox(database_url, secret=endpoint.secret)

    def switch(is_on: bool) -> None:
        app = receiver.wsgi_app if is_on else lambda _: httpx.Response(503)
        service.mount(URL, app)

    switch(True)
    inbox.otherwise(write)
    yield switch
    receiver.close()


def new_patients(client: FollowUp, count: int, first: int = 0) -> None:
    for number in range(first, first + count):
        client.patients.create(phone=f"+54 9 11 5555-{number:04}")


def test_after_four_days_of_outage_nothing_is_missing(
    inbox: Desk, service: MockService, client: FollowUp, receiving: Callable[[bool], None]
) -> None:
    new_patients(client, 3)
    service.advance()
    receiving(False)
    new_patients(client, 250, first=3)
    service.advance(days=4)
    assert {each.status for each in service.deliveries} == {"succeeded", "failed"}
    receiving(True)
    new_patients(client, 2, first=253)
    service.advance()
    assert inbox.catch_up(client) == CatchUpReport(seen=255, added=250)
    assert inbox.catch_up(client).added == 0
    assert inbox.drain().done == 255
    assert inbox.drain().done == 0
    assert sorted(inbox.written()) == sorted(each.id for each in service.deliveries)


def test_events_that_were_fetched_are_like_those_that_were_pushed(
    inbox: Desk, service: MockService, client: FollowUp, endpoint: WebhookEndpoint
) -> None:
    seen: list[Received] = []
    inbox.otherwise(seen.append)
    client.patients.create(phone="+54 9 11 5555-0000", full_name="Ana Núñez")
    client.patients.create(phone="+54 9 11 5555-0001", full_name="Juan Peña")
    service.advance(days=4)
    inbox.catch_up(client)
    inbox.drain()
    assert [each.event.data["patient"]["fullName"] for each in seen] == ["Ana Núñez", "Juan Peña"], "oldest first"
    assert [each.event.to_dict() for each in seen][::-1] == [
        {**each.event.to_dict(), "id": delivery.id}
        for each, delivery in zip(seen[::-1], client.webhook_deliveries.list(), strict=True)
    ]


def test_pending_and_succeeded_deliveries_are_added_too(
    inbox: Desk, service: MockService, client: FollowUp, endpoint: WebhookEndpoint
) -> None:
    """A database that was restored from a backup lacks some that succeeded."""
    inbox.otherwise(write)
    service.mount(URL, lambda _: httpx.Response(204))
    new_patients(client, 1)
    service.advance()
    service.mount(URL, lambda _: httpx.Response(503))
    new_patients(client, 1, first=1)
    service.advance()
    assert sorted(each.status for each in service.deliveries) == ["pending", "succeeded"]
    assert inbox.catch_up(client).added == 2


def test_a_database_that_was_restored_from_a_backup_is_completed(
    sqlite_url: str, service: MockService, client: FollowUp, endpoint: WebhookEndpoint
) -> None:
    inbox = Inbox(sqlite_url, secret=endpoint.secret)
    inbox.create_tables()
    service.mount(URL, inbox.wsgi_app)
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    new_patients(client, 2)
    service.advance()
    inbox.catch_up(client)
    shutil.copy(path, f"{path}.backup")
    new_patients(client, 3, first=2)
    service.advance(days=2)
    inbox.catch_up(client)
    shutil.copy(f"{path}.backup", path)
    assert inbox.status().waiting == 2
    assert inbox.catch_up(client).added == 3


def test_later_calls_read_only_what_is_new_with_an_overlap(
    inbox: Desk, service: MockService, client: FollowUp, receiving: Callable[[bool], None]
) -> None:
    new_patients(client, 5)
    service.advance(hours=2)
    new_patients(client, 3, first=5)
    assert inbox.catch_up(client).seen == 8
    service.advance(minutes=30)
    new_patients(client, 1, first=8)
    assert inbox.catch_up(client).seen == 4, "those of the last hour are read again"
    service.advance(hours=3)
    new_patients(client, 1, first=9)
    assert inbox.catch_up(client).seen == 5
    assert inbox.catch_up(client).seen == 1


def test_a_pushed_event_does_not_hide_an_older_one_that_never_arrived(
    inbox: Desk, service: MockService, client: FollowUp, receiving: Callable[[bool], None]
) -> None:
    assert inbox.catch_up(client) == CatchUpReport(seen=0, added=0)
    receiving(False)
    new_patients(client, 1)
    service.advance(days=4)
    receiving(True)
    new_patients(client, 1, first=1)
    service.advance(hours=5)
    assert inbox.status().waiting == 1
    assert inbox.catch_up(client).added == 1


def test_a_delivery_that_appears_late_in_the_list_is_found(
    inbox: Desk, service: MockService, endpoint: WebhookEndpoint, client: FollowUp
) -> None:
    """The list lags: a delivery shows up after one that was created later."""
    new_patients(client, 1)
    service.advance(minutes=1)
    new_patients(client, 1, first=1)
    _, older = client.webhook_deliveries.list()
    hidden = {older.id}

    def lag(page: dict[str, Any]) -> None:
        page["data"] = [each for each in page["data"] if each["id"] not in hidden]

    with altered(service, lag) as lagging:
        assert inbox.catch_up(lagging, endpoint.id).added == 1
        hidden.clear()
        assert inbox.catch_up(lagging, endpoint.id).added == 1


@pytest.mark.parametrize("empty_page", [1, 2])
def test_one_empty_page_is_not_believed(
    inbox: Desk, service: MockService, endpoint: WebhookEndpoint, client: FollowUp, empty_page: int
) -> None:
    new_patients(client, 150)
    calls: list[int] = []

    def empty_once(page: dict[str, Any]) -> None:
        calls.append(1)
        if len(calls) == empty_page:
            page.update(data=[], hasMore=False)

    with altered(service, empty_once) as flaky:
        assert inbox.catch_up(flaky, endpoint.id).added == 150


def test_a_walk_that_ends_early_is_repeated_in_full(
    inbox: Desk, service: MockService, endpoint: WebhookEndpoint, client: FollowUp
) -> None:
    """The second page stays empty for a while; all of it is read again once it has its items, hours later."""
    new_patients(client, 150)
    service.advance(days=1)
    new_patients(client, 1, first=150)
    calls: list[int] = []

    def cut(page: dict[str, Any]) -> None:
        calls.append(1)
        if 2 <= len(calls) <= 3:
            page.update(data=[], hasMore=False)

    with altered(service, cut) as flaky:
        assert inbox.catch_up(flaky, endpoint.id).added == 100
        assert inbox.catch_up(flaky, endpoint.id).added == 51


def test_a_payload_that_is_no_event_is_skipped_and_read_again(
    inbox: Desk, service: MockService, endpoint: WebhookEndpoint, client: FollowUp, caplog: pytest.LogCaptureFixture
) -> None:
    new_patients(client, 2)
    service.advance(days=1)
    is_broken = [True]

    def damage(page: dict[str, Any]) -> None:
        if is_broken[0]:
            del page["data"][1]["payload"]["occurredAt"]

    with altered(service, damage) as damaged:
        assert inbox.catch_up(damaged, endpoint.id).added == 1
        assert "is not stored, and read again next time: " in caplog.text
        assert "5555" not in caplog.text
        is_broken[0] = False
        assert inbox.catch_up(damaged, endpoint.id).added == 1


def test_since_bounds_what_is_added(
    inbox: Desk, service: MockService, client: FollowUp, endpoint: WebhookEndpoint
) -> None:
    new_patients(client, 2)
    service.advance(hours=1)
    boundary = datetime(2026, 9, 28, 13, tzinfo=UTC)
    new_patients(client, 3, first=2)
    assert inbox.catch_up(client, since=boundary) == CatchUpReport(seen=3, added=3)
    service.advance(days=31)
    new_patients(client, 1, first=5)
    assert inbox.catch_up(client, since=boundary + timedelta(days=1)) == CatchUpReport(seen=1, added=1)


@pytest.mark.parametrize("handled_first", [0, 2])
def test_a_purge_hides_nothing_that_never_arrived_and_repeats_nothing_that_did(
    inbox: Desk, service: MockService, client: FollowUp, receiving: Callable[[bool], None], handled_first: int
) -> None:
    """A purge whose age is shorter than an outage runs before the outage is caught up."""
    clock = inbox._clock = ManualTime(service.clock.now.timestamp())
    new_patients(client, handled_first)
    service.advance()
    assert inbox.drain().done == handled_first
    receiving(False)
    new_patients(client, 3, first=handled_first)
    service.advance(days=4)
    clock.advance(4 * 86_400)
    assert inbox.purge(older_than=timedelta(days=1)) == handled_first
    receiving(True)
    new_patients(client, 1, first=handled_first + 3)
    service.advance()
    assert inbox.catch_up(client).added == 3
    assert inbox.drain().done == 4
    assert inbox.catch_up(client, since=datetime(2026, 1, 1, tzinfo=UTC)).added == 0
    assert sorted(inbox.written()) == sorted(each.id for each in service.deliveries), "each of them once"


def test_several_endpoints_must_be_told_apart(
    inbox: Desk, service: MockService, client: FollowUp, endpoint: WebhookEndpoint
) -> None:
    other = client.webhook_endpoints.create(url=f"{URL}/b?token=hidden", enabled_events=["patient.upserted"])
    new_patients(client, 1)
    with pytest.raises(ValueError, match="webhook_endpoint must name one of") as caught:
        inbox.catch_up(client)
    assert endpoint.id in str(caught.value)
    assert f"{other.id} ({URL}/b)" in str(caught.value)
    assert inbox.catch_up(client, webhook_endpoint=other.id).added == 1
    assert inbox.catch_up(client, endpoint.id).added == 1, "it has another id there, and a cursor of its own"


def test_no_endpoint_and_one_that_does_not_exist_are_errors(inbox: Desk, client: FollowUp) -> None:
    with pytest.raises(ValueError, match="webhook_endpoint: the organization has none"):
        inbox.catch_up(client)
    with pytest.raises(NotFoundError):
        inbox.catch_up(client, "we_missing")


def test_a_naive_since_and_an_async_client_are_errors(inbox: Desk, client: FollowUp) -> None:
    with pytest.raises(ValueError, match=r"^since is a naive datetime: pass one with a time zone"):
        inbox.catch_up(client, since=datetime(2026, 9, 28))  # noqa: DTZ001
    with pytest.raises(ValueError, match=r"^since must be an aware datetime, not a str$"):
        inbox.catch_up(client, since="2026-09-28T12:00:00Z")  # type: ignore[arg-type]
    other = AsyncFollowUp(api_key="fu_test_mock", base_url="http://127.0.0.1:9")
    with pytest.raises(TypeError, match="client must be a FollowUp, not AsyncFollowUp"):
        inbox.catch_up(other)  # type: ignore[arg-type]


class altered:  # noqa: N801 - reads as a function
    """A client of a service whose lists of deliveries are altered on their way."""

    def __init__(self, service: MockService, alter: Callable[[dict[str, Any]], None]) -> None:
        wsgi = httpx.WSGITransport(service.app)

        class Transport(httpx.BaseTransport):
            def handle_request(self, request: httpx.Request) -> httpx.Response:
                response = wsgi.handle_request(request)
                response.read()
                if request.url.path.endswith("/webhook_deliveries"):
                    page = response.json()
                    alter(page)
                    headers = {"content-type": "application/json"}
                    return httpx.Response(200, headers=headers, content=json.dumps(page))
                return response

        self._http = httpx.Client(transport=Transport())
        self._client = FollowUp(api_key="fu_test_mock", base_url="http://mock.example", http_client=self._http)

    def __enter__(self) -> FollowUp:
        return self._client

    def __exit__(self, *_: object) -> None:
        self._http.close()


def test_a_later_since_hides_nothing_from_the_next_call(
    inbox: Desk, service: MockService, client: FollowUp, receiving: Callable[[bool], None]
) -> None:
    new_patients(client, 1)
    service.advance()
    inbox.catch_up(client)
    receiving(False)
    new_patients(client, 5, first=1)
    service.advance(days=4)
    new_patients(client, 1, first=6)
    assert inbox.catch_up(client, since=service.clock.now - timedelta(hours=3)).added == 1
    assert inbox.catch_up(client).added == 5


def test_the_next_call_reads_only_what_is_new_also_after_several_pages(
    inbox: Desk, service: MockService, client: FollowUp, receiving: Callable[[bool], None]
) -> None:
    for hour in range(6):
        new_patients(client, 40, first=40 * hour)
        service.advance(hours=2)
    assert inbox.catch_up(client) == CatchUpReport(seen=240, added=0)
    assert inbox.catch_up(client) == CatchUpReport(seen=40, added=0)


@pytest.mark.parametrize("is_stored", [False, True])
def test_a_time_in_the_future_hides_nothing(
    inbox: Desk,
    service: MockService,
    endpoint: WebhookEndpoint,
    client: FollowUp,
    database_url: str,
    *,
    is_stored: bool,
) -> None:
    """The service's clock was ahead for a moment; an earlier release has stored such a time."""
    inbox._clock = ManualTime(service.clock.now.timestamp())

    def advance(page: dict[str, Any]) -> None:
        for each in page["data"]:
            each["createdAt"] = each["createdAt"].replace("2026", "2027")

    new_patients(client, 1)
    with altered(service, advance) as ahead:
        assert inbox.catch_up(ahead, endpoint.id).added == 1
    if is_stored:
        with engine_of(database_url).begin() as connection:
            connection.execute(CURSORS.update().values(read_until_at=CURSORS.c.read_until_at + 10**12))
    new_patients(client, 1, first=1)
    assert inbox.catch_up(client).added == 1
    service.advance(days=1)
    new_patients(client, 1, first=2)
    assert inbox.catch_up(client) == CatchUpReport(seen=3, added=1)
    assert inbox.catch_up(client).seen == 1, "from here on it reads what is new"
