"""The open points have the same ids in the documents and in ``calibrate``, and its page lists each of them once."""

import re
from pathlib import Path

import pytest

from followup_mockserver.calibration.not_asked import NOT_ASKED
from followup_mockserver.calibration.probes import POINTS

DOCS = Path(__file__).parents[2] / "docs"


def rows(page: str, heading: str) -> list[list[str]]:
    """Return the cells of the rows of the first table after a heading."""
    text = ("\n" + (DOCS / page).read_text()).partition(f"\n{heading}\n")[2]
    table = text[text.index("\n|") :].partition("\n\n")[0].strip().splitlines()
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in table[2:]]


def test_each_open_point_is_asked_or_has_a_reason() -> None:
    ids = [cells[-1].strip(" |`") for cells in rows("open-points.md", "# Open points of the specification")]
    assert len(ids) == len(set(ids))
    assert sorted(ids) == sorted([*(each.id for each in POINTS), *NOT_ASKED])


def test_the_page_lists_what_is_asked() -> None:
    found = [(cells[0], cells[1], cells[2].strip(" |")) for cells in rows("how-to/calibrate.md", "## What is asked")]
    assert found == [
        (f"`{each.id}`", each.ask.__doc__, ", ".join(f"`{scope}`" for scope in each.scopes) or "none")
        for each in POINTS
    ]


def test_the_page_lists_what_is_not_asked() -> None:
    found = [(cells[0], cells[1].strip(" |")) for cells in rows("how-to/calibrate.md", "## What is not asked")]
    assert found == [(f"`{point}`", reason) for point, reason in NOT_ASKED.items()]


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.id)
def test_each_question_is_a_question(point: object) -> None:
    question = point.ask.__doc__  # type: ignore[attr-defined]
    assert re.search(r"\?( |$)", question)
    assert "\n" not in question
