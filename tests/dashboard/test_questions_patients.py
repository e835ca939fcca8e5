"""Questions about patients and their reminders that the dashboard answers: the clicks, and what one then sees."""

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from followup import FollowUp
from followup_mockserver import MockServer

from .conftest import HOOKS, Open

pytestmark = pytest.mark.nightly

ANA = {"phone": "+5491155550001", "full_name": "Ana Díaz"}


def view(tab: Page, name: str) -> None:
    tab.get_by_role("navigation", name="Views").get_by_role("link", name=name).click()
    expect(tab.get_by_role("heading", level=1)).to_contain_text(name)


def phone(tab: Page) -> Locator:
    return tab.get_by_role("group", name="The patient's phone")


def instants(line: Locator) -> list[str]:
    """Return the times that a line shows, UTC, as month, day, hour and minute."""
    times = line.locator("time").evaluate_all("times => times.map((time) => time.dateTime)")
    return [time[5:16].replace("T", " ") for time in times]


def entries(tab: Page) -> Locator:
    return tab.get_by_role("region", name="Timeline").locator(".timeline > li")


def test_why_was_this_patient_reminded_twice(tab: Page, go: Open, client: FollowUp, mock: MockServer) -> None:
    """Two clicks: Patients, the patient. Each bubble says which reminder it is, and of which start."""
    client.appointments.create(patient=ANA, start_at="2026-10-01T17:30:00Z")  # type: ignore[arg-type]
    mock.advance(days=4)
    go("overview")
    view(tab, "Patients")
    tab.get_by_role("link", name="Ana Díaz").click()
    expect(tab.get_by_role("heading", level=1)).to_have_text("Ana Díaz")
    bubbles = phone(tab).locator(".bubble")
    expect(bubbles).to_have_count(2)
    for bubble, which, sent in zip(
        bubbles.all(),
        ("reminder 24 h before the start of the appointment of", "reminder 3 h before the start of the appointment of"),
        ("09-30 17:30", "10-01 14:30"),
        strict=True,
    ):
        expect(bubble).to_contain_text("Le recordamos su turno del 01/10/2026 a las 14:30")
        expect(bubble).to_contain_text(which)
        expect(bubble.get_by_role("link", name="appointments.create")).to_be_visible()
        assert instants(bubble) == ["10-01 17:30", "09-28 12:00", sent]  # the start, when it was planned, and sent


def test_why_was_this_patient_not_reminded(tab: Page, go: Open, client: FollowUp, mock: MockServer) -> None:
    """Search for the name: the reminders that were not sent stand on the phone, with the reasons."""
    late = client.appointments.create(patient=ANA, start_at="2026-09-28T14:00:00Z")  # type: ignore[arg-type]
    first = client.appointments.create(patient=late.patient, start_at="2026-09-29T14:00:00Z")
    cancelled = client.appointments.create(patient=late.patient, start_at="2026-10-05T14:00:00Z")
    mock.update_patient(late.patient, opted_out=True)
    mock.advance(hours=3)
    client.appointments.update(first.id, start_at="2026-10-04T14:00:00Z")
    client.appointments.cancel(cancelled.id)
    go("overview")
    tab.get_by_role("searchbox").fill("ana")
    tab.get_by_role("searchbox").press("Enter")
    expect(tab.get_by_text("opted out of messages")).to_be_visible()
    reasons = phone(tab).locator(".bubble.muted")
    expect(reasons).to_have_count(8)
    for reason, count in (
        ("not scheduled: 24 h before the start was already past", 1),
        ("not scheduled: 3 h before the start was already past", 1),
        ("not sent: the patient has opted out", 1),
        ("will not be sent: the patient has opted out", 2),
        ("moved: the appointment now starts at", 1),
        ("cancelled: the appointment was cancelled", 2),
    ):
        expect(reasons.filter(has_text=reason)).to_have_count(count)


def test_what_happened_while_i_moved_the_clock_by_a_day(
    tab: Page, go: Open, client: FollowUp, mock: MockServer
) -> None:
    """Two clicks: +1 d, Show what ran. The jobs of the run stand in groups, each with its object and outcome."""
    responses = iter([500, 204])
    mock.mount(HOOKS, lambda _: httpx.Response(next(responses, 204)))
    client.webhook_endpoints.create(url=HOOKS, enabled_events=["visit.completed"])
    booked = client.appointments.create(patient=ANA, start_at="2026-09-29T17:00:00Z")  # type: ignore[arg-type]
    mock.disturb(kind="late", seconds=3600)
    client.visits.create(patient=booked.patient, visited_at="2026-09-28T11:00:00Z")
    go("overview")
    tab.get_by_role("button", name="+1 d").click()
    tab.get_by_role("link", name="Show what ran").click()
    expect(tab.get_by_role("heading", level=1)).to_have_text("Clock advanced")
    expect(tab.get_by_text("4 jobs ran, beginning at")).to_be_visible()
    reminder = tab.get_by_role("region", name="Reminder 24 h before the start: 1 sent")
    expect(reminder.get_by_role("listitem")).to_contain_text("Ana Díaz")
    expect(tab.get_by_role("region", name="Message after the visit: 1 sent")).to_be_visible()
    failed = tab.get_by_role("region", name="Webhook attempt: 1 failed").get_by_role("listitem")
    expect(failed).to_contain_text("visit.completed to clinic.example/hooks HTTP status 500.")
    expect(tab.get_by_role("region", name="Webhook attempt: 1 delivered")).to_be_visible()
    failed.get_by_role("link", name="visit.completed").click()
    expect(tab.locator("#own-id")).to_have_text(mock.deliveries[0].id)


def test_what_happened_to_an_appointment_that_was_moved(
    tab: Page, go: Open, client: FollowUp, mock: MockServer
) -> None:
    """Two clicks: Appointments, the appointment. Its timeline has all that happened, in order, and what is due."""
    mock.mount(HOOKS, lambda _: httpx.Response(204))
    client.webhook_endpoints.create(url=HOOKS, enabled_events=["*"])
    booked = client.appointments.create(patient=ANA, start_at="2026-10-01T17:30:00Z")  # type: ignore[arg-type]
    mock.advance(hours=1)
    client.appointments.update(booked.id, start_at="2026-10-02T17:30:00Z")
    mock.advance(days=3, hours=6)
    go("overview")
    view(tab, "Appointments")
    tab.get_by_role("link", name="Ana Díaz").first.click()
    lines = entries(tab)
    expect(lines).to_have_count(7)
    expected = (
        ("09-28 12:00", "appointments.create: 200"),
        ("09-28 13:00", "appointments.update: 200"),
        ("09-30 17:30", "reminder 24 h before the start"),
        ("10-01 14:30", "reminder 3 h before the start"),
        ("10-01 17:30", "reminder 24 h before the start"),
        ("", "Now"),
        ("10-02 14:30", "reminder 3 h before the start"),
    )
    for line, (at, text) in zip(lines.all(), expected, strict=True):
        expect(line).to_contain_text(text)
        assert instants(line)[:1] == ([at] if at else [])
    created, updated = lines.nth(0).locator("li"), lines.nth(1).locator("li")
    expect(created.nth(0)).to_contain_text("appointment created: confirmed")
    expect(created.nth(1)).to_have_text("webhook appointment.created to clinic.example/hooks: delivered (204)")
    expect(updated.nth(0)).to_contain_text("appointment rescheduled: start")
    assert instants(updated.nth(0)) == ["10-02 17:30", "10-01 17:30"]
    expect(lines.nth(2)).to_contain_text("moved: the appointment now starts at")
    expect(lines.nth(4)).to_contain_text(": sent")
    expect(lines.nth(4)).to_contain_text("Le recordamos su turno del 02/10/2026 a las 14:30")
    expect(lines.nth(6)).to_contain_text(": due")
    lines.nth(4).get_by_role("link", name="appointments.update").click()
    expect(tab.get_by_role("heading", level=1)).to_contain_text("appointments.update")


def test_a_live_update_keeps_opened_attempts(tab: Page, go: Open, client: FollowUp, mock: MockServer) -> None:
    client.webhook_endpoints.create(url=HOOKS, enabled_events=["patient.upserted"])
    patient = client.patients.create(phone="+5491155550001", full_name="Ana Díaz")
    mock.advance(minutes=1)
    go(f"patients/{patient.id}")
    tab.get_by_text("2 attempts", exact=True).click()
    expect(tab.get_by_text("attempt 2: 500")).to_be_visible()
    mock.advance(minutes=5)
    expect(tab.get_by_text("3 attempts failed, the next is due")).to_be_visible()
    expect(tab.get_by_text("attempt 3: 500")).to_be_visible()
