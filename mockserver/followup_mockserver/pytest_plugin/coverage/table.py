"""The coverage as a table of at most 80 columns."""

import math
from collections.abc import Iterator, Sequence

import attrs

from followup_mockserver.pytest_plugin.coverage.counts import NO_ANSWER, OUTCOMES, WEBHOOK_OUTCOMES, Counts, Coverage

NOT_MET = "-"
_NAMES = 27
"""The width of the first column: that of the longest name of an operation."""

_STATUS_WIDTH = 3


@attrs.frozen
class Cell:
    """A part of a line.

    Attributes:
        text: the text, with the spaces before it.
        met: whether an outcome was met; None for a part that is no outcome.
    """

    text: str
    met: bool | None = None


Line = Sequence[Cell]


def table_of(coverage: Coverage) -> Iterator[Line]:
    """Yield the lines of the table."""
    yield from _section("operation", OUTCOMES, coverage.operations)
    yield ()
    yield from _section("webhook", WEBHOOK_OUTCOMES, coverage.webhooks)
    yield ()
    yield (Cell(f"{NOT_MET} was never met; an empty cell cannot be met."),)
    yield (Cell(f"{summary_of(coverage)}."),)


def summary_of(coverage: Coverage) -> str:
    """Return a summary. The percentage is rounded down, so that 100 % means all of them."""
    percent = math.floor(coverage.percent * 10) / 10
    return f"{coverage.met} of {coverage.possible} outcomes were met: {percent:.1f} %"


def _section(title: str, outcomes: Sequence[str], counts: Counts) -> Iterator[Line]:
    widths = {outcome: max(_STATUS_WIDTH, *map(len, _heading(outcome))) for outcome in outcomes}
    for number in (0, 1):
        headings = [f" {_heading(outcome)[number]:>{widths[outcome]}}" for outcome in outcomes]
        if any(map(str.strip, headings)):
            yield (Cell(f"{title if number else '':{_NAMES}}{''.join(headings)}"),)
    for name, row in counts.items():
        cells = [_cell(row.get(outcome), widths[outcome]) for outcome in outcomes]
        yield (Cell(f"{name:{_NAMES}}"), *cells)


def _heading(outcome: str) -> tuple[str, str]:
    """Return the two lines of the heading of a column."""
    return ("no", "answer") if outcome == NO_ANSWER else ("", outcome)


def _cell(count: int | None, width: int) -> Cell:
    if count is None:
        return Cell(" " * (width + 1))
    return Cell(f" {_short(count) if count else NOT_MET:>{width}}", met=count > 0)


def _short(count: int) -> str:
    """Return a number in at most three characters."""
    return str(count) if count < 1000 else f"{min(count // 1000, 9)}k+"
