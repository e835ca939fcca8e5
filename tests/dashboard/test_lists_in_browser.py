"""The lists in a browser: tabs and filters apply at once, keep the focus, and survive live updates."""

from playwright.sync_api import Locator, Page, expect

from followup import FollowUp

from .conftest import ANA, Open


def tabs(tab: Page) -> Locator:
    return tab.locator("nav.tabs a")


def current(tab: Page) -> Locator:
    return tab.locator("nav.tabs a[aria-current]")


def book(client: FollowUp, count: int) -> list[str]:
    patient = client.patients.create(phone=ANA["phone"], full_name="Ana Díaz")
    return [
        client.appointments.create(patient=patient.id, start_at=f"2026-10-0{day}T12:00:00Z").id
        for day in range(1, count + 1)
    ]


def test_a_tab_applies_at_once_and_keeps_the_focus(tab: Page, go: Open, client: FollowUp) -> None:
    client.appointments.cancel(book(client, 3)[0])
    go("appointments")
    expect(current(tab)).to_have_text("All 3")
    tab.get_by_role("link", name="Cancelled 1").focus()
    tab.keyboard.press("Enter")
    expect(tab.get_by_role("row")).to_have_count(2)
    expect(tab.get_by_role("heading", level=1)).to_have_text("Appointments 1 of 3")
    expect(current(tab)).to_have_text("Cancelled 1")
    expect(current(tab)).to_be_focused()
    assert tab.url.endswith("#/appointments?status=cancelled")
    tab.keyboard.press("Shift+Tab")
    tab.keyboard.press("Enter")
    expect(tab.get_by_role("heading", level=1)).to_have_text("Appointments 0 of 3")
    tab.go_back()
    expect(current(tab)).to_have_text("Cancelled 1")
    expect(tab.get_by_role("row")).to_have_count(2)
    tab.reload()
    expect(tab.get_by_role("row")).to_have_count(2)


def test_the_filters_of_calls(tab: Page, go: Open, client: FollowUp) -> None:
    client.doctors.list()
    client.account.retrieve()
    go("calls")
    operation = tab.get_by_label("Operation")
    operation.focus()
    operation.select_option("account.retrieve")
    expect(tab.get_by_role("row")).to_have_count(2)
    expect(tab.get_by_role("heading", level=1)).to_have_text("API calls 1 of 2")
    expect(operation).to_be_focused()
    operation.select_option("")
    text = tab.get_by_label("Path, id, idempotency key or error code")
    text.fill("doctors")
    text.press("Enter")
    expect(tab.get_by_role("heading", level=1)).to_have_text("API calls 1 of 2")
    expect(text).to_be_focused()
    client.doctors.list()
    expect(tab.get_by_role("heading", level=1)).to_have_text("API calls 2 of 3")
    expect(text).to_have_value("doctors")
