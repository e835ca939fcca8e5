"""The page of a webhook endpoint: whether its receiver works, its deliveries, and the other endpoints."""

import httpx

from followup import FollowUp
from followup_mockserver import MockService

from .conftest import ANA, HOOKS
from .html import Views, text_of


def page(client: FollowUp, url: str = HOOKS, *types: str) -> str:
    return f"webhook_endpoints/{client.webhook_endpoints.create(url=url, enabled_events=types or ['*']).id}"


def verdict(service: MockService, path: str) -> str:
    return text_of(Views(service).section(path, "verdict"))


def test_before_the_first_attempt_it_says_how_to_make_one(service: MockService, client: FollowUp) -> None:
    path = page(client)
    assert verdict(service, path) == (
        "No attempt yet Nothing has happened that it is subscribed to. To send a test event: "
        f'client.webhook_endpoints.ping("{path.partition("/")[2]}")'
    )
    client.patients.create(phone=ANA["phone"])
    assert verdict(service, path) == "No attempt yet Pending: 1."
    nowhere = page(client, "https://nowhere.example/")
    client.patients.update(service.deliveries[0].payload["ref"], full_name="Ana")
    service.mount(HOOKS, lambda _: httpx.Response(204))
    service.advance()
    assert "1 attempt in a row failed. Nothing was ever delivered. Pending: 1 ." in verdict(service, nowhere)
    service.advance(minutes=3)
    assert verdict(service, path) == "OK: last delivered 2026-09-28 12:00:00Z"


def test_a_receiver_that_fails(service: MockService, client: FollowUp) -> None:
    replies = [204, 500]
    service.mount(
        HOOKS, lambda _: httpx.Response(replies.pop(0) if len(replies) > 1 else 500, text="database is locked")
    )
    path = page(client)
    client.patients.create(phone=ANA["phone"])
    service.advance(minutes=1)
    client.patients.create(phone="+5491155550002")
    client.patients.create(phone="+5491155550003")
    service.advance(minutes=2)
    assert verdict(service, path) == (
        "Failing since 2026-09-28 12:01:00Z : 500 database is locked "
        "4 attempts in a row failed. Last delivered 2026-09-28 12:00:00Z . Pending: 2 ."
    )
    service.mount(HOOKS, lambda _: httpx.Response(204))
    service.advance(minutes=6)
    assert verdict(service, path).startswith("OK: ")


def test_a_disabled_endpoint_says_how_to_enable_it(service: MockService, client: FollowUp) -> None:
    path = page(client)
    endpoint = path.partition("/")[2]
    client.webhook_endpoints.update(endpoint, disabled=True)
    assert verdict(service, path) == (
        "Disabled It receives nothing, and events that happen now are not delivered later. To enable it: "
        f'client.webhook_endpoints.update("{endpoint}", disabled=False)'
    )
    html = Views(service).html(path)
    assert f'id="url">{HOOKS}<' in html
    assert "whsec_" not in html
