"""Questions about API calls that the dashboard answers: the clicks, and what one then sees."""

import contextlib
import json
import re

import pytest
from playwright.sync_api import Locator, Page, expect

from followup import APIStatusError, FollowUp
from followup_mockserver import MockServer

from .conftest import Open

pytestmark = pytest.mark.nightly

ANA = "+5491155550001"


def row(tab: Page, text: str) -> Locator:
    return tab.get_by_role("row").filter(has_text=text)


def open_calls(tab: Page) -> None:
    tab.get_by_role("navigation", name="Views").get_by_role("link", name="API calls").click()
    expect(tab.get_by_role("heading", level=1)).to_contain_text("API calls")


def test_what_did_my_code_send(tab: Page, go: Open, client: FollowUp) -> None:
    """Three clicks: API calls, the tab Errors, the call; then its request is open, and its headers with one more."""
    patient = client.patients.create(phone=ANA, full_name="Ana Díaz")
    with contextlib.suppress(APIStatusError):
        client.appointments.create(patient=patient.id, start_at="2026-10-01", external_id="T-1")
    go("patients")
    open_calls(tab)
    expect(row(tab, "patients.create")).to_contain_text("Ana Díaz")
    tab.get_by_role("link", name="Errors 1").click()
    rejected = row(tab, "appointments.create")
    expect(rejected).to_contain_text("400")
    expect(rejected).to_contain_text("T-1")
    expect(rejected).to_contain_text("parameter_invalid")
    rejected.get_by_role("link", name="appointments.create").click()
    expect(tab.get_by_text("Rejected with 400 parameter_invalid. startAt:")).to_be_visible()
    body = tab.get_by_role("region", name="Request", exact=True).locator("pre")
    expect(body).to_be_visible()
    sent = {"patient": patient.id, "startAt": "2026-10-01", "externalId": "T-1"}
    assert json.loads(body.inner_text()) == sent
    tab.get_by_text("Headers of the request").click()
    expect(tab.get_by_role("row").filter(has_text="idempotency-key")).to_be_visible()


def test_why_is_there_one_patient_and_three_calls(tab: Page, go: Open, client: FollowUp, mock: MockServer) -> None:
    """Two clicks: API calls, the call; the page lists the calls with the same idempotency key."""
    mock.add_fault(operation="patients.create", kind="disconnect", when="after")
    mock.add_fault(operation="patients.create", kind="status", status=503)
    with mock.client(max_retries=2) as retrying:
        created = retrying.patients.create(phone=ANA, full_name="Ana Díaz")
    go("patients")
    expect(row(tab, "Ana Díaz")).to_have_count(1)
    open_calls(tab)
    calls = row(tab, "patients.create")
    expect(calls).to_have_count(3)
    expect(calls.first).to_contain_text("attempt 3, replayed")
    expect(calls.last).to_contain_text("dropped fault")
    calls.first.get_by_role("link", name="patients.create").click()
    expect(tab.get_by_text("Replayed an earlier response; nothing was done again")).to_be_visible()
    expect(tab.get_by_role("heading", name="Calls with this idempotency key 3")).to_be_visible()
    shared = tab.get_by_role("table", name="Calls with this idempotency key").get_by_role("row")
    expect(shared).to_have_count(4)
    expect(shared.nth(1)).to_contain_text("3 (this call)")
    expect(shared.nth(1)).to_contain_text("replayed")
    expect(shared.nth(2)).to_contain_text("503 fault")
    expect(shared.nth(3)).to_contain_text("dropped fault")
    shared.nth(3).get_by_role("link").first.click()
    expect(tab.get_by_text("Created the patient")).to_be_visible()
    tab.locator("p.verdict").get_by_role("link", name="Ana Díaz").click()
    expect(tab).to_have_url(f"{mock.url}/_mock/#/patients/{created.id}")


def test_an_idempotency_key_of_a_log_finds_its_calls(tab: Page, go: Open, client: FollowUp) -> None:
    for _ in range(2):
        client.patients.create(phone=ANA, idempotency_key="order-77")
    go("patients")
    search = tab.get_by_role("search").get_by_role("searchbox")
    search.fill("order-77")
    search.press("Enter")
    expect(tab.get_by_role("heading", name="Search results 2")).to_be_visible()
    expect(row(tab, "idempotency key")).to_have_count(2)


def test_did_a_fault_of_mine_do_this(tab: Page, go: Open, client: FollowUp, mock: MockServer) -> None:
    """Two clicks: API calls, the tab Faults; a third shows the fault with its settings."""
    client.doctors.list()
    mock.add_fault(operation="patients.create", kind="status", status=503, when="after")
    with contextlib.suppress(APIStatusError):
        client.patients.create(phone=ANA, full_name="Ana Díaz")
    with contextlib.suppress(APIStatusError):
        client.patients.create(phone="12")
    go("patients")
    open_calls(tab)
    tab.get_by_role("link", name="Faults 1").click()
    expect(tab.get_by_role("row")).to_have_count(2)
    faulted = row(tab, "patients.create")
    expect(faulted).to_contain_text("503 fault")
    faulted.get_by_role("link", name="patients.create").click()
    expect(tab.get_by_text("A fault responded with 503 after the request had taken effect")).to_be_visible()
    settings = 'add_fault(operation="patients.create", kind="status", status=503, when="after", times=1)'
    expect(tab.get_by_text(settings)).to_be_visible()


def test_which_events_of_my_batch_were_refused(tab: Page, go: Open, client: FollowUp) -> None:
    """Two clicks: API calls, the call; each event has a row with its status, error and field."""
    data = {"patient": {"phone": ANA, "fullName": "Ana Díaz"}}
    batch = client.events.create(
        [
            {"id": "e1", "type": "patient.upserted", "data": data},
            {"id": "e2", "type": "patient.upserted", "data": {"patient": {"phone": "12"}}},
            {"id": "e3", "type": "appointment.cancelled", "data": {"appointment": {"externalId": "T-404"}}},
        ]
    )
    go("patients")
    open_calls(tab)
    row(tab, "events.create").get_by_role("link", name="events.create").click()
    expect(tab.get_by_text("Received 3 events: 1 processed, 1 invalid, 1 failed.")).to_be_visible()
    results = tab.get_by_role("table", name="Results of the events").get_by_role("row")
    expect(results).to_have_count(4)
    for index, texts in enumerate(
        (
            ("0", "patient.upserted", "processed", "Ana Díaz", "e1"),
            ("1", "patient.upserted", "invalid", "data.patient.phone", "e2"),
            ("2", "appointment.cancelled", "failed", "data.appointment.externalId", "There is no such", "e3"),
        ),
        1,
    ):
        for text in texts:
            expect(results.nth(index)).to_contain_text(text)
    results.nth(3).get_by_role("link").click()
    expect(tab).to_have_url(re.compile(f"#/events/{batch.results[2].event}$"))
    expect(tab.locator("p.verdict")).to_contain_text("resource_missing")
