"""Every test that the page on guarantees names as a proof exists."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = {
    name
    for folder in ("tests", "examples")
    for file in sorted((ROOT / folder).rglob("*.py"))
    for name in re.findall(r"^ *(?:async )?def (test_\w+)\(", file.read_text(), re.MULTILINE)
}


def test_the_named_tests_exist() -> None:
    named = re.findall(r"`(test_\w+)`", (ROOT / "docs/delivery-guarantees.md").read_text())
    assert len(named) > 30
    assert [name for name in named if name not in TESTS] == []
