"""The open points have the same ids in the documents and in ``calibrate``; its page lists scopes and exceptions."""

import re
from pathlib import Path

import pytest

from followup_mockserver.judge.calibration.calibrate import NOT_ASKED
from followup_mockserver.judge.calibration.probes import POINTS

DOCS = Path(__file__).parents[2] / "docs"


def section(page: str, heading: str) -> str:
    """Return the text between a heading and the next one."""
    return (DOCS / page).read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def items(text: str) -> list[str]:
    """Return the items of a list, each in one line."""
    return [" ".join(each.split()) for each in re.findall(r"^- (.*?)(?=^- |^$|\Z)", text, re.MULTILINE | re.DOTALL)]


def test_each_open_point_is_asked_or_has_a_reason() -> None:
    points = (DOCS / "open-points.md").read_text().partition("\n## Options\n")[0]
    ids = re.findall(r"^\| [^|]+ \| [^|]+ \| `(\w+)` \|$", points, re.MULTILINE)
    assert len(ids) == points.count("\n| ") - points.count("\n| point |")
    assert len(ids) == len(set(ids))
    assert sorted(ids) == sorted([*(each.id for each in POINTS), *NOT_ASKED])


def test_the_page_lists_the_scopes_of_all_questions() -> None:
    listed = re.findall(r"`(\w+:\w+)`", " ".join(items(section("how-to/calibrate.md", "Scopes"))))
    assert len(listed) == len(set(listed))
    assert set(listed) == {scope for each in POINTS for scope in each.scopes}


def test_the_page_lists_what_is_not_asked() -> None:
    found = [
        (point, reason)
        for ids, _, reason in (
            each.partition(": ") for each in items(section("how-to/calibrate.md", "What is not asked"))
        )
        for point in re.findall(r"`(\w+)`", ids)
    ]
    assert sorted(found) == sorted(NOT_ASKED.items())


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.id)
def test_each_question_is_a_question(point: object) -> None:
    question = point.ask.__doc__  # type: ignore[attr-defined]
    assert re.search(r"\?( |$)", question)
    assert "\n" not in question
