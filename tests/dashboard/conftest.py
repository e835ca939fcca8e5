"""Fixtures: a real browser, and a mock with a clinic."""

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect
from support.browser import PATIENCE, chromium
from support.http import Api

from followup import FollowUp, WebhookEndpoint
from followup_mockserver import MockServer, MockService

from .html import Views

NOON = "2026-09-28T12:00:00Z"
HOOKS = "https://clinic.example/hooks"
ANA = {"phone": "+54 9 11 5555-0001", "full_name": "Ana <b>Pérez</b>", "external_id": "P-1"}

Open = Callable[[str], None]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    # Not for the whole session: while the browser is open, an event loop runs in this thread, which other tests need.
    with chromium() as opened:
        yield opened


@pytest.fixture
def mock() -> Iterator[MockServer]:
    """A mock whose webhook deliveries fail."""
    with MockServer(start_time=NOON, rate_limit=0, seed=1) as server:
        server.mount(HOOKS, lambda _: httpx.Response(500))
        yield server


@pytest.fixture
def service() -> MockService:
    """A mock in this process, for tests that need no browser."""
    return MockService(start_time=NOON, rate_limit=0, seed=1)


@pytest.fixture
def client(request: pytest.FixtureRequest) -> Iterator[FollowUp]:
    """A client of the mock that the test uses: ``mock`` if it has a browser, otherwise ``service``."""
    tested = request.getfixturevalue("mock" if "mock" in request.fixturenames else "service")
    with tested.client(max_retries=0) as client:
        yield client


@pytest.fixture
def views(service: MockService) -> Views:
    """The views of ``service``."""
    return Views(service)


@pytest.fixture
def api(views: Views) -> Api:
    """Requests to ``service``."""
    return views.api


@pytest.fixture
def tab(browser: Browser, mock: MockServer) -> Iterator[Page]:
    """An empty tab. At the end, its console must be empty, and it must not have sent requests to other hosts."""
    context = browser.new_context(base_url=f"{mock.url}/_mock/", viewport={"width": 1280, "height": 900})
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.clock.set_system_time(NOON)  # the page names the year of the mock's clock if it is not that of real time
    unexpected: list[str] = []
    page.on("console", lambda message: unexpected.append(message.text))
    page.on("pageerror", lambda error: unexpected.append(str(error)))
    page.on("request", lambda request: unexpected.append(request.url) if not request.url.startswith(mock.url) else None)
    yield page
    context.close()
    assert unexpected == []


@pytest.fixture
def go(tab: Page) -> Open:
    """Return a function that opens a view and waits until it is shown."""

    def open_view(view: str) -> None:
        tab.goto(f"./#/{view}")
        expect(tab.locator("#live")).to_be_attached()

    return open_view


def expect_report(tab: Page, text: str) -> None:
    expect(tab.get_by_role("status")).to_have_text(text)


def fill(client: FollowUp, mock: MockService | MockServer, text: str) -> WebhookEndpoint:
    """Create an object of every kind, with a text wherever a caller may write one; return the endpoint."""
    endpoint = client.webhook_endpoints.create(url=HOOKS, enabled_events=["*"], description=text)
    mock.add_doctor(full_name=text, specialty=text, external_id=text)
    patient: Any = {"phone": ANA["phone"], "full_name": text, "external_id": text, "dni": text}
    named: Any = {"external_id": text, "doctor": {"external_id": text}, "type": text}
    booked = client.appointments.create(patient=patient, start_at="2026-10-01T12:00:00Z", **named)
    client.visits.create(patient=booked.patient, visited_at="2026-09-28T11:00:00Z", external_id=text, diagnosis=text)
    client.treatments.create(patient=booked.patient, name=text, dosage=text, frequency=text)
    client.intake_requests.create(patient={"phone": ANA["phone"]}, summary=text, address=text)
    invalid: Any = {"id": f"{text}2", "type": "patient.upserted", "data": {"patient": {"phone": "1"}}}
    client.events.create([{"id": text, "type": "order.issued", "data": {f"key{text}": text}}, invalid])
    return endpoint
