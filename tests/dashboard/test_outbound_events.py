"""The list of outbound events, also of those that nobody received, and the page of one."""

import re

import httpx
import pytest

from followup import FollowUp
from followup_mockserver import MockService

from .conftest import ANA
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
    return [(row["type"], row["about"], row["result"]) for row in views.rows(path)]


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


def test_filters(service: MockService, client: FollowUp, views: Views) -> None:
    client.patients.create(phone=ANA["phone"], full_name="Nobody")
    up = endpoint(client, UP)
    client.patients.create(phone="+5491155550002", full_name="Up")
    service.advance()
    client.webhook_endpoints.update(up, disabled=True)
    endpoint(client, DOWN)
    client.patients.create(phone="+5491155550003", full_name="Down")
    service.advance(days=3)
    client.patients.create(phone="+5491155550004", full_name="Waiting")
    assert views.tabs(VIEW) == {"All": 4, "Not sent": 1, "Pending": 1, "Failed": 1, "Stopped": 0, "Delivered": 1}
    everything = ["Waiting", "Down", "Up", "Nobody"]
    one_of_each = {"not_sent": ["Nobody"], "pending": ["Waiting"], "failed": ["Down"], "delivered": ["Up"]}
    for show, names in {"": everything, "nonsense": everything, **one_of_each}.items():
        assert [about for _, about, _ in became(views, f"{VIEW}?show={show}")] == names
