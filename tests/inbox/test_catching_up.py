"""``catch_up`` adds the events that never arrived, and no others."""

import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from support.databases import engine_of, execute
from support.times import ManualTime

from followup import AsyncFollowUp, FollowUp, NotFoundError
from followup.inbox import CatchUpReport, Inbox, Received
from followup.inbox.arrivals import CURSORS
from followup_mockserver import MockService

from .conftest import Desk, write

URL = "https://clinic.example/webhooks"


class Clinic:
    """A service with one endpoint, and the inbox of its receiver.

    Attributes:
        client: a client of the service.
        endpoint: the endpoint, whose receiver is off until it is switched on.
    """

    def __init__(self, service: MockService, client: FollowUp, inbox: Desk, database_url: str) -> None:
        self.service, self.client, self.inbox = service, client, inbox
        self.endpoint = client.webhook_endpoints.create(url=URL, enabled_events=["patient.upserted"])
        self._receiver = Inbox(database_url, secret=self.endpoint.secret)
        self._patients = 0
        self.switch(False)
        inbox.otherwise(write)

    def switch(self, is_on: bool) -> None:
        """Switch the receiver on or off."""
        self.service.mount(URL, self._receiver.wsgi_app if is_on else lambda _: httpx.Response(503))

    def new_patients(self, count: int, **elapsed: float) -> None:
        """Create patients, and let so much time pass."""
        for _ in range(count):
            self.client.patients.create(phone=f"+54 9 11 5555-{self._patients:04}")
            self._patients += 1
        if elapsed:
            self.service.advance(**elapsed)

    def catch_up(self, since: datetime | None = None) -> CatchUpReport:
        return self.inbox.catch_up(self.client, since=since)

    def catch_up_with(self, alter: Callable[[dict[str, Any]], None]) -> int:
        """Catch up while the pages of deliveries are altered on their way; return how many events were added."""
        wsgi = httpx.WSGITransport(self.service._wsgi_app)

        class Transport(httpx.BaseTransport):
            def handle_request(self, request: httpx.Request) -> httpx.Response:
                response = wsgi.handle_request(request)
                response.read()
                if not request.url.path.endswith("/webhook_deliveries"):
                    return response
                page = response.json()
                alter(page)
                return httpx.Response(200, json=page)

        with httpx.Client(transport=Transport()) as http:
            client = FollowUp(api_key="fu_test_mock", base_url="http://mock.example", http_client=http)
            return self.inbox.catch_up(client, self.endpoint.id).added

    def close(self) -> None:
        self._receiver.close()


@pytest.fixture
def clinic(inbox: Desk, database_url: str) -> Iterator[Clinic]:
    with MockService(start_time="2026-09-28T12:00:00Z", rate_limit=0) as service, service.client() as client:
        clinic = Clinic(service, client, inbox, database_url)
        yield clinic
        clinic.close()


def ids_of_deliveries(clinic: Clinic) -> list[str]:
    return sorted(each.id for each in clinic.service.deliveries)


def test_after_four_days_of_outage_nothing_is_missing(clinic: Clinic, inbox: Desk) -> None:
    clinic.switch(True)
    clinic.new_patients(3, seconds=1)
    clinic.switch(False)
    clinic.new_patients(250, days=4)
    assert {each.status for each in clinic.service.deliveries} == {"succeeded", "failed"}
    clinic.switch(True)
    clinic.new_patients(2, seconds=1)
    assert clinic.catch_up() == CatchUpReport(seen=255, added=250)
    assert clinic.catch_up().added == 0
    assert [inbox.drain().done for _ in range(2)] == [255, 0]
    assert sorted(inbox.written()) == ids_of_deliveries(clinic)


def test_events_that_were_fetched_are_like_those_that_were_pushed(clinic: Clinic, inbox: Desk) -> None:
    seen: list[Received] = []
    inbox.on("patient.upserted")(seen.append)
    for number, name in enumerate(("Ana Núñez", "Juan Peña")):
        clinic.client.patients.create(phone=f"+54 9 11 5555-000{number}", full_name=name)
    clinic.service.advance(days=4)
    clinic.catch_up()
    inbox.drain()
    assert [each.event.data["patient"]["fullName"] for each in seen] == ["Ana Núñez", "Juan Peña"], "oldest first"
    assert [each.event.to_dict() for each in seen][::-1] == [
        {**each.event.to_dict(), "id": delivery.id}
        for each, delivery in zip(seen[::-1], clinic.client.webhook_deliveries.list(), strict=True)
    ]


def test_a_database_that_was_restored_from_a_backup_is_completed(clinic: Clinic, inbox: Desk, sqlite_url: str) -> None:
    path = sqlite_url.removeprefix("sqlite:///")
    clinic.switch(True)
    clinic.new_patients(2, seconds=1)
    clinic.catch_up()
    shutil.copy(path, f"{path}.backup")
    clinic.new_patients(3, days=2)
    clinic.catch_up()
    shutil.copy(f"{path}.backup", path)
    assert inbox.status().waiting == 2
    assert clinic.catch_up().added == 3


def test_what_arrives_meanwhile_is_not_counted_as_missed(clinic: Clinic, caplog: pytest.LogCaptureFixture) -> None:
    clinic.new_patients(150)
    pages: list[Any] = []

    def let_all_arrive(page: dict[str, Any]) -> None:
        pages.append(page)
        if len(pages) == 2:
            assert clinic.catch_up().added == 150
            caplog.clear()

    assert clinic.catch_up_with(let_all_arrive) == 0
    assert not caplog.messages


def test_later_calls_read_only_what_is_new_with_an_overlap(clinic: Clinic) -> None:
    clinic.new_patients(5, hours=2)
    clinic.new_patients(3)
    assert clinic.catch_up().seen == 8
    clinic.service.advance(minutes=30)
    clinic.new_patients(1)
    assert clinic.catch_up().seen == 4, "those of the last hour are read again"
    clinic.service.advance(hours=3)
    clinic.new_patients(1)
    assert [clinic.catch_up().seen for _ in range(2)] == [5, 1]


def test_a_pushed_event_does_not_hide_an_older_one_that_never_arrived(clinic: Clinic, inbox: Desk) -> None:
    assert clinic.catch_up() == CatchUpReport(seen=0, added=0)
    clinic.new_patients(1, days=4)
    clinic.switch(True)
    clinic.new_patients(1, hours=5)
    assert inbox.status().waiting == 1
    assert clinic.catch_up().added == 1


def test_a_delivery_that_appears_late_in_the_list_is_found(clinic: Clinic) -> None:
    """The list lags: a delivery shows up after one that was created later."""
    clinic.new_patients(1, minutes=1)
    clinic.new_patients(1)
    _, older = clinic.client.webhook_deliveries.list()
    hidden = {older.id}

    def lag(page: dict[str, Any]) -> None:
        page["data"] = [each for each in page["data"] if each["id"] not in hidden]

    assert clinic.catch_up_with(lag) == 1
    hidden.clear()
    assert clinic.catch_up_with(lag) == 1


def test_a_walk_that_ends_early_is_repeated_in_full(clinic: Clinic) -> None:
    """The second page is empty at first; all of it is read again by the next call, hours later."""
    clinic.new_patients(150, days=1)
    clinic.new_patients(1)
    pages: list[Any] = []

    def empty_the_second(page: dict[str, Any]) -> None:
        pages.append(page)
        if len(pages) == 2:
            page.update(data=[], hasMore=False)

    assert [clinic.catch_up_with(empty_the_second) for _ in range(2)] == [100, 51]


def test_a_payload_that_is_no_event_is_skipped_and_read_again(clinic: Clinic, caplog: pytest.LogCaptureFixture) -> None:
    clinic.new_patients(2, days=1)

    def damage(page: dict[str, Any]) -> None:
        del page["data"][1]["payload"]["occurredAt"]

    assert clinic.catch_up_with(damage) == 1
    assert "is not stored, and read again next time: " in caplog.text
    assert "5555" not in caplog.text
    assert clinic.catch_up().added == 1


def test_since_bounds_what_is_added(clinic: Clinic) -> None:
    clinic.new_patients(2, hours=1)
    boundary = datetime(2026, 9, 28, 13, tzinfo=UTC)
    clinic.new_patients(3)
    assert clinic.catch_up(since=boundary) == CatchUpReport(seen=3, added=3)
    clinic.service.advance(days=31)
    clinic.new_patients(1)
    assert clinic.catch_up(since=boundary + timedelta(days=1)) == CatchUpReport(seen=1, added=1)


@pytest.mark.parametrize("handled_first", [0, 2])
def test_a_purge_hides_nothing_that_never_arrived_and_repeats_nothing_that_did(
    clinic: Clinic, inbox: Desk, handled_first: int
) -> None:
    """A purge whose age is shorter than an outage runs before the outage is caught up."""
    clock = inbox._clock = ManualTime(clinic.service.clock.now.timestamp())
    clinic.switch(True)
    clinic.new_patients(handled_first, seconds=1)
    assert inbox.drain().done == handled_first
    clinic.switch(False)
    clinic.new_patients(3, days=4)
    clock.advance(4 * 86_400)
    assert inbox.purge(older_than=timedelta(days=1)) == handled_first
    clinic.switch(True)
    clinic.new_patients(1, seconds=1)
    assert clinic.catch_up().added == 3
    assert inbox.drain().done == 4
    assert clinic.catch_up(since=datetime(2026, 1, 1, tzinfo=UTC)).added == 0
    assert sorted(inbox.written()) == ids_of_deliveries(clinic), "each of them once"


def test_several_endpoints_must_be_told_apart(clinic: Clinic, inbox: Desk) -> None:
    client, endpoint = clinic.client, clinic.endpoint
    other = client.webhook_endpoints.create(url=f"{URL}/b?token=hidden", enabled_events=["patient.upserted"])
    clinic.new_patients(1)
    with pytest.raises(ValueError, match="webhook_endpoint must name one of") as caught:
        clinic.catch_up()
    assert endpoint.id in str(caught.value)
    assert f"{other.id} ({URL}/b)" in str(caught.value)
    assert inbox.catch_up(client, webhook_endpoint=other.id).added == 1
    assert inbox.catch_up(client, endpoint.id).added == 1, "it has another id there, and a cursor of its own"


def test_no_endpoint_and_one_that_does_not_exist_are_errors(clinic: Clinic, inbox: Desk) -> None:
    with pytest.raises(NotFoundError):
        inbox.catch_up(clinic.client, "we_missing")
    clinic.client.webhook_endpoints.delete(clinic.endpoint.id)
    with pytest.raises(ValueError, match="webhook_endpoint: the organization has none"):
        clinic.catch_up()


def test_a_naive_since_and_an_async_client_are_errors(clinic: Clinic, inbox: Desk) -> None:
    with pytest.raises(ValueError, match=r"^since is a naive datetime: pass one with a time zone"):
        clinic.catch_up(since=datetime(2026, 9, 28))  # noqa: DTZ001
    with pytest.raises(ValueError, match=r"^since must be an aware datetime, not a str$"):
        clinic.catch_up(since="2026-09-28T12:00:00Z")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="client must be a FollowUp, not AsyncFollowUp"):
        inbox.catch_up(AsyncFollowUp(api_key="fu_test_mock", base_url=URL))  # type: ignore[arg-type]


def test_a_later_since_hides_nothing_from_the_next_call(clinic: Clinic) -> None:
    clinic.switch(True)
    clinic.new_patients(1, seconds=1)
    clinic.catch_up()
    clinic.switch(False)
    clinic.new_patients(5, days=4)
    clinic.new_patients(1)
    assert clinic.catch_up(since=clinic.service.clock.now - timedelta(hours=3)).added == 1
    assert clinic.catch_up().added == 5


@pytest.mark.parametrize("is_stored", [False, True])
def test_a_time_in_the_future_hides_nothing(clinic: Clinic, inbox: Desk, database_url: str, *, is_stored: bool) -> None:
    """The service's clock was ahead for a moment; an earlier release has stored such a time."""
    inbox._clock = ManualTime(clinic.service.clock.now.timestamp())

    def advance(page: dict[str, Any]) -> None:
        for each in page["data"]:
            each["createdAt"] = each["createdAt"].replace("2026", "2027")

    clinic.new_patients(1)
    assert clinic.catch_up_with(advance) == 1
    if is_stored:
        execute(engine_of(database_url), f"UPDATE {CURSORS.name} SET read_until_at = read_until_at + 1000000000000")
    clinic.new_patients(1)
    assert clinic.catch_up().added == 1
    clinic.service.advance(days=1)
    clinic.new_patients(1)
    assert clinic.catch_up() == CatchUpReport(seen=3, added=1)
    assert clinic.catch_up().seen == 1, "from here on it reads what is new"
