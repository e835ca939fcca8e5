"""The pages on concepts state what the code does."""

import re
from pathlib import Path

import pytest

from followup import InternalServerError
from followup_mockserver import MockService, pytest_plugin

CONCEPTS = Path(__file__).parents[2] / "docs/concepts"


def rows(page: str, heading: str) -> list[list[str]]:
    """Return the cells of the rows of the first table after a heading."""
    text = (CONCEPTS / page).read_text().partition(f"\n{heading}\n")[2]
    table = text[text.index("\n|") :].partition("\n\n")[0].strip().splitlines()
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in table[2:]]


def test_the_waits_are_those_of_the_table() -> None:
    shown = [re.findall(r"[\d.]+", cells[2]) for cells in rows("idempotency.md", "## Backoff and jitter")]
    ranges = [(float(shortest), float(longest)) for shortest, longest in shown]
    service = MockService(rate_limit=0)
    service.add_fault(operation="patients.list", kind="status", status=503, times=200)
    for _ in range(20):
        with pytest.raises(InternalServerError):
            service.client(max_retries=len(ranges)).patients.list()
    waits = [service.waits[start : start + len(ranges)] for start in range(0, len(service.waits), len(ranges))]
    for (shortest, longest), found in zip(ranges, zip(*waits, strict=True), strict=True):
        assert shortest <= min(found) < max(found) <= longest


def test_the_page_on_mocks_names_every_fixture() -> None:
    named = set(re.findall(r"`(followup_\w+)`", (CONCEPTS / "which-mock.md").read_text()))
    fixtures = {
        name
        for name, value in vars(pytest_plugin).items()
        if name.startswith("followup_") and type(value).__name__ == "FixtureFunctionDefinition"
    }
    assert fixtures
    assert named == fixtures - {"followup_options"}
