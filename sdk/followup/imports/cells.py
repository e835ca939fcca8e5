"""Cells of a table: of a text always texts, of a workbook also dates, times and numbers."""

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta

Cell = str | datetime | date | time | int | float | None

END_OF_FILE = "\x1a"
"""Old programs end a text file with it."""

_HALF_A_SECOND = timedelta(microseconds=500_000)
"""To round: a workbook has times as fractions of a day, which are not exact."""

_MOST_EXACT = 1e15
"""A workbook keeps 15 digits of a number; it shows a longer one in scientific notation."""


_INVISIBLE = re.compile("[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
"""Marks of directions and places where a line may break, which nobody sees."""


def visible_part(text: str) -> str:
    """Return a text without characters that nobody sees."""
    return text if text.isascii() else _INVISIBLE.sub("", text)


def time_of_day(since_midnight: timedelta) -> time:
    """Return the time of day, to the second, that is so long after midnight; a whole day after it is midnight."""
    return (datetime.min.replace(tzinfo=UTC) + since_midnight + _HALF_A_SECOND).time().replace(microsecond=0)


def rounded(moment: datetime) -> datetime:
    """Return a moment to the second."""
    return (moment + _HALF_A_SECOND).replace(microsecond=0)


def text_of(cell: Cell) -> str:
    """Return a cell as text, without spaces around it."""
    if isinstance(cell, str):  # most are
        return cell.strip()
    match cell:
        case None:
            return ""
        case float():
            if abs(cell) >= _MOST_EXACT:
                return f"{cell:.5E}"
            return str(int(cell)) if cell.is_integer() else f"{cell:.15g}"
        case datetime():
            return cell.isoformat(" ", "seconds")
        case time():
            return cell.isoformat("seconds")
    return str(cell)


def has_text(cells: Sequence[Cell]) -> bool:
    """Return whether any cell has a text."""
    return any(text_of(cell).strip(END_OF_FILE) for cell in cells)
