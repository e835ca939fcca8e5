"""The dashboard on windows of several widths, with forced colours (high contrast), and without motion."""

import pytest
from playwright.sync_api import Page

from followup import FollowUp
from followup_mockserver import MockServer

from .conftest import ANA, HOOKS, Open

STYLE = "(element, [name, pseudo]) => getComputedStyle(element, pseudo)[name]"


def style(tab: Page, selector: str, name: str) -> str:
    found: str = tab.locator(selector).first.evaluate(STYLE, [name, None])
    return found


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
