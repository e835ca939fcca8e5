"""The dashboard in a real browser: all its controls, several widths, keyboard and accessibility."""

import json
from typing import Any

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from followup import FollowUp
from followup_mockserver import MockServer

from .conftest import ANA, HOOKS, Open, expect_report


class TestLive:
    def test_new_calls_and_deliveries_appear(self, tab: Page, go: Open, client: FollowUp) -> None:
        go("calls")
        expect(tab.get_by_text("No calls yet")).to_be_visible()
        client.webhook_endpoints.create(url=HOOKS, enabled_events=["*"])
        client.patients.create(phone=ANA["phone"])
        expect(tab.get_by_role("link", name="patients.create")).to_be_visible()
        go("webhook_deliveries")
        expect(tab.get_by_role("cell", name="patient.upserted")).to_have_count(1)
        client.patients.create(phone="+5491155550009")
        expect(tab.get_by_role("cell", name="patient.upserted")).to_have_count(2)

    def test_a_live_update_keeps_input_and_focus(self, tab: Page, go: Open, client: FollowUp) -> None:
        """Typed text and the focus survive an update of the page."""
        go("controls")
        tab.get_by_label("Data (JSON)").fill('{"a": 1}')
        before = tab.locator("#page").get_attribute("data-version") or ""
        client.patients.create(phone=ANA["phone"])
        expect(tab.locator("#page")).not_to_have_attribute("data-version", before)
        expect(tab.get_by_label("Data (JSON)")).to_have_value('{"a": 1}')
        expect(tab.get_by_label("Data (JSON)")).to_be_focused()

    def test_a_stopped_mock_is_reported(self, browser: Browser) -> None:
        page = browser.new_page()
        with MockServer() as server:
            page.goto(f"{server.url}/_mock/")
            expect(page.locator("#live")).to_have_text("live")
        expect(page.locator("#live")).to_have_text("no response, retrying")
        page.close()

    def test_a_running_clock_is_updated(self, browser: Browser) -> None:
        with MockServer() as server:
            page = browser.new_page()
            page.goto(f"{server.url}/_mock/")
            time = page.locator("#now time")
            before = time.inner_text()
            expect(time).not_to_have_text(before)
            page.close()


class TestDeliveries:
    def test_the_timeline_and_sending_again(self, tab: Page, go: Open, client: FollowUp, mock: MockServer) -> None:
        client.webhook_endpoints.create(url=HOOKS, enabled_events=["*"])
        client.patients.create(phone=ANA["phone"])
        mock.advance(minutes=6)
        go(f"webhook_deliveries/{mock.deliveries[0].id}")
        lines = tab.locator(".timeline li")
        expect(lines).to_have_count(4)
        expect(lines.last).to_contain_text("Attempt 4 of at most 9")
        tab.locator("summary", has_text="Headers of attempt 2").click()
        expect(tab.get_by_role("cell", name=mock.attempts(mock.deliveries[0].id)[1].signature)).to_be_visible()
        mock.mount(HOOKS, lambda _: httpx.Response(204))
        tab.get_by_role("button", name="Send again").click()
        expect_report(tab, "Sent again: delivered (204).")
        expect(lines).to_have_count(4)
        expect(lines.last).to_contain_text("manual: 204")
        expect(tab.get_by_role("cell", name=mock.attempts(mock.deliveries[0].id)[1].signature)).to_be_visible()


class TestClock:
    def test_it_is_advanced(self, tab: Page, go: Open, client: FollowUp, mock: MockServer) -> None:
        client.appointments.create(patient={"phone": ANA["phone"]}, start_at="2026-10-01T12:00:00Z")
        go("clock")
        now = tab.locator("#now")
        tab.get_by_role("button", name="+1 h").click()
        expect(now).to_have_text("2026-09-28 13:00:00")
        tab.get_by_role("button", name="+1 d").click()
        expect(now).to_have_text("2026-09-29 13:00:00")
        expect_report(tab, "+1 d: nothing was due.")
        tab.get_by_role("button", name="Run next job").click()
        expect(now).to_have_text("2026-09-30 12:00:00")
        expect_report(tab, "Run next job: 1 reminder sent.")
        tab.get_by_label("Advance to (UTC)").fill("2026-10-02T08:30:15")
        tab.get_by_role("button", name="Advance", exact=True).click()
        expect(now).to_have_text("2026-10-02 08:30:15")
        tab.get_by_label("Advance to (UTC)").fill("2026-10-02T08:45")
        tab.get_by_role("button", name="Advance", exact=True).click()
        expect(now).to_have_text("2026-10-02 08:45:00")
        expect(tab.get_by_role("button", name="Run next job")).to_be_disabled()
        assert len(mock.messages) == 2

    def test_an_advance_reports_what_happened(self, tab: Page, go: Open, client: FollowUp, mock: MockServer) -> None:
        responses = iter([204, 500, 204])
        mock.mount(HOOKS, lambda _: httpx.Response(next(responses, 204)))
        client.appointments.create(patient={"phone": ANA["phone"]}, start_at="2026-09-29T14:00:00Z")
        client.visits.create(patient={"phone": ANA["phone"]}, visited_at="2026-09-28T11:00:00Z")
        client.appointments.create(patient={"phone": "+5491155550002"}, start_at="2026-09-29T15:00:00Z")
        client.webhook_endpoints.create(url=HOOKS, enabled_events=["patient.silent"])
        go("clock")
        for _ in range(2):
            mock.disturb(kind="late", seconds=3600)
            mock.trigger(type="patient.silent")
        tab.get_by_role("button", name="+1 d").click()
        expect_report(tab, "+1 d: 4 reminders sent, 1 post-visit message sent, 2 webhooks delivered, 1 failed.")

    def test_it_is_never_set_back(self, browser: Browser, mock: MockServer) -> None:
        tab = browser.new_page()
        tab.goto(f"{mock.url}/_mock/#/clock")
        field = tab.get_by_label("Advance to (UTC)")
        expect(field).to_have_attribute("min", "2026-09-28T12:00:00")
        field.fill("2026-09-28T11:00:00")
        tab.get_by_role("button", name="Advance", exact=True).click()
        assert field.evaluate("field => field.validity.rangeUnderflow")
        field.evaluate("field => field.removeAttribute('min')")
        tab.get_by_role("button", name="Advance", exact=True).click()
        expect(tab.get_by_role("status")).to_contain_text("the clock never goes back")
        assert mock.clock.now.isoformat() == "2026-09-28T12:00:00+00:00"
        tab.close()


class TestControls:
    def test_the_patient_answers_and_the_organization_loads(
        self, tab: Page, go: Open, client: FollowUp, mock: MockServer
    ) -> None:
        created = client.intake_requests.create(patient={"phone": ANA["phone"], "full_name": "Ana"})
        go("intake_requests")
        tab.get_by_role("link", name="Ana").click()
        for label, value in {
            "dni": "30123456", "coverage.insurer": "OSDE", "address": "Mitre 1", "requestedService": "home nursing"
        }.items():  # fmt: skip
            tab.get_by_label(label).fill(value)
        tab.get_by_role("button", name="Answer").click()
        expect_report(tab, "Answered. The status is now ready.")
        tab.get_by_role("button", name="Load").click()
        expect_report(tab, "The status is now loaded.")
        after = client.intake_requests.retrieve(created.id)
        assert (after.status, after.data["coverage"]) == ("loaded", {"insurer": "OSDE"})

    def test_discard(self, tab: Page, go: Open, client: FollowUp) -> None:
        created = client.intake_requests.create(patient={"phone": ANA["phone"]})
        go(f"intake_requests/{created.id}")
        tab.get_by_label("Reason").fill("twice")
        tab.get_by_role("button", name="Discard").click()
        expect_report(tab, "The status is now discarded.")
        assert client.intake_requests.retrieve(created.id).discard_reason == "twice"

    def test_a_patient_opts_out_and_in_and_changes_stage(self, tab: Page, go: Open, client: FollowUp) -> None:
        created = client.patients.create(phone=ANA["phone"])
        go(f"patients/{created.id}")
        tab.get_by_role("button", name="Opt out").click()
        expect_report(tab, "The patient no longer receives messages.")
        assert client.patients.retrieve(created.id).opted_out is True
        tab.get_by_role("button", name="Opt in").click()
        expect_report(tab, "The patient receives messages again.")
        tab.get_by_label("Stage").select_option("lost")
        tab.get_by_role("button", name="Set").click()
        expect_report(tab, "The stage is now lost.")
        after = client.patients.retrieve(created.id)
        assert (after.opted_out, after.stage) == (False, "lost")

    def test_the_roster(self, tab: Page, go: Open, client: FollowUp) -> None:
        go("doctors")
        tab.get_by_label("Full name").fill("Dra. Nueva")
        tab.get_by_role("button", name="Add").click()
        expect(tab.get_by_role("status")).to_contain_text("Added doc_")
        expect(tab.get_by_label("Full name")).to_have_value("")
        doctor = next(each for each in client.doctors.list() if each.full_name == "Dra. Nueva")
        tab.get_by_role("link", name="Dra. Nueva").click()
        expect(tab.locator("#own-id")).to_have_text(doctor.id)
        tab.get_by_label("Specialty").fill("oncology")
        tab.get_by_role("button", name="Save").click()
        expect_report(tab, "Saved.")
        tab.get_by_role("button", name="Deactivate").click()
        expect(tab.get_by_role("button", name="Activate", exact=True)).to_be_visible()
        after = client.doctors.retrieve(doctor.id)
        assert (after.specialty, after.license_number, after.active) == ("oncology", None, False)

    def test_trigger(self, tab: Page, go: Open, client: FollowUp, mock: MockServer) -> None:
        go("controls")
        tab.get_by_label("Event type").first.select_option("patient.silent")
        client.webhook_endpoints.create(url=HOOKS, enabled_events=["*"])
        tab.get_by_label("Data (JSON)").fill("{")
        tab.get_by_role("button", name="Send").click()
        expect_report(tab, "data: This must be JSON.")
        tab.get_by_label("Data (JSON)").fill('{"since": "yesterday"}')
        tab.get_by_role("button", name="Send").click()
        expect_report(tab, "1 delivery queued.")
        assert mock.deliveries[0].payload["data"] == {"since": "yesterday"}

    def test_faults(self, tab: Page, go: Open, mock: MockServer) -> None:
        go("controls")
        tab.get_by_label("Operation").select_option("patients.create")
        tab.get_by_label("Status code").fill("503")
        tab.get_by_label("Number of calls").fill("2")
        tab.get_by_role("region", name="API call faults").get_by_role("button", name="Add").click()
        expect_report(tab, "Fault added.")
        expect(tab.get_by_text("patients.create: status 503 before the request takes effect, 2 times")).to_be_visible()
        (fault,) = mock.faults
        assert (fault.operation, fault.status, fault.times) == ("patients.create", 503, 2)
        tab.get_by_role("region", name="API call faults").get_by_role("button", name="Clear all").click()
        expect_report(tab, "All API call faults cleared.")
        assert mock.faults == []

    def test_a_delay_needs_its_seconds(self, browser: Browser, mock: MockServer) -> None:
        tab = browser.new_page()
        tab.goto(f"{mock.url}/_mock/#/controls")
        tab.get_by_role("region", name="API call faults").get_by_label("Kind", exact=True).select_option("delay")
        tab.get_by_role("region", name="API call faults").get_by_role("button", name="Add").click()
        expect(tab.get_by_role("status")).to_contain_text("seconds: This must be more than 0")
        assert mock.faults == []
        tab.close()

    def test_webhook_faults(self, tab: Page, go: Open, client: FollowUp, mock: MockServer) -> None:
        client.webhook_endpoints.create(url=HOOKS, enabled_events=["*"])
        go("controls")
        faults = tab.get_by_role("region", name="Webhook delivery faults")
        faults.get_by_label("Kind", exact=True).select_option("duplicate")
        faults.get_by_role("button", name="Add").click()
        expect_report(tab, "Fault added.")
        expect(tab.get_by_text("any event: duplicate, once")).to_be_visible()
        client.patients.create(phone=ANA["phone"])
        mock.advance()
        assert len(mock.attempts(mock.deliveries[0].id)) == 2
        expect(tab.get_by_text("any event: duplicate, once")).to_be_hidden()
        mock.disturb(kind="late", type="visit.completed", times=3, seconds=90)
        expect(tab.get_by_text("visit.completed: late by 90 s, 3 times")).to_be_visible()
        faults.get_by_role("button", name="Clear all").click()
        expect_report(tab, "All webhook delivery faults cleared.")
        assert mock.webhook_faults == []

    def test_reset_asks_first(self, tab: Page, go: Open, client: FollowUp, mock: MockServer) -> None:
        client.patients.create(phone=ANA["phone"])
        go("controls")
        tab.get_by_role("button", name="Reset").click()
        tab.get_by_role("dialog").get_by_role("button", name="Cancel").click()
        assert len([*client.patients.list()]) == 1
        tab.get_by_role("button", name="Reset").click()
        tab.get_by_role("dialog").get_by_role("button", name="Yes").click()
        expect_report(tab, "Reset to the initial state.")
        assert [*client.patients.list()] == []


class TestSearchAndLinks:
    def test_search(self, tab: Page, go: Open, client: FollowUp) -> None:
        created = client.patients.create(**ANA)  # type: ignore[arg-type]
        go("calls")
        tab.get_by_role("searchbox").fill("pérez")
        tab.get_by_role("searchbox").press("Enter")
        tab.get_by_role("link", name="Ana <b>Pérez</b>").click()
        expect(tab.locator("#own-id")).to_have_text(created.id)

    def test_a_missing_object_is_reported_within_the_frame(
        self, browser: Browser, mock: MockServer, client: FollowUp
    ) -> None:
        """The user can navigate on, and the page waits for a change instead of requesting the view again and again."""
        page = browser.new_page()
        requested: list[str] = []
        page.on("request", lambda request: requested.append(request.url))
        page.goto(f"{mock.url}/_mock/#/webhook_deliveries/whd_gone")
        expect(page.get_by_role("heading", level=1)).to_have_text("Not found")
        expect(page.get_by_text("There is no such webhook delivery. A reset may have removed it")).to_be_visible()
        expect(page.locator("#live")).to_have_text("live")
        expect(page.get_by_role("searchbox")).to_be_visible()
        version = page.locator("#page").get_attribute("data-version")
        with page.expect_request(lambda request: f"since={version}&wait=" in request.url):
            pass
        requested.clear()
        # For each change there is at most one request for the version, and one for the view.
        client.patients.create(phone=ANA["phone"])
        with page.expect_request(lambda request: "changes" in request.url and f"since={version}" not in request.url):
            pass
        assert len(requested) <= 6
        page.get_by_role("link", name="Webhook deliveries").last.click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("Webhook deliveries")
        page.close()

    def test_a_page_reports_that_a_reset_removed_its_object(
        self, browser: Browser, client: FollowUp, mock: MockServer
    ) -> None:
        created = client.patients.create(phone=ANA["phone"])
        page = browser.new_page()
        page.goto(f"{mock.url}/_mock/#/patients/{created.id}")
        expect(page.locator("#own-id")).to_have_text(created.id)
        mock.reset()
        expect(page.get_by_text("There is no such patient.")).to_be_visible()
        expect(page.get_by_role("navigation", name="Views")).to_be_visible()
        page.close()


class TestReports:
    def test_they_disappear_after_a_while(self, tab: Page, go: Open, mock: MockServer) -> None:
        tab.clock.install()
        go("clock")
        tab.get_by_role("button", name="+1 h").click()
        expect_report(tab, "+1 h: nothing was due.")
        tab.clock.fast_forward(9_000)
        expect_report(tab, "")

    def test_they_can_be_closed(self, tab: Page, go: Open, mock: MockServer) -> None:
        go("clock")
        tab.get_by_role("button", name="+1 h").click()
        expect_report(tab, "+1 h: nothing was due.")
        tab.get_by_role("button", name="Close").click()
        expect_report(tab, "")
        expect(tab.get_by_role("button", name="Close")).to_be_hidden()


class TestAccess:
    def test_another_organization(self, tab: Page, go: Open, mock: MockServer) -> None:
        key = mock.create_organization(name="Laboratorio Sur").keys[0].value
        go("patients")
        tab.get_by_role("button", name="Change organization").click()
        tab.get_by_label("API key of the organization").fill(key)
        tab.get_by_role("button", name="Apply").click()
        expect(tab.get_by_text("Laboratorio Sur")).to_be_visible()
        assert key not in tab.url

    def test_off_loopback_the_token_is_taken_from_the_address_or_requested(self, browser: Browser) -> None:
        with MockServer(host="0.0.0.0") as server:
            url = server.url.replace("0.0.0.0", "127.0.0.1")
            first, second = browser.new_page(), browser.new_page()
            first.goto(f"{url}/_mock/#token={server.token}")
            expect(first.get_by_role("heading", level=1)).to_contain_text("API calls")
            assert (server.token or "") not in first.url
            second.goto(f"{url}/_mock/")
            second.get_by_label("Token").fill(server.token or "")
            second.get_by_role("button", name="Apply").click()
            expect(second.get_by_role("heading", level=1)).to_contain_text("API calls")
            first.close()
            second.close()


def fill(client: FollowUp, mock: MockServer) -> list[str]:
    """Create objects of every kind; return the views that show them."""
    client.webhook_endpoints.create(url=HOOKS, enabled_events=["*"])
    booked = client.appointments.create(patient={"phone": ANA["phone"]}, start_at="2026-10-01T12:00:00Z")
    visit = client.visits.create(patient=booked.patient, visited_at="2026-09-28T11:00:00Z")
    treatment = client.treatments.create(patient=booked.patient, name="ibuprofen")
    intake = client.intake_requests.create(patient={"phone": ANA["phone"]})
    event = client.events.create({"id": "e1", "type": "order.issued", "data": {}}).results[0].event
    mock.add_fault(operation="*", kind="delay", seconds=0.001, times=None)
    mock.advance(hours=50)
    doctor = next(iter(client.doctors.list()))
    return [
        "calls", f"calls/{intake.last_response.request_id}", "webhook_deliveries",
        f"webhook_deliveries/{mock.deliveries[0].id}", "webhook_endpoints",
        f"webhook_endpoints/{mock.deliveries[0].webhook_endpoint}", "patients", f"patients/{booked.patient}",
        "appointments", f"appointments/{booked.id}", "visits", f"visits/{visit.id}", "treatments",
        f"treatments/{treatment.id}", "intake_requests", f"intake_requests/{intake.id}", "events", f"events/{event}",
        "doctors", f"doctors/{doctor.id}", "clock", "controls", "search?q=5555",
    ]  # fmt: skip


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 950, 390])
def test_every_view_is_accessible_and_fits_the_window(
    tab: Page, go: Open, client: FollowUp, mock: MockServer, width: int, scheme: Any
) -> None:
    tab.set_viewport_size({"width": width, "height": 844})
    tab.emulate_media(color_scheme=scheme)
    axe = Axe()
    for view in fill(client, mock):
        go(view)
        expect(tab.locator("#live")).to_have_text("live")
        found = [
            (each["id"], each["impact"], [node["html"] for node in each["nodes"]])
            for each in axe.run(tab).response["violations"]
        ]
        assert found == [], (view, json.dumps(found, indent=2))
        too_wide = tab.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
        assert not too_wide, view
