"""Reads the fields of a row: what their cells mean, and what is doubtful about it.

How the cells of a field are read follows from the map. What the first ones mean is remembered: dates, types and doctors
come again and again.
"""

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any, Final, NamedTuple

from followup.imports.documents import DocumentError, document_of
from followup.imports.maps import DATE_OF_BIRTH, PLACEHOLDER, TIMES, Column, Map
from followup.imports.values import (
    EMPTY,
    Cell,
    Invalid,
    check_length,
    checked,
    date_of,
    instant_of,
    is_damaged,
    phone_of,
    text_of,
    without_protection,
)

_AS_WRITTEN = ("external_id", "status", *TIMES)
"""Fields in which ``-`` and ``0`` are values."""

_MOST, _MOST_SLOW = 5_000, 50_000
"""Cells of a field whose meaning is remembered; of phones and times, which take longest to read, more."""

_LONGEST_REMEMBERED = 200
"""Characters of a text whose meaning is remembered, because thousands of long ones would take much memory."""

_LONGEST_EMPTY: Final = max(map(len, EMPTY))
_DATE = re.compile(r"\d{1,2}[/.-]\d{1,2}[/.-]\d{2,4}")


class Found(NamedTuple):
    """What the cells of a field mean.

    Attributes:
        text: their text, as the file has it; empty if they mean nothing.
        value: the value as it is sent; None if there is none, or it is invalid.
        code: code of the doubt about it, if any.
        detail: the detail in the text of the doubt.
    """

    text: str
    value: Any = None
    code: str | None = None
    detail: str = ""


_NOTHING = Found("")


class Field:
    """Where a field comes from, and how it is read.

    Attributes:
        positions: the positions of its cells.
        pick: picks its cells out of a row; a single one is no tuple.
        seen: the meaning of what was picked before, which need not be read again.
        has_text_dates: whether dates of the times so far were text, and not dates of a workbook.
        has_clocks: whether a time so far was another than midnight.
    """

    has_text_dates: bool = False
    has_clocks: bool = False

    def __init__(self, name: str, map: Map, header: Sequence[str], now: datetime) -> None:
        self._name = name
        self._map = map
        self._now = now
        self._column: Column = map.columns[name]
        self.positions: list[int] = [header.index(each) for each in self._column.headers]
        self.pick: Callable[[Sequence[Cell]], Any] = picking(self.positions)
        conversions: dict[str, Callable[[str, Sequence[Cell]], Found]] = {
            **dict.fromkeys(TIMES, self._time),
            **dict.fromkeys(("external_id", "patient.external_id"), self._id),
            DATE_OF_BIRTH: self._date,
            "patient.phone": self._phone,
            "patient.dni": self._document,
        }
        self._convert = conversions.get(name, self._text)
        self._empty = frozenset[str]() if name in _AS_WRITTEN else EMPTY
        self._most = _MOST_SLOW if name in ("patient.phone", *TIMES) else _MOST
        self.seen: dict[Any, Found] = {}

    def read(self, picked: Any) -> Found:
        """Return what its cells mean. Only the first are remembered: in a column of numbers, none come again."""
        found = self._read((picked,) if len(self.positions) == 1 else picked)
        if len(self.seen) < self._most and len(found.text) <= _LONGEST_REMEMBERED:
            self.seen[picked] = found
        return found

    def _read(self, cells: Sequence[Cell]) -> Found:
        column = self._column
        parts = [part for part in map(without_protection, cells) if part not in ("", None)]
        if column.constant is not None:
            parts = [column.constant]
        elif column.template is not None and parts:
            texts = (text_of(without_protection(each)) for each in cells)
            parts = [" ".join(PLACEHOLDER.sub(lambda _: next(texts), column.template).split())]
        text = text_of(parts[0]) if len(parts) == 1 else " ".join(map(text_of, parts))
        if len(text) <= _LONGEST_EMPTY and text.casefold() in self._empty:
            text = ""
        if not text and self._name not in TIMES:  # an empty time is a doubt
            return _NOTHING
        try:
            check_length(text, self._name)
            return self._convert(text, parts)
        except Invalid as error:
            return Found(text, None, error.code, error.detail)

    def _text(self, text: str, _: Sequence[Cell]) -> Found:
        if self._name == "patient.full_name":
            text = _as_sent(text, is_surname_first=self._column.is_surname_first)
            if text.casefold() in EMPTY:
                return _NOTHING
        return Found(text, checked(text, self._name) or None)

    def _id(self, text: str, _: Sequence[Cell]) -> Found:
        if is_damaged(text):
            raise Invalid("id_damaged")
        return Found(text, checked(text, self._name))

    def _document(self, text: str, _: Sequence[Cell]) -> Found:
        if is_damaged(text):
            raise Invalid("id_damaged")
        try:
            return Found(text, *document_of(checked(text, self._name), self._map.country))
        except DocumentError as error:
            raise Invalid("dni_invalid", str(error)) from None

    def _date(self, text: str, cells: Sequence[Cell]) -> Found:
        return Found(text, date_of(cells, self._column.formats, self._name))

    def _phone(self, text: str, _: Sequence[Cell]) -> Found:
        phone, code = phone_of(text, self._map.country, self._map.mobiles)
        is_argentine_landline = code == "phone_landline" and self._map.country == "AR"
        return Found(text, phone, code, ', or set mobiles = "assume" in the map' if is_argentine_landline else "")

    def _time(self, text: str, cells: Sequence[Cell]) -> Found:
        zone, column = self._map.zone, self._column
        try:
            at = instant_of(cells, column.formats, zone, is_alone=len(column.headers) == 1)
        except Invalid:
            self.has_text_dates |= any(isinstance(each, str) and _DATE.fullmatch(each) for each in cells)
            raise
        self.has_text_dates |= at.is_text
        self.has_clocks |= not at.is_written_midnight
        if self._map.kind == "visits" and at.instant > self._now:
            return Found(text, at, "visit_in_future")
        return Found(text, at, "time_ambiguous", zone.key) if at.is_ambiguous else Found(text, at)


def picking(positions: Sequence[int]) -> Callable[[Sequence[Cell]], Any]:
    """Return what picks the cells at these positions out of a row: a tuple, unless there is only one."""
    return itemgetter(*positions) if positions else lambda _: ()


def _as_sent(name: str, *, is_surname_first: bool) -> str:
    """Return a name in one line, with the surname last if the map says that it is first."""
    surname, comma, given = (bare := " ".join(name.split())).partition(",")
    return f"{given} {surname}".strip() if comma and is_surname_first else bare
