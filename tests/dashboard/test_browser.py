"""The dashboard in a real browser, which starts once: all controls, live updates, several widths, accessibility."""

import json
import re
from typing import Any

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page, expect
from support.waiting import wait_for

from followup import FollowUp
from followup_mockserver import MockServer

from .conftest import ANA, HOOKS, Open, expect_report, fill
from .html import Views


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

    def test_the_patient_and_the_staff_act_without_a_mouse_and_python_does_the_same(
        self, tab: Page, go: Open, client: FollowUp, mock: MockServer
    ) -> None:
        tab.set_viewport_size({"width": 390, "height": 844})
        booked = client.appointments.create(patient={"phone": ANA["phone"]}, start_at="2026-10-01T12:00:00Z")
        client.webhook_endpoints.create(url=HOOKS, enabled_events=["appointment.rescheduled"])
        mock.update_organization(activated_events=["conversation.handoff"])

        def act(name: str, field: str | None, text: str, reports: str) -> None:
            tab.get_by_role("button", name=name, exact=True).or_(tab.get_by_text(f"{name} …", exact=True)).focus()
            tab.keyboard.press("Enter")
            if field:
                tab.get_by_label(field).focus()
                tab.keyboard.press("Control+a")
                tab.keyboard.type(text)
                lines.append(tab.locator("form", has=tab.get_by_label(field)).locator(".python code").inner_text())
                tab.keyboard.press("Enter")
            expect_report(tab, reports)

        lines: list[str] = []
        go(f"patients/{booked.patient}")
        act("Reply", None, "", "The stage is now in_conversation. Nothing else followed.")
        unsent = "Webhook not sent: the service does not send patient.silent yet."
        stage = tab.locator("form", has=tab.get_by_label("Stage")).locator(".python code")
        expect(stage).to_contain_text('stage="in_conversation"')
        act("Fall silent", None, "", f"The stage is now lost. {unsent}")
        handed_off = "Handed off. The stage is now in_conversation. 1 webhook not sent."
        act("Hand off", "Reason", 'asks for "Dra. Ñ"', handed_off)
        mock.update_patient(booked.patient, opted_out=True)
        tab.get_by_role("button", name="Opt in to messages").click()
        expect_report(tab, "The patient receives messages again.")
        tab.get_by_label("Stage").select_option("lost")
        tab.get_by_role("button", name="Set stage").click()
        expect_report(tab, "The stage is now lost.")
        go(f"appointments/{booked.id}")
        expect(tab.get_by_role("button", name="Confirm")).to_be_disabled()
        moved = "1 webhook pending, 2 reminders moved, 2 reminders due."
        act("Move", "New start", "2026-10-02 10:30", f"Moved. The status is now rescheduled. {moved}")
        act("Confirm", None, "", "The status is now confirmed. Nothing else followed.")
        act("Cancel", "Reason", "flu", "Cancelled. 1 webhook not sent, 2 reminders cancelled.")
        tab.get_by_role("link", name="Show what followed").click()
        expect(tab.get_by_text("Test control", exact=True)).to_be_visible()
        assert lines == [
            f'followup_service.hand_off_conversation("{booked.patient}", reason="asks for \\"Dra. Ñ\\"")',
            f'followup_service.reschedule_appointment("{booked.id}", start_at="2026-10-02T13:30:00.000Z")',
            f'followup_service.cancel_appointment("{booked.id}", reason="flu")',
        ]
        assert client.appointments.retrieve(booked.id).status == "cancelled"

    def test_the_next_call_like_this_one_fails_after_two_clicks(
        self, tab: Page, go: Open, client: FollowUp, mock: MockServer
    ) -> None:
        client.patients.create(phone=ANA["phone"], full_name="A" * 300)
        go(f"calls/{mock.requests[0].request_id}")
        assert tab.locator("#curl").evaluate("pre => pre.scrollWidth <= pre.clientWidth")
        tab.get_by_role("link", name="Make the next one fail").click()
        tab.get_by_role("region", name="API call faults").get_by_role("button", name="Add").click()
        expect_report(tab, "Fault added.")
        assert [(each.operation, each.kind, each.status) for each in mock.faults] == [
            ("patients.create", "status", 500)
        ]

    def test_the_roster(self, tab: Page, go: Open, client: FollowUp) -> None:
        go("doctors")
        tab.get_by_label("Full name").fill("Dra. Nueva")
        tab.get_by_role("button", name="Add").click()
        expect(tab.get_by_role("status")).to_contain_text("Added doc_")
        expect(tab.get_by_label("Full name")).to_have_value("")
        tab.get_by_role("link", name="Dra. Nueva").click()
        expect(tab.get_by_role("button", name="Copy id")).to_be_visible()  # the list has the same fields
        tab.get_by_label("Specialty").fill("oncology")
        tab.get_by_role("button", name="Save").click()
        expect_report(tab, "Saved.")
        tab.get_by_role("button", name="Deactivate").click()
        expect(tab.get_by_role("button", name="Activate", exact=True)).to_be_visible()
        after = next(each for each in client.doctors.list() if each.full_name == "Dra. Nueva")
        assert (after.specialty, after.license_number, after.active) == ("oncology", None, False)


def test_search(tab: Page, go: Open, client: FollowUp) -> None:
    created = client.patients.create(**ANA)  # type: ignore[arg-type]
    go("calls")
    search = tab.get_by_role("searchbox")
    search.fill("perez")
    search.press("Enter")
    # The only result is opened at once, and Back leads to the view before the search.
    expect(tab.locator("#own-id")).to_have_text(created.id)
    tab.go_back()
    expect(tab.get_by_role("heading", level=1)).to_contain_text("API calls")
    client.patients.create(phone="+5491155550002", full_name="Eva Pérez")
    search.press_sequentially("per")
    found = tab.locator("[role=search]").get_by_role("link")
    expect(found).to_have_text([re.compile("Ana .*0001"), re.compile("Eva Pérez.*0002")])
    tab.keyboard.press("Escape")
    expect(found).to_have_count(0)
    search.fill("pérez")
    expect(found).to_have_count(2)
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("Enter")
    expect(tab.locator("#own-id")).to_have_text(created.id)


def test_a_mark_separates_later_calls(tab: Page, go: Open, client: FollowUp, mock: MockServer) -> None:
    client.account.retrieve()
    go("overview")
    tab.keyboard.press("m")
    client.patients.list()
    tab.locator("#toast").get_by_role("link", name="Calls since the mark").click()
    expect(current(tab)).to_have_text("Since the mark 1")
    client.doctors.list()
    expect(current(tab)).to_have_text("Since the mark 2")
    tab.get_by_role("button", name="Mark here").click()
    expect(current(tab)).to_have_text("Since the mark 0")
    tab.get_by_role("link", name="API calls", exact=True).click()
    expect(tab.locator("nav.tabs a").nth(1)).to_have_text("Since the mark 0")
    mock.reset()
    expect_report(tab, "The mock was reset.")
    tab.reload()
    expect(tab.get_by_text("No calls yet.")).to_be_visible()
    assert tab.evaluate("sessionStorage.mark") == ""


def views_of_each_kind(client: FollowUp, mock: MockServer) -> list[str]:
    long = "x" * 2_000  # no text of a caller makes a page scroll sideways
    fill(client, mock, long)
    with httpx.Client(base_url=mock.url, headers={"Authorization": f"Bearer {mock.api_key}"}, trust_env=False) as http:
        http.post("/v1/patients", json={f"param{long}": 1})
        http.get(f"/v1/{long}")
    mock.add_fault(operation="*", kind="delay", seconds=0.001, times=None)
    mock.advance(hours=50)
    mock.update_patient(next(iter(client.patients.list())).id, opted_out=True)
    mock.mount(HOOKS, lambda _: httpx.Response(400, json={"detail": "invalid signature"}))
    (rejected,) = mock.trigger(type="patient.upserted")
    mock.advance()
    by_kind = {(each.partition("/")[0], "/" in each): each for each in Views(mock).everywhere()}
    others = [f"webhook_deliveries/{rejected.id}", "search?q=5555", "history/last_run", "messages?show=not_sent"]
    return [*by_kind.values(), *others]


@pytest.mark.parametrize(
    ("scheme", "width", "every"),
    [
        pytest.param("light", 1280, 8, id="an eighth of the views"),
        *(
            pytest.param(scheme, width, 1, marks=pytest.mark.nightly)
            for scheme in ("light", "dark")
            for width in (1280, 950, 390)
        ),
    ],
)
def test_every_view_is_accessible_and_fits_the_window(
    tab: Page, go: Open, client: FollowUp, mock: MockServer, width: int, scheme: Any, every: int
) -> None:
    tab.set_viewport_size({"width": width, "height": 844})
    tab.emulate_media(color_scheme=scheme)
    axe = Axe()
    for view in views_of_each_kind(client, mock)[::every]:
        go(view)
        expect(tab.locator("#live")).to_have_text("live")
        found = [
            (each["id"], each["impact"], [node["html"] for node in each["nodes"]])
            for each in axe.run(tab).response["violations"]
        ]
        assert found == [], (view, json.dumps(found, indent=2))
        too_wide = tab.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
        assert not too_wide, view


class TestLive:
    def test_a_live_update_keeps_input_focus_and_what_was_opened(
        self, tab: Page, go: Open, client: FollowUp, mock: MockServer
    ) -> None:
        client.webhook_endpoints.create(url=HOOKS, enabled_events=["patient.upserted"])
        patient = client.patients.create(phone=ANA["phone"])
        mock.advance(minutes=1)
        go(f"patients/{patient.id}")
        tab.get_by_text("2 attempts", exact=True).click()
        expect(tab.get_by_text("attempt 2: 500")).to_be_visible()
        tab.get_by_text("Hand off …", exact=True).click()
        tab.get_by_label("Reason").fill("asks for a person")
        mock.advance(minutes=5)
        expect(tab.get_by_text("attempt 3: 500")).to_be_visible()
        expect(tab.get_by_label("Reason")).to_have_value("asks for a person")
        expect(tab.get_by_label("Reason")).to_be_focused()

    def test_a_reset_while_the_connection_was_lost_is_no_restart(self, browser: Browser, mock: MockServer) -> None:
        page = browser.new_page()
        page.goto(f"{mock.url}/_mock/")
        expect(page.locator("#live")).to_have_text("live")
        page.context.set_offline(True)
        mock.reset()
        expect(page.locator("#live")).to_have_text("not live")
        page.context.set_offline(False)
        expect(page.get_by_role("status")).to_have_text("The mock was reset.")
        page.close()

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
            lost = page.get_by_role("heading", name="The mock was restarted; its data is gone")
            expect(lost).to_be_visible()
            page.reload()  # the tab remembers it
            expect(lost).to_be_visible()
            page.locator("main").get_by_role("link", name="Overview").click()
            expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
        page.close()


class TestTimes:
    def test_they_are_in_the_zone_of_the_organization_or_in_utc(
        self, tab: Page, go: Open, client: FollowUp, mock: MockServer
    ) -> None:
        """The zone is always visible, and the choice is kept in the tab."""
        booked = client.appointments.create(patient={"phone": ANA["phone"]}, start_at="2026-09-30T14:30:00Z")
        go("clock")
        expect(tab.locator("#now")).to_have_text("28 Sep 09:00:00 GMT-3")
        reminder = tab.get_by_role("row").filter(has_text="reminder").first
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
        tab.clock.set_system_time("2031-02-03T00:00:00Z")  # the clock has the year if it is not that of real time
        tab.reload()
        expect(tab.locator("#now")).to_have_text("28 Sep 2026 14:00:00 GMT+2")


def test_keys_open_views_search_and_select_rows(tab: Page, go: Open, client: FollowUp) -> None:
    first = client.patients.create(phone=ANA["phone"], full_name="Ana")
    second = client.patients.create(phone="+5491155550002", full_name="Bruno")
    go("overview")
    tab.keyboard.press("/")
    expect(tab.get_by_role("searchbox")).to_be_focused()
    tab.keyboard.type("g p")
    expect(tab.get_by_role("searchbox")).to_have_value("g p")
    tab.keyboard.press("Escape")
    tab.get_by_role("heading", level=1).focus()
    for letter, heading in (("d", "Webhook deliveries"), ("p", "Patients")):
        tab.keyboard.press("g")
        tab.keyboard.press(letter)
        expect(tab.get_by_role("heading", level=1)).to_contain_text(heading)
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
            second.get_by_label("API key of the organization").fill("fu_test_unknown")
            second.get_by_label("Token").fill(server.token or "")
            second.get_by_role("button", name="Apply").click()
            expect(second.get_by_role("dialog").get_by_role("alert")).to_have_text("There is no such API key.")
            second.get_by_label("API key of the organization").fill("")
            second.get_by_role("button", name="Apply").click()
            expect(second.get_by_role("heading", level=1)).to_contain_text("Overview")
            first.close()
            second.close()


def current(tab: Page) -> Locator:
    return tab.locator("nav.tabs a[aria-current]")


def test_a_tab_applies_at_once_and_keeps_the_focus(tab: Page, go: Open, client: FollowUp) -> None:
    for day in (1, 2, 3):
        booked = client.appointments.create(patient={"phone": ANA["phone"]}, start_at=f"2026-10-0{day}T12:00:00Z")
    client.appointments.cancel(booked.id)
    go("appointments")
    expect(current(tab)).to_have_text("All 3")
    tab.get_by_role("link", name="Cancelled 1").focus()
    tab.keyboard.press("Enter")
    expect(tab.get_by_role("row")).to_have_count(2)
    expect(tab.get_by_role("heading", level=1)).to_have_text("Appointments 1 of 3")
    expect(current(tab)).to_have_text("Cancelled 1")
    expect(current(tab)).to_be_focused()
    assert tab.url.endswith("#/appointments?status=cancelled")
    tab.get_by_role("link", name="Rescheduled 0").click()
    expect(tab.get_by_role("heading", level=1)).to_have_text("Appointments 0 of 3")
    tab.go_back()
    expect(current(tab)).to_have_text("Cancelled 1")


class TestClock:
    def test_it_is_advanced(self, tab: Page, go: Open, client: FollowUp, mock: MockServer) -> None:
        client.appointments.create(patient={"phone": ANA["phone"]}, start_at="2026-10-01T12:00:00Z")
        go("clock")
        now = tab.locator("#now")
        tab.get_by_role("button", name="+1 h").click()
        expect(now).to_have_text("28 Sep 10:00:00 GMT-3")
        expect_report(tab, "+1 h: nothing was due.")
        tab.get_by_role("button", name="Run next job").click()
        expect(now).to_have_text("30 Sep 09:00:00 GMT-3")
        expect_report(tab, "Run next job: 1 reminder sent.")
        tab.get_by_label("Advance to (America/Argentina/Buenos_Aires)").fill("2026-10-02T05:30:15")
        tab.get_by_role("button", name="Advance", exact=True).click()
        expect(now).to_have_text("2 Oct 05:30:15 GMT-3")
        expect(tab.get_by_role("button", name="Run next job")).to_be_disabled()

    def test_an_advance_reports_what_happened(self, tab: Page, go: Open, client: FollowUp, mock: MockServer) -> None:
        responses = iter([204, 500, 204])
        mock.mount(HOOKS, lambda _: httpx.Response(next(responses, 204)))
        client.appointments.create(patient={"phone": ANA["phone"]}, start_at="2026-09-29T14:00:00Z")
        client.visits.create(patient={"phone": ANA["phone"]}, visited_at="2026-09-28T11:00:00Z")
        client.webhook_endpoints.create(url=HOOKS, enabled_events=["patient.silent"])
        go("clock")
        for _ in range(2):
            mock.disturb(kind="late", seconds=3600)
            mock.trigger(type="patient.silent")
        tab.get_by_role("button", name="+1 d").click()
        expect_report(tab, "+1 d: 2 reminders sent, 1 post-visit message sent, 2 webhooks delivered, 1 failed.")
        tab.locator("#toast").get_by_role("link").first.click()
        expect(tab.get_by_role("heading", level=1)).to_have_text("Clock advanced")


class TestTools:
    def test_trigger_and_reset_which_asks_first(self, tab: Page, go: Open, client: FollowUp, mock: MockServer) -> None:
        go("simulate")
        tab.get_by_label("Event type").first.select_option("patient.silent")
        client.webhook_endpoints.create(url=HOOKS, enabled_events=["*"])
        tab.get_by_label("Data (JSON)").fill("{")
        tab.get_by_role("button", name="Send").click()
        expect_report(tab, "data: This must be JSON.")
        tab.get_by_label("Data (JSON)").fill('{"since": "yesterday"}')
        tab.get_by_role("button", name="Send").click()
        expect_report(tab, "1 delivery queued.")
        tab.get_by_role("button", name="Reset").click()
        tab.get_by_role("dialog").get_by_role("button", name="Cancel").click()
        assert mock.deliveries[0].payload["data"] == {"since": "yesterday"}
        tab.get_by_role("button", name="Reset").click()
        tab.get_by_role("dialog").get_by_role("button", name="Yes").click()
        expect_report(tab, "Reset to the initial state.")
        assert mock.deliveries == []

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
        # The fields that do not apply to a kind are hidden, and their values are not sent.
        faults.get_by_label("Kind").select_option("delay")
        faults.get_by_label("Seconds").fill("3")
        expect(faults.get_by_label("Status code")).to_be_hidden()
        faults.get_by_role("button", name="Add").click()
        expect(tab.get_by_text("delay of 3 s before the request takes effect")).to_be_visible()
        faults.get_by_label("Operation").select_option("events.create")
        faults.get_by_label("Kind").select_option("event")
        expect(faults.get_by_label("Before or after")).to_be_hidden()
        faults.get_by_role("button", name="Add").click()
        expect(tab.get_by_text("events.create: event")).to_be_visible()
        tab.get_by_role("button", name="Remove: patient.upserted: late").click()
        expect(tab.get_by_role("button", name="Remove:")).to_have_count(4)
        assert [each.kind for each in mock.webhook_faults] == ["duplicate"]
        assert [each.operation for each in mock.faults] == ["visits.create", "patients.create", "events.create"]


class TestDeliveries:
    def test_a_failed_delivery_is_sent_again(self, tab: Page, go: Open, mock: MockServer, client: FollowUp) -> None:
        client.webhook_endpoints.create(url=HOOKS, enabled_events=["*"])
        client.patients.create(phone=ANA["phone"])
        mock.advance(minutes=1)
        go(f"webhook_deliveries/{mock.deliveries[0].id}")
        expect(tab.get_by_role("heading", name="Not delivered yet: patient.upserted to")).to_be_visible()
        tab.locator("summary", has_text="Request headers").last.click()
        signature = tab.get_by_role("cell", name=mock.attempts(mock.deliveries[0].id)[1].signature)
        expect(signature).to_be_visible()
        mock.mount(HOOKS, lambda _: httpx.Response(204))
        tab.get_by_role("button", name="Send again").click()
        expect_report(tab, "Sent again: delivered (204).")
        expect(tab.get_by_role("heading", name="Delivered at attempt 3: patient.upserted to")).to_be_visible()

    def test_a_signature_is_verified_in_the_page(self, tab: Page, go: Open, mock: MockServer, client: FollowUp) -> None:
        mock.mount(HOOKS, lambda _: httpx.Response(400))
        mock.disturb(kind="wrong_signature")
        tab.set_viewport_size({"width": 390, "height": 844})
        endpoint = client.webhook_endpoints.create(url=HOOKS, enabled_events=["*"])
        client.patients.create(phone=ANA["phone"], full_name="Ana Ñandú")
        mock.advance(minutes=1)
        go(f"webhook_deliveries/{mock.deliveries[0].id}")
        sent: list[str] = []
        tab.on("request", lambda request: sent.append(f"{request.url} {request.headers} {request.post_data}"))
        output = tab.locator("output")
        hint = tab.get_by_role("region", name="Did your receiver reject the signature?")
        hint.get_by_role("button", name="Verify an attempt with a secret").click()
        expect(tab.get_by_label("Signing secret")).to_be_focused()
        tab.get_by_label("Signing secret").fill(endpoint.secret or "")
        tab.get_by_role("button", name="Verify", exact=True).click()
        expect(output).to_contain_text("The signature is valid")
        tab.get_by_label("Attempt", exact=True).select_option(index=1)  # the first attempt, which the fault signed
        tab.get_by_role("button", name="Verify", exact=True).click()
        expect(output).to_contain_text("The signature is invalid")
        client.patients.create(phone="+5491155550009")  # a live update keeps the result
        expect(tab.locator("#page")).to_have_attribute("data-version", re.compile(r"\d+"))
        expect(output).to_contain_text("The signature is invalid")
        assert not [each for each in sent if (endpoint.secret or "-") in each]


def test_the_strip_selects_a_time_with_mouse_and_keyboard(
    tab: Page, go: Open, client: FollowUp, mock: MockServer
) -> None:
    client.appointments.create(patient={"phone": ANA["phone"]}, start_at="2026-09-30T12:00:00Z")
    mock.advance(days=1, hours=4)
    go("overview")
    columns = tab.get_by_role("group", name="What happened when").get_by_role("link")
    assert columns.evaluate_all("all => all.map((each) => each.getAttribute('aria-label'))") == [
        "28 Sep 09:00 to 28 Sep 10:00. API calls: 1 done; Test controls: 1 advanced",
        "29 Sep 09:00 to 29 Sep 10:00. Messages: 1 done",
        "30 Sep 06:00 to 30 Sep 07:00. Messages: 1 due",
    ]
    columns.nth(1).click()
    expect(columns.nth(1)).to_have_attribute("aria-current", "true")
    expect(tab.get_by_role("region", name="Timeline")).to_contain_text("reminder 24 h before the start")
    mock.advance(seconds=1)  # a live update keeps the selection
    expect(tab.get_by_text("29 Sep 09:00 to 29 Sep 10:00 Show all")).to_be_visible()
    tab.get_by_role("link", name="Show all").click()
    expect(tab.get_by_role("region", name="Timeline")).to_be_hidden()
    columns.first.focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowRight"):  # there is no third one
        tab.keyboard.press(key)
    expect(columns.nth(2)).to_be_focused()
    tab.keyboard.press("ArrowLeft")
    tab.keyboard.press("Enter")
    expect(columns.nth(1)).to_have_attribute("aria-current", "true")
    expect(columns.nth(1)).to_be_focused()


def test_the_colours_of_json_leave_its_characters(tab: Page, go: Open, client: FollowUp) -> None:
    go("overview")
    coloured = """async (text) => {
        const { colourJson } = await import("./static/json.js");
        const pre = Object.assign(document.createElement("pre"), { textContent: text });
        pre.dataset.json = "";
        document.body.append(pre);
        colourJson(document.body);
        return [pre.textContent, [...pre.children].map((each) => `${each.className} ${each.textContent}`)];
    }"""
    whole = '{"a": "b: \\"c\\"", "n": -1.5e3, "t": [true]}'
    spans = ['json-key "a"', 'json-string "b: \\"c\\""', 'json-key "n"', "json-number -1.5e3", 'json-key "t"']
    for text, found in {whole: [*spans, "json-literal true"], '["<b>", "unfin…': ['json-string "<b>"']}.items():
        assert tab.evaluate(coloured, text) == [text, found]
