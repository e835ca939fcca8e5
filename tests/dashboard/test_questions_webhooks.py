"""Questions about webhooks that did not arrive: the clicks from the first page to the reason, and what one sees.

Each test begins at the overview. Its comments number the clicks.
"""

import re

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from followup import FollowUp, WebhookSignatureError, verify_signature
from followup_mockserver import MockServer

from .conftest import HOOKS, Open

OTHER, OLD = "https://pms.example/hooks", "https://old.example/hooks"


def menu(tab: Page, name: str) -> Locator:
    return tab.get_by_role("navigation", name="Views").get_by_role("link", name=name)


def test_why_did_my_webhook_not_arrive_the_receiver_fails(
    tab: Page, go: Open, mock: MockServer, client: FollowUp
) -> None:
    locked = {"error": "database is locked"}
    mock.mount(HOOKS, lambda _: httpx.Response(500, json=locked, headers={"Server": "gunicorn"}))
    client.webhook_endpoints.create(url=HOOKS, enabled_events=["*"])
    client.patients.create(phone="+5491155550001", full_name="Ana Díaz")
    mock.advance(hours=1)
    go("overview")
    menu(tab, "Deliveries").click()  # 1
    tab.get_by_role("row", name="Ana Díaz").get_by_role("link", name="patient.upserted").click()  # 2
    verdict = tab.get_by_role("region", name="Not delivered yet: patient.upserted to https://clinic.example/hooks")
    expect(verdict).to_contain_text("Attempt 4 of 9 failed: 500 database is locked.")
    expect(verdict).to_contain_text(re.compile(r"Next attempt 28 Sep 11:36.*, in 1 h 36 min\."))
    expect(verdict.get_by_role("link", name="Ana Díaz")).to_be_visible()
    attempts = tab.get_by_role("region", name="Attempts")
    response = attempts.locator("div.response")
    expect(response.get_by_text("HTTP/1.1 500 Internal Server Error")).to_be_visible()
    expect(response.get_by_text('"error": "database is locked"')).to_be_visible()
    expect(attempts.get_by_text("Attempts 1 to 3")).to_be_visible()
    response.locator("summary", has_text="Response headers").click()  # 3
    expect(response.get_by_role("cell", name="gunicorn")).to_be_visible()


def test_why_did_my_webhook_not_arrive_no_endpoint_listens(tab: Page, go: Open, client: FollowUp) -> None:
    client.webhook_endpoints.create(url=OTHER, enabled_events=["visit.completed"])
    old = client.webhook_endpoints.create(url=OLD, enabled_events=["*"])
    client.webhook_endpoints.update(old.id, disabled=True)
    client.patients.create(phone="+5491155550001", full_name="Ana Díaz")
    go("overview")
    menu(tab, "Outbound events").click()  # 1
    row = tab.get_by_role("row", name="Ana Díaz")
    expect(row).to_contain_text("not sent: 1 disabled, 1 not subscribed")
    row.get_by_role("link", name="patient.upserted").click()  # 2
    receipts = tab.get_by_role("region", name="What became of it").get_by_role("listitem")
    expect(receipts.filter(has_text="pms.example/hooks")).to_contain_text("not sent not subscribed to patient.upserted")
    disabled = receipts.filter(has_text="old.example/hooks")
    expect(disabled).to_contain_text("not sent the endpoint was disabled")
    disabled.get_by_role("link").click()  # 3
    expect(tab.get_by_role("region", name="Disabled")).to_contain_text(
        f'client.webhook_endpoints.update("{old.id}", disabled=False)'
    )


def test_why_did_my_webhook_not_arrive_there_is_no_endpoint(tab: Page, go: Open, client: FollowUp) -> None:
    client.patients.create(phone="+5491155550001", full_name="Ana Díaz")
    go("overview")
    menu(tab, "Outbound events").click()  # 1
    expect(tab.get_by_role("row", name="Ana Díaz")).to_contain_text("not sent: there is no webhook endpoint")
    tab.get_by_role("link", name="Not sent to anyone 1").click()  # 2: also among many others
    expect(tab.get_by_role("heading", level=1)).to_have_text("Outbound events 1")
    expect(tab.get_by_role("row", name="Ana Díaz")).to_be_visible()


def test_the_explanation_of_a_rejected_signature_is_shown_on_a_phone(
    tab: Page, go: Open, mock: MockServer, client: FollowUp
) -> None:
    mock.mount(HOOKS, lambda _: httpx.Response(400))
    client.webhook_endpoints.create(url=HOOKS, enabled_events=["*"])
    client.patients.create(phone="+5491155550001")
    mock.advance()
    tab.set_viewport_size({"width": 390, "height": 844})
    go(f"webhook_deliveries/{mock.deliveries[0].id}")
    expect(tab.get_by_role("region", name="Did your receiver reject the signature?")).to_be_visible()


@pytest.mark.parametrize("is_fault", [False, True], ids=["wrong secret", "webhook fault"])
def test_why_did_my_webhook_not_arrive_my_receiver_rejects_the_signature(
    tab: Page, go: Open, mock: MockServer, client: FollowUp, is_fault: bool
) -> None:
    mine = client.webhook_endpoints.create(url=HOOKS, enabled_events=["*"]).secret or ""
    other = client.webhook_endpoints.create(url=OTHER, enabled_events=["visit.completed"]).secret or ""
    configured = mine if is_fault else other

    def receive(request: httpx.Request) -> httpx.Response:
        try:
            verify_signature(request.content, request.headers, configured)
        except WebhookSignatureError:
            return httpx.Response(400, json={"detail": "invalid signature"})
        return httpx.Response(204)

    mock.mount(HOOKS, receive)
    if is_fault:
        mock.disturb(kind="wrong_signature")
    client.patients.create(phone="+5491155550001", full_name="Ana Díaz")
    mock.advance()
    go("overview")
    menu(tab, "Deliveries").click()  # 1
    tab.get_by_role("row", name="Ana Díaz").get_by_role("link", name="patient.upserted").click()  # 2
    expect(tab.get_by_role("region", name="Not delivered yet")).to_contain_text("failed: 400 invalid signature.")
    hint = tab.get_by_role("region", name="Did your receiver reject the signature?")
    expect(hint).to_contain_text("which is the real time of sending, not the time of the mock's clock")
    on_purpose = "A webhook fault signed the first attempt with another secret on purpose."
    if is_fault:
        expect(hint).to_contain_text(on_purpose)
        return
    expect(hint).not_to_contain_text(on_purpose)
    hint.get_by_role("button", name="Verify an attempt with a secret").click()  # 3
    expect(tab.get_by_label("Signing secret")).to_be_focused()
    tab.keyboard.type(configured)
    tab.keyboard.press("Enter")
    expect(tab.locator("output")).to_contain_text("this attempt was not signed with this secret")
    tab.get_by_label("Signing secret").fill(mine)
    tab.keyboard.press("Enter")
    expect(tab.locator("output")).to_contain_text("this attempt was signed with this secret")
