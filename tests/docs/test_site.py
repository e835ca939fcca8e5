"""The site has few entries of navigation, one page for each title, and a description of each page."""

import re
from pathlib import Path

from support.pages import DOCS

MOST_ENTRIES = 30


def titles(built: Path) -> dict[str, str]:
    """Return the title of each page of the site, by its path."""
    pages = [str(page.relative_to(DOCS).with_suffix("")) for page in DOCS.rglob("*.md") if "_build" not in page.parts]
    html = {f"{page}.html": (built / f"{page}.html").read_text() for page in pages if page != "index"}
    return {page: re.findall(r"<title>(.*?) - followup ", text)[0] for page, text in html.items()}


def test_the_navigation_has_few_entries_and_reaches_every_page(built: Path) -> None:
    navigation = (built / "index.html").read_text().partition('<div class="sidebar-tree">')[2].partition("</aside>")[0]
    assert 20 < navigation.count('<li class="toctree-l1') <= MOST_ENTRIES
    linked = set(re.findall(r'href="([^"#]+)"', navigation))
    assert {*titles(built)} - linked == set()


def test_no_two_pages_have_the_same_title(built: Path) -> None:
    seen = [title.lower() for title in titles(built).values()]
    assert sorted(seen) == sorted(set(seen))


def test_each_page_has_a_description_of_its_own(built: Path) -> None:
    found = {}
    for page in titles(built):
        [text] = re.findall(r'<meta name="description" content="([^"]+)">', (built / page).read_text())
        assert text not in found, (page, found[text])
        found[text] = page
        assert 15 < len(text) < 400


def test_a_page_that_has_moved_leads_to_its_new_place(built: Path) -> None:
    for old in ("versioning", "control-api", "concepts/time", "how-to/pagination"):
        page = built / f"{old}.html"
        [target] = re.findall(r'url=([^"]+)"', page.read_text())
        assert (page.parent / target).resolve().is_file(), old


def test_each_citation_of_the_specification_leads_to_its_section(built: Path) -> None:
    sections = set(re.findall(r'<section id="(section-[^"]+)"', (built / "specification.html").read_text()))
    numbers = {"1", "2", "3", "4", "5", "6", "6.1", "6.2", "7", "8", "9"}
    anchors = {
        number: next(each for each in sections if each.startswith(f"section-{number.replace('.', '-')}-"))
        for number in numbers
    }
    assert len(sections) == len(numbers)
    cited = 0
    link = re.compile(r'href="[^"#]*specification\.html#([^"]+)">(?:<span[^>]*>)?(?:section )?([\d.]+)<')
    for page in built.glob("reference/**/*.html"):
        for after in re.split(r"pecification,\s+(?=sections? |<a )", page.read_text())[1:]:
            links = link.findall(after[:400])
            assert links, (page, after[:80])
            assert [anchor for anchor, number in links if anchor != anchors[number]] == []
            cited += 1
    assert cited > 60
