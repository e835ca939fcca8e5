"""Every test that a page names as a proof exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = {
    name
    for folder in ("tests", "examples")
    for file in sorted((ROOT / folder).rglob("*.py"))
    for name in re.findall(r"^ *(?:async )?def (test_\w+)\(", file.read_text(), re.MULTILINE)
}


@pytest.mark.parametrize("page", ["delivery-guarantees.md", "how-to/inbox.md"])
def test_the_named_tests_exist(page: str) -> None:
    named = re.findall(r"`(test_\w+)`", (ROOT / "docs" / page).read_text())
    assert len(named) > 10
    assert [name for name in named if name not in TESTS] == []
