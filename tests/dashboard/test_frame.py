"""The frame of the dashboard in a real browser: live updates, times, navigation, keyboard, reports and access."""

import re

from playwright.sync_api import Browser, Page, expect
from support.waiting import wait_for

from followup import FollowUp
from followup_mockserver import MockServer

from .conftest import ANA, HOOKS, Open, expect_report


class TestLive:
    def test_a_live_update_keeps_input_and_focus(self, tab: Page, go: Open, client: FollowUp) -> None:
        """Typed text and the focus survive an update of the page."""
        go("simulate")
        tab.get_by_label("Data (JSON)").fill('{"a": 1}')
        before = tab.locator("#page").get_attribute("data-version") or ""
        client.patients.create(phone=ANA["phone"])
        expect(tab.locator("#page")).not_to_have_attribute("data-version", before)
        expect(tab.get_by_label("Data (JSON)")).to_have_value('{"a": 1}')
        expect(tab.get_by_label("Data (JSON)")).to_be_focused()

    def test_a_live_update_keeps_what_was_opened(self, tab: Page, go: Open, client: FollowUp, mock: MockServer) -> None:
        client.webhook_endpoints.create(url=HOOKS, enabled_events=["patient.upserted"])
        patient = client.patients.create(phone=ANA["phone"])
        mock.advance(minutes=1)
        go(f"patients/{patient.id}")
        tab.get_by_text("2 attempts", exact=True).click()
        expect(tab.get_by_text("attempt 2: 500")).to_be_visible()
        mock.advance(minutes=5)
        expect(tab.get_by_text("attempt 3: 500")).to_be_visible()

    def test_a_stopped_mock_is_reported_until_it_responds_again(self, browser: Browser) -> None:
        page = browser.new_page()
        with MockServer(seed=1) as server, server.client() as client:
            created = client.patients.create(phone=ANA["phone"], full_name="Ana")
            page.goto(f"{server.url}/_mock/#/patients/{created.id}")
            expect(page.locator("#live")).to_have_text("live")
            port = int(server.url.rpartition(":")[2])
        expect(page.get_by_role("alert")).to_have_text("The mock does not respond (stopped?). Trying again …")
        expect(page.locator("#live")).to_have_text("not live")
        page.get_by_role("button", name="+1 h").click()
        expect(page.get_by_role("status")).to_have_text("The mock does not respond.")
        page.goto(f"{server.url}/_mock/#/appointments/apt_gone", wait_until="commit")
        with MockServer(port=port, seed=2):
            expect(page.get_by_role("status")).to_have_text("The mock was restarted: its earlier data is gone.")
            expect(page.get_by_role("alert")).to_be_empty()
            expect(page.locator("#live")).to_have_text("live")
            expect(page.get_by_text("There is no such appointment.")).to_be_visible()
        page.close()

    def test_a_reset_is_reported(self, tab: Page, go: Open, client: FollowUp, mock: MockServer) -> None:
        client.patients.create(phone=ANA["phone"])
        go("patients")
        mock.reset()
        expect_report(tab, "The mock was reset.")
        expect(tab.get_by_role("heading", level=1)).to_have_text("Patients 0")


class TestTimes:
    def test_they_are_in_the_zone_of_the_organization_or_in_utc(
        self, tab: Page, go: Open, client: FollowUp, mock: MockServer
    ) -> None:
        """The zone is always visible, and the choice is kept in the tab."""
        booked = client.appointments.create(patient={"phone": ANA["phone"]}, start_at="2026-09-30T14:30:00Z")
        go("clock")
        expect(tab.locator("#now")).to_have_text("28 Sep 09:00:00 GMT-3")
        reminder = tab.locator("main .timeline").get_by_role("listitem").filter(has_text="reminder").first
        expect(reminder.locator("time").first).to_have_text("29 Sep 11:30, in 1 d 2 h")
        expect(reminder.locator("time").first).to_have_attribute("title", "2026-09-29T14:30:00.000Z")
        switch = tab.get_by_role("button", name="UTC")
        expect(switch).to_have_attribute("aria-pressed", "false")
        switch.click()
        expect(tab.locator("#now")).to_have_text("28 Sep 12:00:00Z")
        expect(reminder.locator("time").first).to_have_text("29 Sep 14:30, in 1 d 2 h")
        tab.reload()
        expect(tab.locator("#now")).to_have_text("28 Sep 12:00:00Z")
        expect(switch).to_have_attribute("aria-pressed", "true")
        mock.advance(hours=2)
        expect(reminder.locator("time").first).to_have_text("29 Sep 14:30, in 1 d")
        mock.advance(days=2)
        go(f"appointments/{booked.id}")
        expect(tab.locator("#now")).to_have_text("30 Sep 14:00:00Z")

    def test_a_column_names_the_zone_and_a_time_only_another_one(
        self, tab: Page, go: Open, client: FollowUp, mock: MockServer
    ) -> None:
        mock.update_organization(time_zone="Europe/Madrid")
        for start in ("2026-10-24T12:00:00Z", "2026-10-26T12:00:00Z"):  # summer time ends on 25 October
            client.appointments.create(patient={"phone": ANA["phone"]}, start_at=start)
        go("appointments")
        expect(tab.get_by_role("columnheader", name="start")).to_have_text("start GMT+2")
        starts = tab.get_by_role("row").locator("td:nth-child(2)")
        expect(starts).to_have_text(["26 Oct 13:00 GMT+1", "24 Oct 14:00"])

    def test_relative_times(self, tab: Page, go: Open) -> None:
        go("overview")
        expected = {
            0: "now",
            1: "in 1 s",
            -59: "59 s ago",
            60: "in 1 min",
            3599: "in 59 min",
            3 * 3600 + 300: "in 3 h 5 min",
            -11 * 3600 - 300: "11 h ago",
            -2 * 86400: "2 d ago",
            -2 * 86400 - 3600: "2 d 1 h ago",
            40 * 86400 + 3600: "in 40 d",
        }
        texts = "all => import('./static/times.js').then(times => all.map(each => times.relativeText(each * 1000, 0)))"
        assert tab.evaluate(texts, [*expected]) == [*expected.values()]


class TestNavigation:
    def test_the_groups_and_their_badges(self, tab: Page, go: Open, client: FollowUp, mock: MockServer) -> None:
        endpoint = client.webhook_endpoints.create(url=HOOKS, enabled_events=["*"])
        client.patients.create(phone=ANA["phone"])
        go("overview")
        views = tab.get_by_role("navigation", name="Views")
        for group in ("Traffic", "Data", "Tools"):
            expect(views.get_by_role("list", name=group)).to_be_visible()
        expect(views.get_by_role("link", name="Deliveries")).to_have_text("Deliveries")
        mock.add_fault(operation="*", kind="status", optional=True)
        mock.disturb(kind="late", optional=True)
        expect(views.get_by_role("link", name="Faults 2 pending")).to_be_visible()
        mock.clear_faults()
        mock.clear_webhook_faults()
        mock.advance(days=3)
        expect(views.get_by_role("link", name="Deliveries 1 failed")).to_be_visible()
        expect(views.get_by_role("link", name="Endpoints 1 failing")).to_be_visible()
        client.webhook_endpoints.update(endpoint.id, disabled=True)
        expect(views.get_by_role("link", name="Endpoints")).to_have_text("Endpoints")
        expect(views.get_by_role("link", name="Faults")).to_have_text("Faults")


class TestKeyboard:
    def test_letters_open_views_and_search(self, tab: Page, go: Open) -> None:
        go("overview")
        for letter, heading in (("p", "Patients"), ("d", "Webhook deliveries"), ("f", "Faults"), ("o", "Overview")):
            tab.keyboard.press("g")
            tab.keyboard.press(letter)
            expect(tab.get_by_role("heading", level=1)).to_contain_text(heading)
        tab.keyboard.press("/")
        expect(tab.get_by_role("searchbox")).to_be_focused()
        tab.keyboard.type("g p")
        expect(tab.get_by_role("searchbox")).to_have_value("g p")

    def test_rows_are_selected_opened_and_copied(self, tab: Page, go: Open, client: FollowUp) -> None:
        first = client.patients.create(phone=ANA["phone"], full_name="Ana")
        second = client.patients.create(phone="+5491155550002", full_name="Bruno")
        go("patients")
        expect(tab.get_by_role("row")).to_have_count(3)
        for key, patient in (("j", second), ("j", first), ("k", second)):
            tab.keyboard.press(key)
            expect(tab.locator(f'tr[data-key="{patient.id}"] a:focus')).to_have_count(1)
        tab.keyboard.press("c")
        wait_for(lambda: tab.evaluate("navigator.clipboard.readText()") == second.id)
        tab.keyboard.press("Enter")
        expect(tab).to_have_url(re.compile(f"#/patients/{second.id}$"))


class TestAccess:
    def test_enter_in_the_field_of_the_key_switches_the_organization(
        self, tab: Page, go: Open, mock: MockServer
    ) -> None:
        key = mock.create_organization(name="Laboratorio Sur").keys[0].value
        go("patients")
        tab.get_by_role("button", name="Switch organization").click()
        tab.get_by_label("API key of the organization").fill(key)
        tab.keyboard.press("Enter")
        expect(tab.get_by_text("Laboratorio Sur")).to_be_visible()
        assert key not in tab.url

    def test_off_loopback_the_token_is_taken_from_the_address_or_requested(self, browser: Browser) -> None:
        with MockServer(host="0.0.0.0") as server:
            url = server.url.replace("0.0.0.0", "127.0.0.1")
            first, second = browser.new_page(), browser.new_page()
            first.goto(f"{url}/_mock/#token={server.token}")
            expect(first.get_by_role("heading", level=1)).to_contain_text("Overview")
            assert (server.token or "") not in first.url
            second.goto(f"{url}/_mock/")
            second.get_by_label("Token").fill(server.token or "")
            second.get_by_role("button", name="Apply").click()
            expect(second.get_by_role("heading", level=1)).to_contain_text("Overview")
            first.close()
            second.close()
