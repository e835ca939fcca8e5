"""Reads the values of cells: times, dates, phones, and other texts by the rules of the service."""

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from followup._core.codec.phones import OBSOLETE_IN_MEXICO, e164, is_landline, make_mobile, possible_number
from followup.imports.formats import EXCEL, Format, Moment, time_of_day

Cell = str | datetime | date | time | int | float | None
"""Of a text always a text, of a workbook also a date, a time or a number."""


class Invalid(Exception):
    """A value that cannot be used.

    Attributes:
        code: code of the doubt.
        detail: the detail in its text; it does not contain the value.
    """

    def __init__(self, code: str, detail: str = "") -> None:
        super().__init__(code)
        self.code = code
        self.detail = detail


LONGEST = 5_000
"""Characters of a text that the service takes."""

_EMPTY_WORDS = "- -- --- . .. 0 s/d s/n n/a n/d null none ninguno 00/00/0000 00-00-0000 0000-00-00"
EMPTY: Final = frozenset(_EMPTY_WORDS.split()) | {"no tiene", "não tem", "nao tem", "sin datos", "sem dados"}
"""What people and systems write where there is nothing, in lower case."""

_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL = r"(?!..--)[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_EMAIL = re.compile(rf"(?=.{{1,64}}@){_ATOM}(?:\.{_ATOM})*@(?=.{{1,253}}$){_LABEL}(?:\.{_LABEL})*")

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_SPREADSHEET_ERROR = re.compile(
    r"#(?:N/[AD]\b|[¡¿]?(?:REF|VALUE|VALOR|DIV/0|NAME|NOMBRE|NOME|NUM|NÚM|NULL|NULO|NUL|SPILL|CALC)[!?])"
)
_SCIENTIFIC = re.compile(r"[+-]?\d+(?:[.,]\d+)?E[+-]\d+", re.IGNORECASE)
_AS_FORMULA = re.compile(r'="(.*)"')

_ISO_TIME = re.compile(r"\d{4}-?\d\d-?\d\d[Tt ]\d\d[\d:.,]*(?:[Zz]|[+-]\d\d(?::?\d\d)?)?", re.ASCII)
_ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_YEARS = range(2, 9999)
"""The years that the service takes in a time."""

_ISO_EXAMPLE = "ISO 8601 with date and time, such as 2026-09-28T10:30"

_END_OF_FILE = "\x1a"
"""Old programs end a text file with it."""

_MOST_EXACT = 1e15
"""A workbook keeps 15 digits of a number; it shows a longer one in scientific notation."""

_INVISIBLE = re.compile("[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
"""Marks of directions and places where a line may break, which nobody sees."""


def visible_part(text: str) -> str:
    """Return a text without characters that nobody sees."""
    return text if text.isascii() else _INVISIBLE.sub("", text)


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
    return any(text_of(cell).strip(_END_OF_FILE) for cell in cells)


def without_protection(cell: Cell) -> Cell:
    """Return a cell without the apostrophe or the formula that keeps a spreadsheet from changing a text."""
    if not isinstance(cell, str):
        return cell
    text = cell.strip()
    if text[:1] == "'":
        return text[1:].strip()
    found = _AS_FORMULA.fullmatch(text) if text[:1] == "=" else None
    return found[1].strip() if found else text


def is_damaged(text: str) -> bool:
    """Return whether a spreadsheet or a program has changed a number, so that digits are lost or added."""
    return text.endswith((".0", ",0")) or ("e" in text.casefold() and _SCIENTIFIC.fullmatch(text) is not None)


def check_length(text: str, field: str) -> None:
    """Raise ``Invalid`` if a text is too long for the service."""
    if len(text) > LONGEST:
        raise Invalid("field_invalid", f"{field} has more than {LONGEST:,} characters")


def checked(text: str, field: str) -> str:
    """Return a text that the service takes.

    Raises:
        Invalid: it does not.
    """
    # Most texts are printable, which is the faster question; what is not may be harmless, such as a no-break space.
    if not text.isprintable() and _CONTROL.search(text):
        raise Invalid("field_invalid", f"{field} has control characters")
    if "#" in text and _SPREADSHEET_ERROR.search(text):
        raise Invalid("field_invalid", f"{field} is an error of the spreadsheet")
    if field == "patient.email" and not _EMAIL.fullmatch(text):
        raise Invalid("field_invalid", f"{field} must be one e-mail address")
    return text


def date_of(cells: Sequence[Cell], formats: Sequence[Format], field: str) -> str:
    """Return a date as the service takes it.

    Raises:
        Invalid: the cells have none.
    """
    found: date | None = None
    if len(cells) == 1 and isinstance(cells[0], date):
        found = date(cells[0].year, cells[0].month, cells[0].day)
    elif formats:
        moments = (form.read(_joined(cells, form)) for form in formats)
        found = next((each.at.date() for each in moments if each), None)
    elif _ISO_DATE.fullmatch(text := _joined(cells, None)):
        try:
            found = date.fromisoformat(text)
        except ValueError:
            found = None
    if found is None:
        expected = " or ".join(each.text for each in formats) or "YYYY-MM-DD"
        raise Invalid("field_invalid", f"{field} must be a date, {expected}")
    # A day more, because it is tomorrow in other zones already.
    if found > datetime.now(UTC).date() + timedelta(days=1):
        raise Invalid("field_invalid", f"{field} is in the future")
    return found.isoformat()


class At(NamedTuple):
    """The time of an object.

    Attributes:
        instant: the time in UTC.
        local: the time that the clocks of the map's zone show, without a zone.
        is_ambiguous: whether they show it twice; then it is the first of the two.
        is_written_midnight: whether the time of day that is written is midnight, maybe of another zone.
        is_text: whether the date is written as text, and not as a date of a workbook.
        may_be_mixed: whether it is a date of a workbook whose day and month could be exchanged.
    """

    instant: datetime
    local: datetime
    is_ambiguous: bool
    is_written_midnight: bool
    is_text: bool
    may_be_mixed: bool


def instant_of(cells: Sequence[Cell], formats: Sequence[Format], zone: ZoneInfo, *, is_alone: bool) -> At:
    """Return the time in cells.

    Args:
        cells: the cells that make up the time, without empty ones.
        formats: the formats; none: ISO 8601.
        zone: the time zone of times without an offset.
        is_alone: whether the time has one column, so that a date in it means midnight.

    Raises:
        Invalid: the cells have no time, or one that the clocks of the zone skipped.
    """
    found = _of_workbook(cells, is_alone=is_alone)
    if found is None:
        read = (_parsed(_joined(cells, form), form) for form in formats or (None,))
        moments = {each for each in read if each}
        if len(moments) != 1:
            several = "and more than one of its formats fits"
            expected = " or ".join(each.text for each in formats) or _ISO_EXAMPLE
            raise Invalid("time_format", several if moments else expected)
        found = moments.pop()
    dates = [cell for cell in cells if isinstance(cell, date)]
    try:
        instant, local, is_ambiguous = _in_utc(found.at, zone)
    except OverflowError:
        raise Invalid("time_format", "in the years 2 to 9998") from None
    if instant.year not in _YEARS:
        raise Invalid("time_format", "in the years 2 to 9998")
    # Otherwise, day and month exchanged make no date, or the same one.
    may_be_mixed = any(each.day <= 12 and each.day != each.month for each in dates)
    return At(instant, local, is_ambiguous, found.is_midnight, not dates, may_be_mixed)


def _of_workbook(cells: Sequence[Cell], *, is_alone: bool) -> Moment | None:
    """Return the time in cells that are dates and times of a workbook."""
    match cells:
        case [datetime() as at]:
            return Moment(at, at.time() == time())
        case [date() as day] if is_alone:
            return Moment(datetime.combine(day, time()), is_midnight=True)
        case [date() as day, time() as clock] | [time() as clock, date() as day] if not isinstance(day, datetime):
            return Moment(datetime.combine(day, clock), clock == time())
    return None


def _joined(cells: Sequence[Cell], form: Format | None) -> str:
    """Return the cells as one text; dates and times of a workbook as the format has them."""
    return " ".join(_written(cell, form) for cell in cells)


def _written(cell: Cell, form: Format | None) -> str:
    if isinstance(cell, str) or form is None or form.text == EXCEL:
        return text_of(cell)
    if isinstance(cell, (int, float)):
        if form.has_hour_as_decimal and 0 <= cell < 24 and round(cell, 2) == cell:
            return f"{cell:.2f}"
        if 0 <= cell < 1:  # a part of a day
            cell = time_of_day(timedelta(days=cell))
    part = form.date_part if type(cell) is date else form.time_part if isinstance(cell, time) else None
    return cell.strftime(part) if part and isinstance(cell, (date, time)) else text_of(cell)


def _parsed(text: str, form: Format | None) -> Moment | None:
    if form is not None:
        return form.read(text)
    try:
        at = datetime.fromisoformat(text) if _ISO_TIME.fullmatch(text) else None
    except (ValueError, OverflowError):
        return None
    return None if at is None else Moment(at, at.time() == time())


def _in_utc(found: datetime, zone: ZoneInfo) -> tuple[datetime, datetime, bool]:
    if found.tzinfo is not None:
        return found.astimezone(UTC), found.astimezone(zone).replace(tzinfo=None), False
    first, second = found.replace(tzinfo=zone), found.replace(tzinfo=zone, fold=1)
    before, after = first.utcoffset(), second.utcoffset()
    assert before is not None
    assert after is not None
    # In a gap, zoneinfo has for fold=0 the offset before it; where a time occurs twice, the first of the two.
    if before < after:
        raise Invalid("time_nonexistent", zone.key)
    return first.astimezone(UTC), found, before > after


_BETWEEN_NUMBERS = re.compile(r"[/;,|\n]")
_LONGEST_AREA_CODE = 5
"""Digits, with the zero before it. A slash may separate the area code, but nothing else of the same number."""


def phone_of(text: str, country: str, mobiles: str) -> tuple[str, str | None]:
    """Return a phone number in E.164, and the code of a doubt about it, if any.

    Args:
        text: the number, in any notation.
        country: ISO 3166 code of the country of numbers without a country code.
        mobiles: ``keep``, or ``assume`` that an Argentine number written as a landline is the mobile.

    Raises:
        Invalid: it is not one possible phone number.
    """
    is_one = not is_damaged(text) and not _is_several(text)
    number = possible_number(text, country, OBSOLETE_IN_MEXICO) if is_one else None
    if number is None:
        raise Invalid("phone_invalid", country)
    if mobiles == "assume" and make_mobile(number):
        return e164(number), "phone_assumed_mobile"
    return e164(number), "phone_landline" if is_landline(number) else None


def _is_several(text: str) -> bool:
    separator = _BETWEEN_NUMBERS.search(text)
    return separator is not None and sum(map(str.isdigit, text[: separator.start()])) > _LONGEST_AREA_CODE
