"""What the scripts and the style sheet of the site do in a browser."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect
from support.browser import PATIENCE, chromium

LAPTOP, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    opened = browser.new_page(viewport=LAPTOP)  # type: ignore[arg-type]
    opened.set_default_timeout(PATIENCE)
    yield opened
    opened.close()


def test_a_chosen_tab_is_remembered_on_other_pages(page: Page, built: Path) -> None:
    page.goto((built / "how-to/clients.html").as_uri())
    assert not page.get_by_text("async with AsyncFollowUp() as client:").first.is_visible()
    page.get_by_text("Async", exact=True).first.click()
    page.goto((built / "reference/operations/patients.html").as_uri())
    expect(page.get_by_text("patient = await client.patients.create(").first).to_be_visible()
    expect(page.get_by_text("patient = client.patients.create(").first).to_be_hidden()


def test_results_appear_below_the_field_and_lead_to_the_word(page: Page, built: Path) -> None:
    page.goto((built / "how-to/ci.html").as_uri())
    page.locator(".sidebar-search").press_sequentially("ConnectionError")
    found = page.locator(".search-found li")
    expect(found.first).to_contain_text("reference")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/reference/error_classes.html"))
    expect(page.locator(".highlighted", has_text=re.compile("connectionerror", re.IGNORECASE)).first).to_be_visible()


def test_a_word_that_no_page_has_is_named_with_what_could_be_meant(page: Page, built: Path) -> None:
    page.goto((built / "search.html").as_uri() + "?q=whatsapp")
    expect(page.locator("#search-status")).to_contain_text("No page has “whatsapp”. Try: first test, receive webhooks")
    page.fill("#search-query", "webhoks")
    expect(page.locator("#search-status")).to_contain_text("No page has “webhoks”. Try: webhooks")


def test_the_example_is_beside_the_text_where_there_is_room(page: Page, built: Path) -> None:
    page.goto((built / "reference/operations/patients.html").as_uri())
    places = "each => [each.offsetLeft, each.offsetTop]"
    operation = page.locator("#patients-create")
    [left, top], [right, beside] = (operation.locator(f"> {each}").evaluate(places) for each in (".text", ".beside"))
    assert right > left + 400
    assert beside == top
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    [left, top], [right, below] = (operation.locator(f"> {each}").evaluate(places) for each in (".text", ".beside"))
    assert right == left
    assert below > top + 400


@pytest.mark.parametrize(("size", "mode"), [(LAPTOP, "light"), (PHONE, "dark")], ids=["laptop", "phone"])
def test_pages_are_accessible_and_the_reference_is_above_the_fold(
    browser: Browser, built: Path, size: dict[str, int], mode: str
) -> None:
    page = browser.new_page(viewport=size, color_scheme=mode)  # type: ignore[arg-type]
    for name in ("index", "how-to/clients", "reference/operations/doctors", "search"):
        page.goto((built / f"{name}.html").as_uri())
        found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa"]}).response["violations"]
        assert [(name, each["id"], [node["target"] for node in each["nodes"]]) for each in found] == []
        entry = page.locator(".sidebar-tree").get_by_text("Control API", exact=True).bounding_box()
        assert entry is not None
        assert size is PHONE or entry["y"] < LAPTOP["height"] - 50
    page.close()


def test_wide_pictures_scroll_on_a_phone_by_keyboard_too(page: Page, built: Path) -> None:
    page.goto((built / "dashboard.html").as_uri())
    expect(page.locator("[tabindex] > img")).to_have_count(0)
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    page.reload()
    overview = page.locator("[tabindex='0']:has(> img[src$='overview.png'])")
    overview.focus()
    assert overview.evaluate("each => each.scrollWidth > each.clientWidth")
