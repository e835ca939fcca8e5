"""Formats of dates and times, in the notation of ``strptime``, that read what systems and people write.

Unlike ``strptime``, they read months, weekdays, and a. m. and p. m. in Spanish, Portuguese and English whatever the
locale is, want two digits for minutes, and ignore the rest of a cell after a star.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta, timezone
from functools import lru_cache
from typing import Final

import attrs

EXCEL: Final = "excel"
"""The format of numbers of days since the end of 1899, as spreadsheets count them."""

_FIRST_DAY = datetime(1899, 12, 30)  # noqa: DTZ001 - as a spreadsheet has no zones
_HALF_A_SECOND = timedelta(microseconds=500_000)
"""To round: a workbook has times as fractions of a day, which are not exact."""

_CLOCK_YEARS = (1899, 1900)
"""The years of a day that means none: a spreadsheet or a database has only the time."""

_MONTHS, _WEEKDAYS = (
    [*zip(*(language.split() for language in names), strict=True)]
    for names in (
        (
            "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
            "janeiro fevereiro marco abril maio junho julho agosto setembro outubro novembro dezembro",
            "january february march april may june july august september october november december",
        ),
        (
            "lunes martes miercoles jueves viernes sabado domingo",
            "segunda terca quarta quinta sexta sabado domingo",
            "monday tuesday wednesday thursday friday saturday sunday",
        ),
    )
)

_WORD = r"(?P<{name}>[^\W\d_]+(?:-feira)?)\.?"
_PATTERNS: Final[Mapping[str, str]] = {
    "d": r"(?P<{name}>3[01]|[12]\d|0?[1-9])",
    "m": r"(?P<{name}>1[0-2]|0?[1-9])",
    "b": _WORD,
    "B": _WORD,
    "a": _WORD,
    "A": _WORD,
    "Y": r"(?P<{name}>\d{{4}})",
    "y": r"(?P<{name}>\d\d)",
    "H": r"(?P<{name}>2[0-3]|[01]?\d)",
    "I": r"(?P<{name}>1[0-2]|0?[1-9])",
    "M": r"(?P<{name}>[0-5]\d)",
    "S": r"(?P<{name}>[0-5]\d)",
    "f": r"(?P<{name}>\d{{1,6}})",
    "p": r"(?P<{name}>[ap])\s*\.?\s*m\b\.?",
    "z": r"(?P<{name}>Z|[+-]\d\d:?\d\d)",
    "%": "%",
}
_FIRST_OF_LAST_CENTURY = 69
"""The first year of two digits that is before 2000, as for ``strptime``."""

_HALF_DAY_IN_WORDS = re.compile(r"(?<![^\W\d_])[ap]\.?\s*m(?![^\W\d_])", re.IGNORECASE)


@attrs.frozen
class Moment:
    """A date and time as it is written.

    Attributes:
        at: the time; with an offset if that is written.
        is_midnight: whether the time of day that is written is midnight.
    """

    at: datetime
    is_midnight: bool


class FormatError(Exception):
    """A format that does not say all of a time, or of a date; its text says why."""


class Format:
    """A format.

    Args:
        text: the format.
        has_time: whether it is that of a time, and not of a date.

    Attributes:
        text: the format as the map has it.
        date_part, time_part: what a date or a time of day of a workbook is written with before it is read.
        has_hour_as_decimal: whether it reads numbers such as 15.30.

    Raises:
        FormatError: the format leaves something open, or loses the half of the day.
    """

    def __init__(self, text: str, *, has_time: bool) -> None:
        self.text = text
        self._pattern = re.compile("")
        self.date_part: str | None = _part(text, "aAbBdmyY")
        self.time_part: str | None = _part(text, "HIMSfp")
        self.has_hour_as_decimal: bool = "%H.%M" in text
        if text.strip() != EXCEL:
            self._compile(text.strip(), has_time=has_time)

    def _compile(self, text: str, *, has_time: bool) -> None:
        pieces = re.split(r"%(.)", text.removesuffix("*"), flags=re.DOTALL)
        pattern, used = "", ""
        for position, piece in enumerate(pieces):
            if position % 2 == 0:
                literal = "".join(r"\s+" if each.isspace() else re.escape(each) for each in re.split(r"(\s+)", piece))
                pattern += literal
                continue
            if piece not in _PATTERNS:
                raise FormatError(f"{_needs(has_time=has_time)}; %{piece} is not understood")
            if piece == "p":  # people write 10:30am without a space, too
                pattern = pattern.removesuffix(r"\s+") + (r"\s*" if pattern.endswith(r"\s+") else "")
            name = f"{piece}{used.count(piece)}"
            used += piece
            pattern += _PATTERNS[piece].format(name=name)
        if "%" in "".join(pieces[::2]):
            raise FormatError(f"{_needs(has_time=has_time)}; a % has nothing after it")
        self._check(used, "".join(pieces[::2]), has_time=has_time)
        self._pattern = re.compile(pattern + (r"(?:.*)" if text.endswith("*") else ""), re.IGNORECASE | re.DOTALL)

    def _check(self, used: str, literals: str, *, has_time: bool) -> None:
        if "H" in used and ("p" in used or _HALF_DAY_IN_WORDS.search(literals)):
            raise FormatError("has %H with a. m. or p. m., which would lose the half of the day: use %I and %p")
        has_date = "d" in used and any(each in used for each in "mbB") and any(each in used for each in "yY")
        has_clock = "H" in used or ("I" in used and "p" in used)
        most = 2 if has_time else 1
        is_repeated = any(used.count(each) > (most if each in "dmbBYyHIMSp" else 1) for each in used)
        is_mixed = any(used.count(each) > 1 for each in "dmY") and used.count("d") != used.count("H") + used.count("I")
        if not has_date or (has_time and not has_clock) or is_repeated or is_mixed:
            raise FormatError(_needs(has_time=has_time))

    def read(self, text: str) -> Moment | None:
        """Return the time in a text; None if it does not fit."""
        if self.text.strip() == EXCEL:
            return _of_serial_numbers(text)
        found = self._pattern.fullmatch(text)
        if found is None:
            return None
        values = {name: value for name, value in found.groupdict().items() if value}
        try:
            return _moment(values)
        except (ValueError, KeyError, OverflowError):
            return None


def _needs(*, has_time: bool) -> str:
    needs = "year, month, day and hour" if has_time else "year, month and day"
    return f"must have {needs} in the notation of strptime, such as %d/%m/%Y %H:%M; %z is an offset"


@lru_cache(maxsize=1_000)
def format_of(text: str, *, has_time: bool) -> Format:
    """Return the format that a text describes; raises ``FormatError``."""
    return Format(text, has_time=has_time)


def _part(text: str, directives: str) -> str | None:
    """Return the part of a format between the first and the last of some directives."""
    found = re.search(rf"%[{directives}](?:[^%]*%[{directives}])*[^%\s*]*", text)
    return found and found[0]


def _moment(values: Mapping[str, str]) -> Moment | None:
    first, second = _day(values, "0"), _day(values, "1")
    clock = _clock(values, "0")
    if "H1" in values or "I1" in values:  # both columns have a date and a time
        other = _clock(values, "1")
        if first is not None and first.year in _CLOCK_YEARS and second is not None:
            first, second, clock, other = second, first, other, clock
        is_clock = second is None or second.year in _CLOCK_YEARS or second == first
        if clock != time() or not is_clock:
            return None
        clock = other
        values = {name: value for name, value in values.items() if name != "z0"}
    if first is None:
        return None
    offset = values.get("z0")
    at = datetime.combine(first, clock)
    return Moment(at.replace(tzinfo=_zone(offset)) if offset else at, clock == time())


def _day(values: Mapping[str, str], number: str) -> date | None:
    if f"d{number}" not in values:
        return None
    if f"Y{number}" in values:
        year = int(values[f"Y{number}"])
    else:
        year = int(values[f"y{number}"])
        year += 2000 if year < _FIRST_OF_LAST_CENTURY else 1900
    word = values.get(f"b{number}") or values.get(f"B{number}")
    month = _place(word, _MONTHS, 3)[0] if word else int(values[f"m{number}"])
    day = date(year, month, int(values[f"d{number}"]))
    weekday = values.get(f"a{number}") or values.get(f"A{number}")
    if weekday and day.isoweekday() not in _place(weekday, _WEEKDAYS, 2):
        raise ValueError("the weekday is another one")
    return day


def _clock(values: Mapping[str, str], number: str) -> time:
    hour = int(values.get(f"H{number}") or values.get(f"I{number}") or 0)
    if half := values.get(f"p{number}"):
        hour = hour % 12 + (12 if half.casefold() == "p" else 0)
    minute, second = (int(values.get(f"{each}{number}", 0)) for each in "MS")
    return time(hour, minute, second, int(values.get(f"f{number}", "0").ljust(6, "0")))


def _place(word: str, names: Sequence[Sequence[str]], shortest: int) -> list[int]:
    """Return which of the names, from 1, begin with a word."""
    bare = re.sub("[\u0300-\u036f]", "", unicodedata.normalize("NFKD", word)).casefold().removesuffix("-feira")
    if bare == "sept" or bare.startswith("seti"):  # septiembre is also written setiembre
        return [9]
    found = [place for place, each in enumerate(names, 1) if any(name.startswith(bare) for name in each)]
    if len(bare) < shortest or not found:
        raise ValueError("no name")
    return found


def _zone(offset: str) -> timezone:
    if offset in "zZ":
        return UTC
    hours, minutes = int(offset[1:3]), int(offset[-2:])
    return timezone((1 if offset[0] == "+" else -1) * timedelta(hours=hours, minutes=minutes))


def _of_serial_numbers(text: str) -> Moment | None:
    try:
        days = sum(float(each.replace(",", ".")) for each in text.split())
        at = rounded(_FIRST_DAY + timedelta(days=days))
    except (ValueError, OverflowError):
        return None
    return Moment(at, at.time() == time()) if at.year > _CLOCK_YEARS[-1] else None


def time_of_day(since_midnight: timedelta) -> time:
    """Return the time of day, to the second, that is so long after midnight; a whole day after it is midnight."""
    return (datetime.min.replace(tzinfo=UTC) + since_midnight + _HALF_A_SECOND).time().replace(microsecond=0)


def rounded(moment: datetime) -> datetime:
    """Return a moment to the second."""
    return (moment + _HALF_A_SECOND).replace(microsecond=0)
