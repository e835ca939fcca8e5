"""The dashboard on windows of several widths, with forced colours (high contrast), and without motion."""

import httpx
import pytest
from playwright.sync_api import Page, expect

from followup import FollowUp
from followup_mockserver import MockServer

from .conftest import ANA, HOOKS, Open

STYLE = "(element, [name, pseudo]) => getComputedStyle(element, pseudo)[name]"


def style(tab: Page, selector: str, name: str) -> str:
    found: str = tab.locator(selector).first.evaluate(STYLE, [name, None])
    return found


@pytest.fixture
def many_results(client: FollowUp, mock: MockServer) -> None:
    """Events with each result: delivered, pending, and not sent to a disabled or to an unsubscribed endpoint."""
    mock.mount("https://up.example/in", lambda _: httpx.Response(204))
    for url in (HOOKS, "https://up.example/in", "https://off.example/in"):
        endpoint = client.webhook_endpoints.create(url=url, enabled_events=["*"])
    client.webhook_endpoints.update(endpoint.id, disabled=True)
    client.webhook_endpoints.create(url="https://other.example/in", enabled_events=["visit.completed"])
    client.appointments.create(patient={"phone": ANA["phone"], "full_name": "Ana"}, start_at="2026-10-01T12:00:00Z")
    client.events.create({"id": "e-1", "type": "order.issued", "data": {"order": {}}})  # has the longest reason
    mock.advance()


@pytest.mark.usefixtures("many_results")
def test_what_became_of_an_event_is_never_cut(tab: Page, go: Open) -> None:
    go("outbound_events")
    summaries = tab.locator("td.summary")
    expect(summaries).to_have_count(3)
    for text in ("1 pending", "1 delivered", "not sent: 1 disabled, 1 not subscribed"):
        expect(summaries.nth(1)).to_contain_text(text)
    for width in (1440, 1024, 900, 640, 390):
        tab.set_viewport_size({"width": width, "height": 900})
        for row in summaries.all():
            for part in (row, *row.locator(".status").all()):
                assert part.evaluate("each => each.scrollWidth <= each.clientWidth || !each.clientWidth"), width
                inside = "(each, row) => each.getBoundingClientRect().right <= row.getBoundingClientRect().right"
                assert part.evaluate(inside, row.element_handle()), width


class TestForcedColours:
    @pytest.fixture(autouse=True)
    def forced(self, tab: Page) -> None:
        tab.emulate_media(forced_colors="active")

    def test_states_and_what_is_selected_differ_from_the_others(
        self, tab: Page, go: Open, client: FollowUp, mock: MockServer
    ) -> None:
        client.webhook_endpoints.create(url=HOOKS, enabled_events=["*"])
        client.patients.create(phone=ANA["phone"], full_name="Ana")
        mock.advance()
        go("webhook_deliveries")
        assert style(tab, "td .status.pending", "borderTopStyle") == "solid"
        assert style(tab, "td .status.pending", "borderTopWidth") == "1px"
        selected, other = ".tabs a[aria-current]", ".tabs a:not([aria-current])"
        highlight = tab.evaluate(
            """() => {
                const probe = document.body.appendChild(document.createElement("p"));
                probe.style.background = "Highlight";
                return getComputedStyle(probe).backgroundColor;
            }"""
        )
        assert style(tab, selected, "backgroundColor") == highlight
        assert style(tab, selected, "forcedColorAdjust") == "none", "else a plate covers it behind the text"
        assert style(tab, other, "backgroundColor") != highlight
        assert style(tab, "#page > nav a[aria-current]", "outlineStyle") == "solid"
        assert style(tab, "#page > nav a:not([aria-current])", "outlineStyle") == "none"

    def test_the_focus_is_visible(self, tab: Page, go: Open) -> None:
        go("webhook_deliveries")
        tab.keyboard.press("Tab")
        assert style(tab, ":focus-visible", "outlineStyle") == "solid"
        assert style(tab, ":focus-visible", "outlineWidth") == "2px"

    def test_the_marks_of_the_timeline_and_of_the_connection_keep_their_colours(
        self, tab: Page, go: Open, client: FollowUp
    ) -> None:
        patient = client.patients.create(phone=ANA["phone"])
        go(f"patients/{patient.id}")
        green = "rgb(23, 105, 60)"
        for selector in (".timeline > li.succeeded", "#live"):
            mark = tab.locator(selector).first
            assert mark.evaluate(STYLE, ["backgroundColor", "::before"]) == green, selector


class TestMotion:
    MOVING = """() => [...document.querySelectorAll("*")].filter(each => {
        const style = getComputedStyle(each);
        return (
            parseFloat(style.transitionDuration) || style.animationName !== "none" || style.scrollBehavior === "smooth"
        );
    }).length"""

    def test_nothing_moves_for_those_who_ask_for_it(self, tab: Page, go: Open, client: FollowUp) -> None:
        client.patients.create(phone=ANA["phone"])
        tab.emulate_media(reduced_motion="no-preference")
        go("patients")
        assert tab.evaluate(self.MOVING) > 0
        tab.emulate_media(reduced_motion="reduce")
        assert tab.evaluate(self.MOVING) == 0
