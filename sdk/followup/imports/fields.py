"""Reads the fields of a row: what their cells mean, and what is doubtful about it.

How the cells of a field are read follows from the map. What the first ones mean is remembered: dates, types and doctors
come again and again.
"""

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any, NamedTuple

from followup.imports.documents import DocumentError, document_of
from followup.imports.maps import PLACEHOLDER, TIMES, Column, Map
from followup.imports.values import (
    EMPTY,
    EMPTY_STARTS,
    Cell,
    Invalid,
    checked,
    checked_length,
    cleaned,
    date_of,
    instant_of,
    is_damaged,
    phone_of,
    text_of,
)

_AS_WRITTEN = ("external_id", "status", *TIMES)
"""Fields in which ``-`` and ``0`` are values."""

_MOST, _MOST_SLOW = 5_000, 50_000
"""Cells of a field whose meaning is remembered; of phones and times, which take longest to read, more."""

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
        pick: picks its cells out of a row.
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
        self.pick: Callable[[Sequence[Cell]], tuple[Cell, ...]] = picking(self.positions)
        self._most = _MOST_SLOW if name in ("patient.phone", *TIMES) else _MOST
        self._seen: dict[tuple[Cell, ...], Found] = {}

    def read(self, cells: tuple[Cell, ...]) -> Found:
        """Return what the cells mean. Only the first are remembered: in a column of numbers, none come again."""
        found = self._seen.get(cells)
        if found is None:
            found = self._read(cells)
            if len(self._seen) < self._most:
                self._seen[cells] = found
        return found

    def _read(self, cells: tuple[Cell, ...]) -> Found:
        column, name = self._column, self._name
        texts = [text_in(each) for each in cells]
        parts: list[Cell] = [_cleaned(each) for each, text in zip(cells, texts, strict=True) if text]
        text = " ".join(filter(None, texts))
        if column.constant is not None:
            text = column.constant
            parts = [text]
        elif column.template is not None and parts:
            rest = iter(texts)
            text = " ".join(PLACEHOLDER.sub(lambda _: next(rest), column.template).split())
            parts = [text]
        if name == "patient.full_name":
            text = _as_sent(text, column)
        if text[:1] in EMPTY_STARTS and name not in _AS_WRITTEN and text.casefold() in EMPTY:
            text = ""
        if not text and name not in TIMES:
            return _NOTHING
        try:
            return self._convert(checked_length(text, name), parts)
        except Invalid as error:
            return Found(text, None, error.code, error.detail)

    def _convert(self, text: str, cells: Sequence[Cell]) -> Found:
        """Return what a text means, or the cells of a date or time."""
        name, country = self._name, self._map.country
        match name:
            case "start_at" | "visited_at":
                return self._time(text, cells)
            case "patient.date_of_birth":
                return Found(text, date_of(cells, self._column.formats, name))
            case "patient.phone":
                return self._phone(text)
            case "patient.dni":
                return Found(text, *_document(_undamaged(text), country))
            case "external_id" | "patient.external_id":
                return Found(text, checked(_undamaged(text), name))
        return Found(text, checked(text, name))

    def _phone(self, text: str) -> Found:
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


def picking(positions: Sequence[int]) -> Callable[[Sequence[Cell]], tuple[Cell, ...]]:
    """Return what picks the cells at these positions out of a row."""
    if len(positions) > 1:
        return itemgetter(*positions)
    return (lambda cells: (cells[positions[0]],)) if positions else lambda _: ()


def text_in(cell: Cell) -> str:
    """Return the text of a cell, without what keeps a spreadsheet from changing it."""
    text = text_of(cell)
    return cleaned(text) if text[:1] in ("'", "=") else text


def _cleaned(cell: Cell) -> Cell:
    return text_in(cell) if isinstance(cell, str) else cell


def _undamaged(text: str) -> str:
    if is_damaged(text):
        raise Invalid("id_damaged")
    return text


def _document(text: str, country: str) -> tuple[str, str | None]:
    try:
        return document_of(checked(text, "patient.dni"), country)
    except DocumentError as error:
        raise Invalid("dni_invalid", str(error)) from None


def _as_sent(name: str, column: Column) -> str:
    """Return a name in one line, with the surname last if the map says that it is first."""
    surname, comma, given = " ".join(name.split()).partition(",")
    return f"{given} {surname}".strip() if comma and column.is_surname_first else " ".join(name.split())
