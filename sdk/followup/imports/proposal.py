"""Proposes the map of a file from its headers and values, with a comment at each guess and at each alternative."""

import contextlib
import json
import os
import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from string import Template
from typing import Any, Final

import attrs
import phonenumbers

from followup import ConfigurationError
from followup._core.package_data import package_text, zone_of
from followup._core.redaction import visible
from followup.imports.files import OnProgress, Table
from followup.imports.formats import format_of
from followup.imports.maps import DATE_OF_BIRTH, FIELDS, REQUIRED, TIMES
from followup.imports.texts import TWICE
from followup.imports.values import text_of, without_protection

_WORDS: Final[dict[str, Any]] = tomllib.loads(package_text(__name__, "words.toml"))
_ZONES: Final[Mapping[str, str]] = _WORDS["zones"]
_HEADERS = {field: re.compile(form.format(**_WORDS["parts"])) for field, form in _WORDS["fields"].items()}
_MOBILE = re.compile(_WORDS["parts"]["mobile"])
_IS_UTC = re.compile(r"(Etc/)?(UTC|UCT|GMT|Zulu|Universal)([+-]?0)?|Etc/Greenwich")
_IDS = {"external_id", "patient.external_id"}

_MOST_VALUES = 30
"""A column with more different values is no status."""

_LOOKS = {field: re.compile(form, re.IGNORECASE) for field, form in _WORDS["looks"].items()}
"""What the values of a field look like, whatever its header is."""

_SAMPLE = 1_000
"""Values of a column that are examined closely."""

_TRIED = 30
"""Values of a column that are read in all formats; the others only in those that one of these has."""

_MOST = 0.6
"""The part of the values that must look like those of a field."""

_DATES, _CLOCKS = (tuple(_WORDS["formats"][each]) for each in ("dates", "clocks"))
_OFFSET = "ISO 8601 with an offset"
_MOMENTS = (*(day + f" {clock}" for day in _DATES for clock in _CLOCKS), "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", _OFFSET)
_FORMATS = (*_DATES, *_CLOCKS, *_MOMENTS)
_NEVER, _SPECIFIC = (re.compile(_WORDS["times"][each]) for each in ("never", "specific"))
_BOOKING = re.compile(rf"\b({_WORDS['parts']['booking']}s?|hora|horario)\b")
_LINE_NUMBERS = {"", "n", "no", "nro", "orden", "item", "sr", "linea", "linha"}
"""Headers such as # and Nº, without punctuation."""

_EXCHANGED = str.maketrans("dm", "md")
_A_DAY = "01/02/2000"
_IS_ISO = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d")
_IS_MIDNIGHT = re.compile(r".*\d[T ]0?0:00(:00(\.0+)?)?(Z|[+-]\d\d:?\d\d)?")
_HAS_CLOCK_YEAR = re.compile(r".*\b(1899|1900)\b.*\d:\d\d.*")


def _day_of(text: str, form: str) -> date | None:
    """Return the day of a text in a format; None if it does not fit. Of a time of day, it is any day in the past."""
    if form == _OFFSET:
        with contextlib.suppress(ValueError):
            return datetime.fromisoformat(text).date() if _IS_ISO.match(text) else None
        return None
    if form in _CLOCKS:
        text, form = f"{_A_DAY} {text}", f"%d/%m/%Y {form}"
    found = format_of(form, has_time=form not in _DATES).read(text)
    return found.at.date() if found else None


def _folded(text: str) -> str:
    """Return the words of a text without accents, case and punctuation."""
    # A word begins with each capital, as in startAt.
    text = unicodedata.normalize("NFKD", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text))
    return " ".join(re.sub(r"[\W_]+", " ", re.sub("[\u0300-\u036f]", "", text)).casefold().split())


def language_of(headers: Iterable[str]) -> str:
    """Return the language of headers, ``es``, ``pt`` or ``en``."""
    words = {word for each in headers for word in _folded(each).split()}
    known = {language: len(words & {*text.split()}) for language, text in _WORDS["languages"].items()}
    return max(("en", "es", "pt"), key=known.__getitem__)


def _quoted(text: str) -> str:
    """Return a text as a string of TOML."""
    # TOML forbids this control character, too, which JSON leaves as it is.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _country_of(phone: str) -> str | None:
    """Return the country of a phone that begins with + or 00; None if it is no phone."""
    with contextlib.suppress(phonenumbers.NumberParseException):
        number = phonenumbers.parse(re.sub("^00", "+", phone))
        return phonenumbers.region_code_for_number(number) if phonenumbers.is_valid_number(number) else None
    return None


@attrs.define(eq=False)
class _Column:
    """What the header and the values of a column say.

    Attributes:
        words: the words of the header.
        fields: the fields that the header may name.
        filled: number of values that are not empty.
        is_ahead: whether a value is a date after now.
        formats: number of values that each format fits.
        looks: number of values that look like those of a field, among the first.
        values: numbers of the values themselves, while they are few.
        countries: number of phones by country code.
        ids: hashes of the values.
        is_numbered: whether the values are 1, 2, 3, …
        is_date, is_clock: whether the values are moments at midnight, of which only the date is meant, or those of 1899
            or 1900, of which only the time is.
        today: the day on which the column is read, in UTC.
    """

    header: str
    words: str = attrs.field(init=False)
    fields: set[str] = attrs.field(init=False)
    filled: int = 0
    is_ahead: bool = False
    formats: Counter[str] = attrs.field(factory=Counter)
    looks: Counter[str] = attrs.field(factory=Counter)
    values: Counter[str] = attrs.field(factory=Counter)
    countries: Counter[str] = attrs.field(factory=Counter)
    ids: set[int] = attrs.field(factory=set)
    is_numbered: bool = True
    is_date: bool = True
    is_clock: bool = True
    today: date = attrs.field(factory=lambda: datetime.now(UTC).date())

    def __attrs_post_init__(self) -> None:
        self.words = _folded(re.sub(r"#\d+$", "", self.header))
        self.fields = {field for field, pattern in _HEADERS.items() if pattern.fullmatch(self.words)}

    def add(self, value: str) -> None:
        """Count a value."""
        if len(self.values) <= _MOST_VALUES:
            self.values[value] += 1
        if not value:
            return
        self.filled += 1
        self.is_numbered = self.is_numbered and value == str(self.filled)
        self.is_date = self.is_date and _IS_MIDNIGHT.fullmatch(value) is not None
        self.is_clock = self.is_clock and _HAS_CLOCK_YEAR.fullmatch(value) is not None
        forms = _FORMATS if self.filled <= _TRIED else [*self.formats]
        days = {each: day for each in forms if (day := _day_of(value, each))}
        self.formats.update(days.keys())
        self.is_ahead = self.is_ahead or next(iter(days.values()), date.min) > self.today
        if self.filled <= _SAMPLE:
            self.looks.update(field for field, pattern in _LOOKS.items() if pattern.fullmatch(value))
        if self.fields & _IDS:
            self.ids.add(hash(value))
        if value.startswith(("+", "00")) and (country := _country_of(value)):
            self.countries[country] += 1

    def is_like(self, field: str) -> bool:
        """Return whether most values look like those of a field; an empty column looks like any."""
        return field not in _LOOKS or self.looks[field] >= _MOST * min(self.filled, _SAMPLE)

    def best(self, formats: Iterable[str], *, month_first: bool = False) -> str | None:
        """Return the format that most values fit; None if most fit none."""
        best = max(formats, key=lambda each: (self.formats[each], each.startswith("%m") == month_first))
        return best if self.formats[best] >= max(_MOST * self.filled, 1) else None


def propose(file: str | Path, on_progress: OnProgress | None = None, language: str | None = None) -> str:
    """Return a proposed map of a file, as TOML with a comment at each guess.

    Args:
        file: path of the file.
        on_progress: called now and then.
        language: ``es``, ``pt`` or ``en``; None for that of the headers.

    Raises:
        OSError: the file cannot be read.
        ConfigurationError: the file is neither CSV nor ``.xlsx``, or changed meanwhile.
    """
    table = Table(file, accepts_doubtful=True)
    if len(table.header) == 1 and not table.sheet_names:
        raise ConfigurationError(
            f"{file} has one column only: a table has several, separated by a comma, a semicolon, a tab or |. If it is "
            "a report with fixed widths, export it as .xlsx or CSV"
        )
    columns = [_Column(header) for header in table.header]
    rows = 0
    for rows, (_, _, cells) in enumerate(table.rows(on_progress), start=1):  # noqa: B007 - the number of rows
        for column, cell in zip(columns, cells, strict=False):
            column.add(text_of(without_protection(cell)))
    return _Proposal(Path(file).name, table, columns, rows, language or language_of(table.header)).text()


class _Proposal:
    """Makes the lines of a map from what is known about the columns; each column is used once."""

    def __init__(self, name: str, table: Table, columns: Sequence[_Column], rows: int, language: str) -> None:
        self._texts: Mapping[str, str] = _WORDS["texts"][language]
        self._table = table
        self._name = name
        self._columns = columns
        self._rows = rows
        self._free = [each for each in columns if each.header]
        self._used: list[_Column] = []
        self._own_zone = _own_zone()
        self._countries = sum((each.countries for each in columns), Counter[str]())
        likeliest = [country for country, _ in self._countries.most_common(1)]
        self._country = next(iter(likeliest or [each for each in _ZONES if _ZONES[each] == self._own_zone]), None)
        self._kind, self._kind_because = self._kind_of()

    def text(self) -> str:
        """Return the map."""
        status = self._take("status") if "status" in FIELDS[self._kind] else None
        fields = [*self._columns_of_fields()]
        left = ", ".join(_quoted(each.header) for each in self._columns if each not in self._used)
        fields += [f"# {self._say('not_sent', left=left)}"] if left else []
        fields += self._statuses(status) if status else []
        return Template(self._texts["proposal"].lstrip("\n")).substitute(
            file=visible(self._name),
            rows=f"{self._rows:,}",
            kind=self._kind,
            because=self._say(self._kind_because),
            place="\n".join(self._place()),
            columns="\n".join(fields),
        )

    def _say(self, name: str, **values: object) -> str:
        return self._texts[name].format(**values)

    def _kind_of(self) -> tuple[str, str]:
        names_booking = any(_BOOKING.search(each.words) for each in self._free)
        has_times = any(each.best((*_MOMENTS, *(form for form in _CLOCKS if ":" in form))) for each in self._free)
        is_visit = any(each.fields & {"visited_at", "diagnosis"} for each in self._free)
        says_when = [each for each in self._free if not _NEVER.search(each.words) and each.fields.isdisjoint(_LOOKS)]
        if is_visit and not any(each.is_ahead for each in says_when):  # unlike a document such as 30111001, in 3011
            return "visits", "visits"
        if names_booking or has_times or is_visit:
            return "appointments", "times" if has_times else "booking"
        return "patients", "no_times"

    def _place(self) -> Iterator[str]:
        found = self._countries.most_common()
        usual = _ZONES.get(found[0][0]) if found else None
        if usual:
            yield f"zone = {_quoted(usual)}  # {self._say('zone_usual', country=found[0][0])}"
        elif self._own_zone and not _IS_UTC.fullmatch(self._own_zone):
            yield f"zone = {_quoted(self._own_zone)}  # {self._say('zone_own')}"
        else:
            yield f'# zone = ""  # {self._say("zone_fill")} "America/Argentina/Buenos_Aires"'
        counts = ", ".join(f"{country} {count:,}" for country, count in found)
        because = self._say("country_phones", counts=counts) if found else self._say("country_zone")
        unknown = f'# country = ""  # {self._say("country_fill")}'
        yield f"country = {_quoted(self._country)}  # {because}" if self._country else unknown
        table = self._table
        if table.likely_encoding == TWICE:
            yield f"# {self._say('twice')}"
        elif table.likely_encoding:
            yield f"encoding = {_quoted(table.likely_encoding)}  # {self._say('encoding')}"

    def _take(self, field: str) -> _Column | None:
        """Return the column of a field, which no other field gets then; None if no header names it."""
        named = (each for each in self._free if field in each.fields and each.is_like(field))
        best = min(named, key=lambda each: self._rank(field, each), default=None)
        return best and self._use(best)

    def _use(self, column: _Column) -> _Column:
        self._free = [each for each in self._free if each is not column]
        self._used.append(column)
        return column

    def _rank(self, field: str, column: _Column) -> tuple[bool, bool]:
        """Return what is smaller for the preferred one of several columns with headers for one field."""
        if field == "patient.phone":
            return _MOBILE.search(column.words) is None, False
        if field == "status":
            known = sum(count for value, count in column.values.items() if _meaning(value) or _is_unclear(value))
            return known < _MOST * max(column.filled, 1), False
        return bool(column.ids) and len(column.ids) < self._rows, self._may_be_line_number(column)

    def _may_be_line_number(self, column: _Column) -> bool:
        return column.words in _LINE_NUMBERS or (column.is_numbered and column.filled > 1)

    def _columns_of_fields(self) -> Iterator[str]:
        """Yield a line for each field, in the order of the fields; first those that are required."""
        fields = FIELDS[self._kind]
        required = REQUIRED[self._kind]
        for field in (*required, *(each for each in _HEADERS if each in fields and each not in required)):
            if field == "status":
                continue
            line = self._line_of_time(field) if field in TIMES else self._line_of(field)
            if line is None and field in required:
                what = self._say("patient_id" if field == "patient.external_id" else field)
                line = f'# {_key(field)} = ""  # {self._say("fill", what=what)}'
                if field == "external_id":
                    line += f"\n# {self._say('no_id')}"
            if line is not None:
                yield line

    def _line_of(self, field: str) -> str | None:
        column = self._take(field)
        if column is None and field == "patient.external_id" and self._kind == "patients":
            column = self._take("external_id")
        if field == "patient.full_name" and column is None:
            return self._line_of_name()
        if column is None:
            return None
        comments = self._about_others(field)
        if field in _IDS and field in REQUIRED[self._kind]:
            if len(column.ids) < self._rows:
                comments.append(self._say("ids", ids=f"{len(column.ids):,}", rows=f"{self._rows:,}"))
            if self._may_be_line_number(column):
                comments.append(self._say("line_number"))
        if field == "patient.full_name" and column.looks["surname first"] >= _MOST * min(column.filled, _SAMPLE) > 0:
            comments.append(self._say("order"))
            return _line(field, f'{{ column = {_quoted(column.header)}, order = "surname, name" }}', comments)
        if field == DATE_OF_BIRTH:
            return self._with_format(field, [(column, _DATES)], comments)
        return _line(field, _quoted(column.header), comments)

    def _about_others(self, field: str) -> list[str]:
        others = ", ".join(_quoted(each.header) for each in self._free if field in each.fields and each.is_like(field))
        return [self._say("others", others=others)] if others else []

    def _line_of_name(self) -> str | None:
        names = [each for form in _WORDS["names"].values() for each in self._free if re.fullmatch(form, each.words)]
        for each in names:
            self._use(each)
        if len(names) < 2:
            return _line("patient.full_name", _quoted(names[0].header), []) if names else None
        template = _quoted(" ".join(f"{{{each.header}}}" for each in names))
        return _line("patient.full_name", f"{{ template = {template} }}", [self._say("name_order")])

    def _line_of_time(self, field: str) -> str | None:
        free = [each for each in self._free if not _NEVER.search(each.words) and DATE_OF_BIRTH not in each.fields]
        named = [each for each in free if each.fields & {field, "start_at"}]
        named.sort(key=lambda each: _SPECIFIC.search(each.words) is None)
        others = [each for each in free if each not in named and not each.fields]
        all_ = [*named, *others]
        moments, dates, clocks = ([each for each in all_ if each.best(forms)] for forms in (_MOMENTS, _DATES, _CLOCKS))
        dates = [each for each in all_ if each in dates or (each in moments and each.is_date)]
        moments = [each for each in moments if not each.is_date and not each.is_clock]
        chosen: list[tuple[_Column, Sequence[str]]] = []
        if moments and (moments[0] in named or not (dates and clocks and dates[0] in named)):
            chosen = [(moments[0], _MOMENTS)]
        elif dates and clocks:
            chosen = [(dates[0], _MOMENTS if dates[0].is_date else _DATES), (clocks[0], _CLOCKS)]
        if not chosen:
            return None
        used = [column for column, _ in chosen]
        names = ", ".join(_quoted(each.header) for each in all_ if each not in used and each.best(_FORMATS))
        comments = [self._say("others", others=names)] if names else []
        if not all(each in named for each in used):
            comments.append(self._say("by_values_time"))
        if any(re.search(r"\b(utc|gmt)\b", each.words) for each in used):
            comments.append(self._say("utc"))
        return self._with_format(field, chosen, comments)

    def _with_format(self, field: str, parts: Sequence[tuple[_Column, Sequence[str]]], comments: list[str]) -> str:
        """Return the line of a time or date that consists of columns, each with one of the formats."""
        found: list[str] = []
        for column, formats in parts:
            self._use(column)
            best = column.best(formats, month_first=self._country == "US")
            found += [best] if best else []
            comments += self._about_format(column, best or "", formats)
        headers = [_quoted(column.header) for column, _ in parts]
        source = f"column = {headers[0]}" if len(headers) == 1 else f"columns = [{', '.join(headers)}]"
        if _OFFSET in found or len(found) < len(parts):  # which needs no format, or has none
            return _line(field, headers[0] if len(headers) == 1 else f"{{ {source} }}", comments)
        return _line(field, f"{{ {source}, format = {_quoted(' '.join(found))} }}", comments)

    def _about_format(self, column: _Column, best: str, formats: Sequence[str]) -> Iterator[str]:
        twin = best.translate(_EXCHANGED)
        if twin != best and twin in formats and column.formats[twin] == column.formats[best]:
            yield self._say("twin", twin=_quoted(twin))
        if others := column.filled - column.formats[best]:
            yield self._say("other_form", others=f"{others:,}", filled=f"{column.filled:,}")

    def _statuses(self, column: _Column) -> Iterator[str]:
        yield from ("", "[columns.status]", _line("column", _quoted(column.header), self._about_others("status")))
        if len(column.values) > _MOST_VALUES:
            yield f"# {self._say('many_values')}"
            return
        yield from ("", f"[columns.status.values]  # {self._say('values')}")
        for value, count in column.values.most_common():
            meaning = _meaning(value)
            rows = self._say("row") if count == 1 else self._say("rows", rows=f"{count:,}")
            line = f'{_quoted(value)} = "{meaning or ""}"'
            guess = f"{line}  # {self._say('guess_status', rows=rows)}"
            yield guess if meaning else f"# {line}  # {self._say('fill_status', rows=rows)}"


def _is_unclear(value: str) -> bool:
    """Return whether a text is a status of which only the clinic knows what it means for the appointment."""
    return re.match(_WORDS["unclear"], _folded(value)) is not None


def _meaning(value: str) -> str | None:
    """Return what a status means, as far as its word says; None for what only the clinic knows."""
    words = _folded(value)
    return next((each for each, form in _WORDS["statuses"].items() if re.match(form, words)), None)


def _key(field: str) -> str:
    return f'"{field}"' if "." in field else field


def _line(field: str, value: str, comments: Sequence[str]) -> str:
    return f"{_key(field)} = {value}" + (f"  # {'; '.join(comments)}" if comments else "")


def _own_zone() -> str:
    """Return the IANA name of the zone of this computer; empty if it does not say it, as on Windows."""
    link = Path("/etc/localtime")
    for name in (os.environ.get("TZ", "").lstrip(":"), str(link.resolve()).rpartition("zoneinfo/")[2]):
        with contextlib.suppress(KeyError, ValueError, OSError):
            return zone_of(name).key
    return ""
