"""Questions, as readers type them: the right page is among the first three results.

The script of the site ranks the index of the site, in the Node that Playwright brings along; no browser is needed.
"""

import json
import re
import subprocess
from pathlib import Path

from playwright._impl._driver import compute_driver_executable
from support.browser import PATIENCE, chromium

NOTHING: set[str] = set()
"""No page has the word."""

QUESTIONS = {
    "webhook signature": {"concepts/webhooks", "how-to/receivers"},
    "reminder not sent": {"how-to/explain"},
    "GitHub Actions": {"how-to/ci"},
    "duplicate": {"concepts/idempotency", "how-to/inbox"},
    "timeout": {"how-to/clients"},
    "retry": {"how-to/retries", "concepts/idempotency"},
    "install": {"installation"},
    "401": {"reference/errors", "troubleshooting"},
    "opt out": {"how-to/patients-and-staff"},
    "proxy": {"how-to/clients-details"},
    "Excel import": {"how-to/import-files"},
    "delete patient": {"how-to/erase"},
    "Django": {"how-to/django"},
    "advance clock": {"how-to/time-travel"},
    "phone format": {"how-to/import-phones"},
    "webhook not arriving": {"troubleshooting", "how-to/explain", "how-to/doctor"},
    "ConnectionError": {"reference/error_classes", "reference/errors", "how-to/retries"},
    "appointments.create": {"reference/operations/appointments"},
    "pytest fixture": {"how-to/testing"},
    "whatsapp": NOTHING,
    "crash": {"delivery-guarantees", "how-to/outbox", "how-to/simulation"},
    "GDPR": {"security", "security-officer"},
    "webhok signatur": {"concepts/webhooks", "how-to/receivers"},
    "cómo": {"how-to/import-files"},
    "how to cancel an appointment": {"reference/operations/appointments", "reference/commands/followup-appointments"},
    "api key": {"installation", "how-to/clients", "reference/client"},
    "docker": {"how-to/other-languages", "cookbook/tests"},
    "test without network": {"how-to/testing", "how-to/ci", "concepts/which-mock"},
    "PostgreSQL": {"how-to/databases", "how-to/outbox", "how-to/inbox", "installation"},
    "lambda": {"how-to/serverless"},
    "upgrade version": {"project", "changelog"},
    "was my event sent twice?": {"concepts/idempotency", "how-to/explain"},
    "429": {"how-to/retries"},
    "How do I retry a failed call": {"how-to/retries"},
    "rotating a secret": {"concepts/webhooks"},
    "Celery worker": {"how-to/background-workers"},
    "JavaScript tests": {"how-to/other-languages"},
    "which environment variable has the API key": {"installation"},
}


def found(built: Path, queries: list[str]) -> list[list[str]]:
    """Return the paths of the pages that the script of the site finds, the best first."""
    scripts = [(built / f"_static/{name}.js").read_text() for name in ("search_index", "search")]
    ask = f"console.log(JSON.stringify({json.dumps(queries)}.map((query) => search(query).map((page) => page.url))))"
    node, _ = compute_driver_executable()
    done = subprocess.run([node, "-"], input=";".join([*scripts, ask]), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return [[url.removesuffix(".html") for url in urls] for urls in json.loads(done.stdout)]


def test_the_right_page_is_among_the_first_three(built: Path) -> None:
    results = dict(zip(QUESTIONS, found(built, [*QUESTIONS]), strict=True))
    wrong = {
        query: pages[:5]
        for query, pages in results.items()
        if (not QUESTIONS[query] & {*pages[:3]} if QUESTIONS[query] else pages)
    }
    assert wrong == {}


def test_accents_case_and_punctuation_make_no_difference(built: Path) -> None:
    results = found(built, ["Práctica", "practica", "PRÁCTICA?", "Pra\u0301ctica"])
    assert results[0]
    assert results == [results[0]] * 4


def test_the_page_of_the_search_shows_results_while_the_reader_types(built: Path) -> None:
    with chromium() as browser:
        page = browser.new_page()
        page.set_default_timeout(PATIENCE)
        page.goto((built / "how-to/ci.html").as_uri())
        page.locator(".sidebar-search").fill("rotate a secret")
        page.locator(".sidebar-search").press("Enter")
        assert page.locator("#search-results h2").first.inner_text() == "How webhooks work"
        page.locator("#search-query").fill("Django")
        page.locator("#search-results a", has_text="Django").first.click()
        page.wait_for_url(re.compile("/(how-to/django|cookbook/receivers).html"))
