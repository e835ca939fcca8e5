"""Doubts about the rows of a file: what is not certain, and what was done about it."""

import tomllib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import attrs

from followup._core.package_data import package_text


@attrs.frozen
class Doubt:
    """Something about a row that is not certain, or that is invalid.

    ``repr`` does not show the value, which may be personal data.

    Attributes:
        row: number of the row, as a spreadsheet shows it: the header is row 1. None for the whole file.
        column: header of the column, several joined by `` + ``; None for a row as a whole.
        code: what the doubt is about, such as ``phone_invalid``.
        value: text of the cell; None for a row as a whole.
        text: what was done, and how to decide otherwise. It never contains the value.
    """

    row: int | None
    column: str | None
    code: str
    value: str | None = attrs.field(repr=False)
    text: str

    def __reduce__(self) -> tuple[Any, ...]:
        return Doubt, (self.row, self.column, self.code, self.value, self.text)  # there may be millions

    @property
    def rejects(self) -> bool:
        """Whether the row was rejected because of this doubt."""
        return CODES[self.code].rejects


@attrs.frozen
class Code:
    """A kind of doubt.

    Attributes:
        rejects: whether it rejects the row.
        text: what was done, and how to decide otherwise; ``{detail}`` stands for what differs from row to row.
    """

    rejects: bool
    text: str


CODES: Final[Mapping[str, Code]] = {
    code: Code(**each) for code, each in tomllib.loads(package_text(__name__, "doubts.toml")).items()
}
"""The codes of doubts."""


def doubt(
    code: str, row: int | None = None, column: str | None = None, value: str | None = None, *, detail: str = ""
) -> Doubt:
    """Return a doubt with the text of its code."""
    return Doubt(row, column, code, value, _text(code, detail))


@lru_cache(maxsize=1000)
def _text(code: str, detail: str) -> str:
    return CODES[code].text.format(detail=detail)


def column_in(sheet: str, column: str | None) -> str | None:
    """Return the column of a doubt, with the sheet if several are read."""
    return f"{sheet}!{column or ''}" if sheet else column
