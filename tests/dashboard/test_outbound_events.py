"""The list of outbound events, also of those that nobody received, and the page of one."""

import re

import httpx
import pytest

from followup import FollowUp
from followup_mockserver import MockService

from .conftest import ANA, NOON
from .html import Views, text_of

UP, DOWN = "https://up.example/hooks", "https://down.example/hooks"
VIEW = "outbound_events"


@pytest.fixture
def service(service: MockService) -> MockService:
    service.mount(UP, lambda _: httpx.Response(204))
    service.mount(DOWN, lambda _: httpx.Response(500))
    return service


def endpoint(client: FollowUp, url: str, *types: str) -> str:
    return client.webhook_endpoints.create(url=url, enabled_events=types or ["*"]).id


def became(views: Views, path: str = VIEW) -> list[tuple[str, str, str]]:
    """Return type, object and result of each event in the list."""
    return [(row["type"], row["about"], row["what became of it"]) for row in views.rows(path)]


def test_each_endpoint_counts(service: MockService, client: FollowUp, views: Views) -> None:
    endpoint(client, UP)
    endpoint(client, DOWN)
    endpoint(client, "https://visits.example/hooks", "visit.completed")
    client.webhook_endpoints.update(endpoint(client, "https://old.example/hooks"), disabled=True)
    client.patients.create(phone=ANA["phone"], full_name="Ana Díaz")
    service.advance()
    assert became(views) == [
        ("patient.upserted", "Ana Díaz", "1 pending 1 delivered not sent: 1 disabled, 1 not subscribed")
    ]
    service.advance(days=3)
    assert became(views)[0][2] == "1 failed 1 delivered not sent: 1 disabled, 1 not subscribed"


def test_nobody_is_subscribed(client: FollowUp, views: Views) -> None:
    ana = client.patients.create(phone=ANA["phone"], full_name="Ana")
    assert became(views) == [("patient.upserted", "Ana", "not sent: there is no webhook endpoint")]
    endpoint(client, UP, "visit.completed")
    client.patients.update(ana.id, full_name="Ana Díaz")
    assert became(views)[0][2] == "not sent: not subscribed"
    endpoint(client, DOWN, "visit.completed")
    client.patients.create(phone="+5491155550002", full_name="Eva")
    assert became(views)[0] == ("patient.upserted", "Eva", "not sent: 2 not subscribed")


def test_a_deleted_endpoint(service: MockService, client: FollowUp, views: Views) -> None:
    deleted = endpoint(client, UP)
    client.patients.create(phone=ANA["phone"])
    client.webhook_endpoints.delete(deleted)
    assert became(views)[0][2] == "1 deleted with the endpoint"
    assert re.search(
        r"we_\S+ \S+ \S+ \(deleted\): deleted with the endpoint", views.text(views.link(VIEW, "patient.upserted"))
    )


def test_a_ping_and_a_triggered_event_are_in_the_list(service: MockService, client: FollowUp, views: Views) -> None:
    client.webhook_endpoints.ping(endpoint(client, UP))
    service.trigger(type="patient.silent")
    types = [event_type for event_type, _, _ in became(views)]
    assert types[0] == "patient.silent"
    assert "webhook.ping" in types


def test_the_newest_is_first_and_the_cause_is_named(client: FollowUp, views: Views) -> None:
    first = client.patients.create(phone=ANA["phone"], full_name="Ana")
    client.patients.create(phone="+5491155550002", full_name="Eva")
    assert [about for _, about, _ in became(views)] == ["Eva", "Ana"]
    assert first.last_response.request_id is not None
    assert f'href="#/calls/{first.last_response.request_id}"' in views.html(VIEW)


class TestFilters:
    @pytest.fixture(autouse=True)
    def events(self, service: MockService, client: FollowUp) -> None:
        """One event of each result: not sent, delivered, failed, pending."""
        client.patients.create(phone=ANA["phone"], full_name="Nobody")
        up = endpoint(client, UP)
        client.patients.create(phone="+5491155550002", full_name="Up")
        service.advance()
        client.webhook_endpoints.update(up, disabled=True)
        endpoint(client, DOWN)
        client.patients.create(phone="+5491155550003", full_name="Down")
        service.advance(days=3)
        client.patients.create(phone="+5491155550004", full_name="Waiting")

    @pytest.mark.parametrize(
        ("show", "names"),
        [
            ("", ["Waiting", "Down", "Up", "Nobody"]),
            ("not_sent", ["Nobody"]),
            ("pending", ["Waiting"]),
            ("failed", ["Down"]),
            ("delivered", ["Up"]),
            ("nonsense", ["Waiting", "Down", "Up", "Nobody"]),
        ],
    )
    def test_each_shows_its_events(self, views: Views, show: str, names: list[str]) -> None:
        assert views.tabs(VIEW) == {"All": 4, "Not sent": 1, "Pending": 1, "Failed": 1, "Stopped": 0, "Delivered": 1}
        assert [about for _, about, _ in became(views, f"{VIEW}?show={show}")] == names

    def test_by_type(self, client: FollowUp, views: Views) -> None:
        patient = client.patients.list(phone=ANA["phone"]).data[0]
        client.visits.create(patient=patient.id, visited_at=NOON)
        assert [each[0] for each in became(views, f"{VIEW}?type=visit.completed")] == ["visit.completed"]
        html = views.html(VIEW)
        assert re.findall(r"<option[^>]*>([^<]*)</option>", html) == [
            "all (5)",
            "patient.upserted (4)",
            "visit.completed (1)",
            "all (5)",
            "2026-09-28 (3)",
            "2026-10-01 (2)",
        ]
        assert views.text(f"{VIEW}?show=failed&type=visit.completed").count("None of 5 matches the filters.") == 1
        assert "visit.completed (0)" in views.text(f"{VIEW}?show=failed&type=visit.completed")

    def test_both_filters_are_kept_in_links(self, views: Views) -> None:
        html = views.html(f"{VIEW}?show=pending&type=patient.upserted")
        assert 'href="#/outbound_events?show=failed&amp;type=patient.upserted"' in html
        assert '<input type="hidden" name="show" value="pending">' in html


class TestPaging:
    def test_pages_of_50(self, client: FollowUp, views: Views) -> None:
        for number in range(52):
            client.patients.create(phone=f"+54911555500{number:02}", full_name=f"No. {number}")
            assert number != 49 or ">Older<" not in views.html(VIEW)
        assert [about for _, about, _ in became(views)][::49] == ["No. 51", "No. 2"]
        older = views.link(VIEW, "Older")
        assert [about for _, about, _ in became(views, older)] == ["No. 1", "No. 0"]
        assert views.link(older, "Newest") == VIEW
        assert len(became(views, f"{VIEW}?after=gone")) == 50


class TestPage:
    def test_each_endpoint_with_its_delivery_or_the_reason(
        self, service: MockService, client: FollowUp, views: Views
    ) -> None:
        endpoint(client, UP)
        endpoint(client, DOWN)
        endpoint(client, "https://visits.example/hooks", "visit.completed")
        client.webhook_endpoints.update(endpoint(client, "https://old.example/hooks"), disabled=True)
        client.patients.create(phone=ANA["phone"], full_name="Ana Díaz")
        service.advance()
        html = views.html(views.link(VIEW, "patient.upserted"))
        lines = [text_of(each) for each in re.findall(r"<li data-key[^>]*>(.*?)</li>", html, re.DOTALL)]
        shown = {line.partition(" ")[0]: line.partition(": ")[2] for line in lines}
        assert shown == {
            "up.example/hooks": "delivered",
            "down.example/hooks": "pending next attempt 2026-09-28 12:01:00Z 500 Internal Server Error",
            "visits.example/hooks": "not sent not subscribed to patient.upserted",
            "old.example/hooks": "not sent the endpoint was disabled",
        }
        for delivery in service.deliveries:
            assert f'href="#/webhook_deliveries/{delivery.id}"' in html

    def test_events_about_one_object_have_pages_of_their_own(self, client: FollowUp, views: Views) -> None:
        patient = client.patients.create(phone=ANA["phone"], full_name="Ana")
        first = views.link(VIEW, "patient.upserted")
        endpoint(client, UP)
        client.patients.update(patient.id, full_name="Ana Díaz")
        assert views.link(VIEW, "patient.upserted") != first
        assert "there is no webhook endpoint" in views.text(first)
        assert "first attempt" in views.text(views.link(VIEW, "patient.upserted"))

    def test_an_unknown_one_is_not_found(self, views: Views) -> None:
        response = views.api.get("/_mock/views/outbound_events/pat_x.patient.upserted.1")
        assert response.status_code == 404
        assert "There is no such outbound event." in response.text
