"""The tools of the dashboard in a real browser: the clock, faults, triggers and the reset."""

import re

import httpx
from playwright.sync_api import Browser, Page, expect
from support.waiting import wait_for

from followup import FollowUp
from followup_mockserver import MockServer, MockService

from .conftest import ANA, HOOKS, Open, expect_report
from .html import Views


class TestClock:
    def test_it_is_advanced(self, tab: Page, go: Open, client: FollowUp, mock: MockServer) -> None:
        client.appointments.create(patient={"phone": ANA["phone"]}, start_at="2026-10-01T12:00:00Z")
        go("clock")
        now = tab.locator("#now")
        tab.get_by_role("button", name="+1 h").click()
        expect(now).to_have_text("28 Sep 10:00:00 GMT-3")
        tab.get_by_role("button", name="+1 d").click()
        expect(now).to_have_text("29 Sep 10:00:00 GMT-3")
        expect_report(tab, "+1 d: nothing was due.")
        tab.get_by_role("button", name="Run next job").click()
        expect(now).to_have_text("30 Sep 09:00:00 GMT-3")
        expect_report(tab, "Run next job: 1 reminder sent.")
        tab.get_by_label("Advance to (America/Argentina/Buenos_Aires)").fill("2026-10-02T05:30:15")
        tab.get_by_role("button", name="Advance", exact=True).click()
        expect(now).to_have_text("2 Oct 05:30:15 GMT-3")
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
        tab.locator("#toast").get_by_role("link").first.click()
        expect(tab.get_by_role("heading", level=1)).to_have_text("Clock advanced")

    def test_the_field_follows_summer_time(self, tab: Page, go: Open, mock: MockServer) -> None:
        mock.update_organization(time_zone="Europe/Madrid")
        go("clock")
        for local, instant in (
            ("2026-10-25T01:59:59", "2026-10-24T23:59:59"),
            ("2026-10-25T03:00:00", "2026-10-25T02:00:00"),
            ("2027-03-28T01:30:00", "2027-03-28T00:30:00"),
            ("2027-03-28T03:00:00", "2027-03-28T01:00:00"),
        ):
            tab.get_by_label("Advance to (Europe/Madrid)").fill(local)
            tab.get_by_role("button", name="Advance", exact=True).click()
            wait_for(lambda expected=f"{instant}+00:00": mock.clock.now.isoformat() == expected)  # type: ignore[misc]

    def test_it_is_never_set_back(self, browser: Browser, mock: MockServer) -> None:
        tab = browser.new_page()
        tab.goto(f"{mock.url}/_mock/#/clock")
        field = tab.get_by_placeholder("2026-09-28 09:00:00")
        for text, problem in (
            ("2026-09-28 08:59", "the clock never goes back"),
            ("tomorrow", "to: This must be a date and time such as 2026-09-28 09:00:00."),
        ):
            field.fill(text)
            tab.get_by_role("button", name="Advance", exact=True).click()
            expect(tab.get_by_role("status")).to_contain_text(problem)
            expect(field).to_have_value(text)
        assert mock.clock.now.isoformat() == "2026-09-28T12:00:00+00:00"
        tab.close()

    def test_jobs_of_one_kind(self, views: Views, client: FollowUp, service: MockService) -> None:
        client.visits.create(patient={"phone": ANA["phone"]}, visited_at="2026-09-28T11:00:00Z")
        client.appointments.create(patient={"phone": ANA["phone"]}, start_at="2026-10-01T12:00:00Z")
        kinds = {"All": 4, "Check of the patient's stage": 1, "Message after the visit": 1, "Reminder": 2}
        assert views.tabs("clock") == kinds
        assert len(re.findall('<li class="pending"', views.html("clock?kind=reminder"))) == 2
        for number in range(50):
            client.appointments.create(patient={"phone": f"+549115555{number:04}"}, start_at="2026-10-02T12:00:00Z")
        assert "And 52 later jobs." in views.text("clock?kind=reminder")


class TestControls:
    def test_trigger(self, tab: Page, go: Open, client: FollowUp, mock: MockServer) -> None:
        go("simulate")
        tab.get_by_label("Event type").first.select_option("patient.silent")
        client.webhook_endpoints.create(url=HOOKS, enabled_events=["*"])
        tab.get_by_label("Data (JSON)").fill("{")
        tab.get_by_role("button", name="Send").click()
        expect_report(tab, "data: This must be JSON.")
        tab.get_by_label("Data (JSON)").fill('{"since": "yesterday"}')
        tab.get_by_role("button", name="Send").click()
        expect_report(tab, "1 delivery queued.")
        assert mock.deliveries[0].payload["data"] == {"since": "yesterday"}

    def test_a_fault_is_added_and_a_single_one_removed(self, tab: Page, go: Open, mock: MockServer) -> None:
        mock.add_fault(operation="visits.create", kind="disconnect")
        mock.disturb(kind="late", type="patient.upserted")
        mock.disturb(kind="duplicate")
        go("faults")
        faults = tab.get_by_role("region", name="API call faults")
        faults.get_by_label("Operation").select_option("patients.create")
        faults.get_by_label("Status code").fill("503")
        faults.get_by_label("Number of calls").fill("2")
        expect(faults.get_by_label("Seconds")).to_be_hidden()
        faults.get_by_role("button", name="Add").click()
        expect_report(tab, "Fault added.")
        tab.get_by_role("button", name="Remove: patients.create: status 503 before the request takes effect, 2").click()
        expect_report(tab, "Fault removed.")
        expect(tab.get_by_role("button", name="Remove:")).to_have_count(3)
        assert [each.operation for each in mock.faults] == ["visits.create"]
        # The fields that do not apply to a kind are hidden, and their values are not sent.
        faults.get_by_label("Kind").select_option("delay")
        faults.get_by_label("Seconds").fill("3")
        expect(faults.get_by_label("Status code")).to_be_hidden()
        faults.get_by_role("button", name="Add").click()
        expect(tab.get_by_text("delay of 3 s before the request takes effect")).to_be_visible()
        faults.get_by_label("Before or after").select_option("after")
        faults.get_by_label("Operation").select_option("events.create")
        faults.get_by_label("Kind").select_option("event")
        expect(faults.get_by_label("Before or after")).to_be_hidden()
        faults.get_by_role("button", name="Add").click()
        expect(tab.get_by_text("events.create: event")).to_be_visible()
        tab.get_by_role("button", name="Remove: patient.upserted: late").click()
        expect(tab.get_by_role("button", name="Remove:")).to_have_count(4)
        assert [each.kind for each in mock.webhook_faults] == ["duplicate"]

    def test_reset_asks_first(self, tab: Page, go: Open, client: FollowUp, mock: MockServer) -> None:
        client.patients.create(phone=ANA["phone"])
        go("simulate")
        tab.get_by_role("button", name="Reset").click()
        tab.get_by_role("dialog").get_by_role("button", name="Cancel").click()
        assert len([*client.patients.list()]) == 1
        tab.get_by_role("button", name="Reset").click()
        tab.get_by_role("dialog").get_by_role("button", name="Yes").click()
        expect_report(tab, "Reset to the initial state.")
        assert [*client.patients.list()] == []
