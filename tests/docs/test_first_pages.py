"""The first pages that a newcomer reads: their output is real, their figures are measured, and their lists complete."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from support.shell import COMMAND, clean_environment

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def without_ports(text: str) -> list[str]:
    return [re.sub(r":\d{4,5}\b(?!\d*Z)", ":PORT", line).rstrip() for line in text.strip().splitlines()]


def test_the_readme_shows_what_the_demo_prints() -> None:
    [shown] = re.findall(r"^```text\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    result = subprocess.run(
        [*COMMAND, "demo"], capture_output=True, text=True, check=True, timeout=60, env=clean_environment()
    )
    lines = without_ports(shown)
    assert without_ports(result.stdout)[: len(lines)] == lines


def test_the_picture_of_the_readme_comes_first() -> None:
    assert README.index("![") < README.index("```")


@pytest.mark.parametrize(
    ("claim", "row", "column"),
    [
        (r"finds 19 planted bugs in (\d+) s", "finding 19 planted bugs", "ours"),
        (r"five calls and two webhooks takes ([\d.]+) ms", "a test with five calls and two webhooks", "ours"),
        (r"Listing 100 patients takes ([\d.]+) ms", "stripe, customers.list", "ours"),
        (r"stripe-python takes ([\d.]+) ms", "stripe, customers.list", "theirs"),
    ],
)
def test_the_figures_of_the_readme_are_those_of_the_benchmarks(claim: str, row: str, column: str) -> None:
    [figure] = re.findall(claim, " ".join(README.split()))
    [line] = [each for each in (ROOT / "docs/benchmarks.md").read_text().splitlines() if f"| {row} |" in each]
    _, _, ours, _, theirs, *_ = line.split("|")
    microseconds = float({"ours": ours, "theirs": theirs}[column].replace(",", ""))
    seconds = microseconds / (1_000_000 if claim.endswith(" s") else 1_000)
    digits = len(figure.partition(".")[2])
    assert round(seconds, digits) == float(figure)


def test_every_extra_is_described() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    section = (ROOT / "docs/installation.md").read_text().partition("## Extras")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == set(extras)


def test_a_missing_extra_is_named() -> None:
    blocked = "import sys; sys.modules['sqlalchemy'] = None; import followup.outbox"
    result = subprocess.run([sys.executable, "-c", blocked], capture_output=True, text=True, check=False, timeout=60)
    assert "store" in result.stderr
