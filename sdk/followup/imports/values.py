"""Reads the values of cells: times, dates, phones, documents, and other texts by the rules of the service."""

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from unicodedata import category
from zoneinfo import ZoneInfo

from followup._core.codec.phones import OBSOLETE_IN_MEXICO, e164, is_landline, make_mobile, possible_number
from followup.imports.files import Cell, text_of, time_of_day


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

_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL = r"(?!..--)[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_EMAIL = re.compile(rf"(?=.{{1,64}}@){_ATOM}(?:\.{_ATOM})*@(?=.{{1,253}}$){_LABEL}(?:\.{_LABEL})*")

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_SPREADSHEET_ERROR = re.compile(
    r"#(?:N/[AD]\b|[¡¿]?(?:REF|VALUE|VALOR|DIV/0|NAME|NOMBRE|NOME|NUM|NÚM|NULL|NULO|NUL|SPILL|CALC)[!?])"
)

_ISO_TIME = re.compile(r"\d{4}-?\d\d-?\d\d[Tt ]\d\d[\d:.,]*(?:[Zz]|[+-]\d\d(?::?\d\d)?)?", re.ASCII)
_ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_DATE_PART = re.compile(r"%[aAbBdmyYjGuV](?:[^%]*%[aAbBdmyYjGuV])*[^%\s]*")
_TIME_PART = re.compile(r"%[HIMSfp](?:[^%]*%[HIMSfp])*[^%\s]*")
_YEARS = range(2, 9999)
"""The years that the service takes in a time."""

_ISO_EXAMPLE = "ISO 8601 with date and time, such as 2026-09-28T10:30"


def checked_length(text: str, field: str) -> str:
    """Return a text that is not too long for the service.

    Raises:
        Invalid: it is.
    """
    if len(text) > LONGEST:
        raise Invalid("field_invalid", f"{field} has more than {LONGEST:,} characters")
    return text


def checked(text: str, field: str) -> str:
    """Return a text that the service takes.

    Raises:
        Invalid: it does not.
    """
    if _CONTROL.search(text):
        raise Invalid("field_invalid", f"{field} has control characters")
    if _SPREADSHEET_ERROR.search(text):
        raise Invalid("field_invalid", f"{field} is an error of the spreadsheet")
    if field == "patient.email" and not _EMAIL.fullmatch(text):
        raise Invalid("field_invalid", f"{field} must be one e-mail address")
    return text


def date_of(cells: Sequence[Cell], formats: Sequence[str], field: str) -> str:
    """Return a date as the service takes it.

    Raises:
        Invalid: the cells have none.
    """
    expected = " or ".join(formats) or "YYYY-MM-DD"
    for form in formats or ("%Y-%m-%d",):
        text = _joined(cells, form)
        try:
            found = datetime.strptime(text, form).date()  # noqa: DTZ007 - a date has no zone
        except ValueError:
            continue
        if formats or _ISO_DATE.fullmatch(text):
            if found > datetime.now(UTC).date() + timedelta(days=1):
                raise Invalid("field_invalid", f"{field} is in the future")
            return found.isoformat()
    raise Invalid("field_invalid", f"{field} must be a date, {expected}")


def instant_of(cells: Sequence[Cell], formats: Sequence[str], zone: ZoneInfo) -> tuple[datetime, bool]:
    """Return a time in UTC, and whether the clocks of the zone showed it twice; then it is the first of the two.

    Args:
        cells: the cells that make up the time, without empty ones.
        formats: formats in the notation of ``strptime``; none: ISO 8601.
        zone: the time zone of times without an offset.

    Raises:
        Invalid: the cells have no time, or one that the clocks of the zone skipped.
    """
    only = cells[0] if len(cells) == 1 else None
    if isinstance(only, datetime):
        found = {only}
    else:
        found = {each for form in formats or (None,) if (each := _parsed(_joined(cells, form), form))}
    if len(found) != 1:
        twice = "and more than one of its formats fits" if found else " or ".join(formats) or _ISO_EXAMPLE
        raise Invalid("time_format", twice)
    try:
        instant, is_ambiguous = _in_utc(found.pop(), zone)
    except OverflowError:
        raise Invalid("time_format", "in the years 2 to 9998") from None
    if instant.year not in _YEARS:
        raise Invalid("time_format", "in the years 2 to 9998")
    return instant, is_ambiguous


def _joined(cells: Sequence[Cell], form: str | None) -> str:
    """Return the cells as one text; dates and times of a workbook as the format has them."""
    return " ".join(_written(cell, form) for cell in cells)


def _written(cell: Cell, form: str | None) -> str:
    if isinstance(cell, (int, float)) and 0 <= cell < 1:  # a part of a day
        cell = time_of_day(timedelta(days=cell))
    part = _DATE_PART if type(cell) is date else _TIME_PART if isinstance(cell, time) else None
    if part and form and (found := part.search(form)):
        return cell.strftime(found[0])  # type: ignore[union-attr]
    return text_of(cell)


def _parsed(text: str, form: str | None) -> datetime | None:
    try:
        if form is not None:
            return datetime.strptime(text, form)  # noqa: DTZ007 - the zone is added later
        return datetime.fromisoformat(text) if _ISO_TIME.fullmatch(text) else None
    except (ValueError, OverflowError):
        return None


def _in_utc(found: datetime, zone: ZoneInfo) -> tuple[datetime, bool]:
    if found.tzinfo is not None:
        return found.astimezone(UTC), False
    first, second = found.replace(tzinfo=zone), found.replace(tzinfo=zone, fold=1)
    before, after = first.utcoffset(), second.utcoffset()
    assert before is not None
    assert after is not None
    if before < after:
        raise Invalid("time_nonexistent", zone.key)
    return first.astimezone(UTC), before > after


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
    number = None if _is_several(text) else possible_number(text, country, OBSOLETE_IN_MEXICO)
    if number is None:
        raise Invalid("phone_invalid", country)
    if mobiles == "assume" and make_mobile(number):
        return e164(number), "phone_assumed_mobile"
    return e164(number), "phone_landline" if is_landline(number) else None


def _is_several(text: str) -> bool:
    separator = _BETWEEN_NUMBERS.search(text)
    return separator is not None and sum(map(str.isdigit, text[: separator.start()])) > _LONGEST_AREA_CODE


_DOCUMENT_LABEL = re.compile(r"^(?:DNI|DOCUMENTO|DOC|CUIL|CUIT)(?:N[º°]|NRO|NO)?:?(?=[A-Z]?\d)")
_CUIL = re.compile(r"(?:20|23|24|25|26|27)\d{9}")
_CUIL_WEIGHTS = (5, 4, 3, 2, 7, 6, 5, 4, 3, 2)
_CUIL_LENGTH = 11


def document_of(text: str, country: str) -> tuple[str, str | None]:
    """Return a document number without dots, spaces, hyphens and label, and the code of a doubt about it, if any.

    Args:
        text: the document. In Argentina it may be a CUIL, which contains the DNI.
        country: ISO 3166 code of the country.

    Raises:
        Invalid: it is no document number, or a CUIL with a wrong check digit.
    """
    bare = text if text.isalnum() else "".join(filter(_is_kept, text))
    bare = _DOCUMENT_LABEL.sub("", bare.upper(), count=1)
    if not bare.strip("0") or not any(map(str.isdigit, bare)):
        raise Invalid("dni_invalid", "it has no digits other than 0")
    if country != "AR" or len(bare) != _CUIL_LENGTH or not bare.isdecimal():
        return bare, None
    total = sum(weight * int(digit) for weight, digit in zip(_CUIL_WEIGHTS, bare, strict=False))
    if not _CUIL.fullmatch(bare) or "01234567899"[-total % 11] != bare[-1]:
        raise Invalid("dni_invalid", "it is not a CUIL of a person, or its check digit is wrong")
    return bare[2:10].lstrip("0"), "dni_is_cuil"


def _is_kept(character: str) -> bool:
    return not (character in ".-" or character.isspace() or category(character) in ("Cf", "Pd"))
