"""Proposes the map of a file from its headers and values, with a comment at each guess and at each alternative."""

import contextlib
import functools
import itertools
import json
import os
import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from string import Template
from typing import Any, Final

import attrs
import phonenumbers

from followup._core.package_data import package_text, zone_of
from followup._core.privacy.redaction import visible
from followup.imports.cells import text_of
from followup.imports.files import Table
from followup.imports.maps import DATE_OF_BIRTH, FIELDS, REQUIRED, TIMES

_WORDS: Final[dict[str, Any]] = tomllib.loads(package_text(__name__, "words.toml"))
_ZONES: Final[Mapping[str, str]] = _WORDS["zones"]
_HEADERS = {field: re.compile(form.format(**_WORDS["parts"])) for field, form in _WORDS["fields"].items()}
_MOBILE = re.compile(_WORDS["parts"]["mobile"])
_IDS = {"external_id", "patient.external_id"}

_MOST_VALUES = 30
"""A column with more different values is no status."""

_LOOKS = {field: re.compile(form, re.IGNORECASE) for field, form in _WORDS["looks"].items()}
"""What the values of a field look like, whatever its header is."""

_SAMPLE = 1_000
"""Values of a column that are examined closely."""

_MOST = 0.6
"""The part of the values that must look like those of a field."""

_DATES, _CLOCKS = (tuple(_WORDS["formats"][each]) for each in ("dates", "clocks"))
_OFFSET = "ISO 8601 with an offset"
_MOMENTS = (*(day + f" {clock}" for day in _DATES for clock in _CLOCKS), "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", _OFFSET)


def _shape(text: str) -> str:
    """Return what texts of one format have in common, such as ``d/d/yyyy d:d``."""
    text = re.sub(r"\d+", lambda found: "d" if len(found[0]) <= 2 else "y" * len(found[0]), text)
    return re.sub(r"(?<=[\sd])[ap]m$", "p", text, flags=re.IGNORECASE)


_SHAPES = {each: _shape(f"{datetime(2030, 12, 28, 22, 33, 44):{each}}") for each in (*_DATES, *_CLOCKS, *_MOMENTS)}  # noqa: DTZ001
_OF_SHAPE = {shape: [each for each in _SHAPES if _SHAPES[each] == shape] for shape in _SHAPES.values()}


@functools.lru_cache(maxsize=50_000)
def _formats_of(text: str) -> tuple[str, ...]:
    """Return the formats in which a text is a date, a time of day, or both."""
    found = []
    for each in _OF_SHAPE.get(_shape(text), ()):
        with contextlib.suppress(ValueError):
            datetime.strptime(text, each)  # noqa: DTZ007 - only whether it fits
            found.append(each)
    if not found and re.match(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d", text):
        with contextlib.suppress(ValueError):
            datetime.fromisoformat(text)
            found.append(_OFFSET)
    return tuple(found)


def _folded(text: str) -> str:
    """Return the words of a text without accents, case and punctuation."""
    text = unicodedata.normalize("NFKD", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text))
    return " ".join(re.sub(r"[\W_]+", " ", re.sub("[\u0300-\u036f]", "", text)).casefold().split())


def language_of(headers: Iterable[str]) -> str:
    """Return the language of headers, ``es``, ``pt`` or ``en``."""
    words = {word for each in headers for word in _folded(each).split()}
    known = {language: len(words & {*text.split()}) for language, text in _WORDS["languages"].items()}
    return max(("en", "es", "pt"), key=known.__getitem__)


def _quoted(text: str) -> str:
    """Return a text as a string of TOML."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _country_of(phone: str) -> str | None:
    """Return the country of a phone that begins with + or 00; None if it is no phone."""
    with contextlib.suppress(phonenumbers.NumberParseException):
        return phonenumbers.region_code_for_number(phonenumbers.parse(re.sub("^00", "+", phone)))
    return None


@attrs.define(eq=False)
class _Column:
    """What the header and the values of a column say.

    Attributes:
        words: the words of the header.
        fields: the fields that the header may name.
        filled: number of values that are not empty.
        formats: number of values that each format fits.
        looks: number of values that look like those of a field, among the first.
        values: numbers of the values themselves, while they are few.
        countries: number of phones by country code.
        example: a value in which day and month can be exchanged.
        ids: hashes of the values.
    """

    header: str
    words: str = attrs.field(init=False)
    fields: set[str] = attrs.field(init=False)
    filled: int = 0
    formats: Counter[str] = attrs.field(factory=Counter)
    looks: Counter[str] = attrs.field(factory=Counter)
    values: Counter[str] = attrs.field(factory=Counter)
    countries: Counter[str] = attrs.field(factory=Counter)
    example: str = ""
    ids: set[int] = attrs.field(factory=set)

    def __attrs_post_init__(self) -> None:
        self.words = _folded(self.header)
        self.fields = {field for field, pattern in _HEADERS.items() if pattern.fullmatch(self.words)}

    def add(self, value: str) -> None:
        """Count a value."""
        if len(self.values) <= _MOST_VALUES:
            self.values[value] += 1
        if not value:
            return
        self.filled += 1
        if formats := _formats_of(value):
            self.formats.update(formats)
            if len(formats) > 1 and len({*re.split(r"\D", value)[:2]}) > 1:
                self.example = self.example or value
        if self.filled <= _SAMPLE:
            self.looks.update(field for field, pattern in _LOOKS.items() if pattern.fullmatch(value))
        if self.fields & _IDS:
            self.ids.add(hash(value))
        if value.startswith(("+", "00")) and (country := _country_of(value)):
            self.countries[country] += 1

    def is_like(self, field: str) -> bool:
        """Return whether most values look like those of a field; an empty column looks like any."""
        return field not in _LOOKS or self.looks[field] >= _MOST * min(self.filled, _SAMPLE)

    def best(self, formats: Iterable[str], *, month_first: bool = False) -> list[str]:
        """Return the format that fits most values, and those of other shapes that fit others; none if most fit none."""
        best: dict[str, str] = {}
        for each in sorted(formats, key=lambda each: (self.formats[each], each.startswith("%m") == month_first)):
            if self.formats[each]:
                best[_SHAPES[each]] = each
        fit = sum(self.formats[each] for each in best.values())
        return sorted(best.values(), key=lambda each: -self.formats[each]) if fit >= max(_MOST * self.filled, 1) else []


def propose(file: str | Path, on_progress: Callable[[float], object] | None = None) -> str:
    """Return a proposed map of a file, as TOML with a comment at each guess.

    Args:
        file: path of a CSV file or of an Excel workbook.
        on_progress: called now and then with the part of the file that has been read, from 0 to 1.

    Raises:
        OSError: the file cannot be read.
        ConfigurationError: the file is neither CSV nor ``.xlsx``, or changed meanwhile.
    """
    table = Table(file)
    columns = [_Column(header) for header in table.header]
    rows = 0
    for rows, (_, _, cells) in enumerate(table.rows(on_progress), start=1):  # noqa: B007 - the number of rows
        for column, cell in zip(columns, cells, strict=False):
            column.add(text_of(cell))
    return _Proposal(Path(file).name, columns, rows).text()


class _Proposal:
    """Makes the lines of a map from what is known about the columns; each column is used once."""

    def __init__(self, name: str, columns: Sequence[_Column], rows: int) -> None:
        self._name = name
        self._columns = columns
        self._rows = rows
        headers = Counter(each.header for each in columns)
        self._free = [each for each in columns if each.header and headers[each.header] == 1]
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
        fields += [f"# Not sent: {left}"] if left else []
        fields += self._statuses(status) if status else []
        return Template(_WORDS["proposal"]).substitute(
            file=visible(self._name),
            rows=f"{self._rows:,}",
            kind=self._kind,
            because=self._kind_because,
            place="\n".join(self._place()),
            columns="\n".join(fields),
        )

    def _kind_of(self) -> tuple[str, str]:
        if any(each.fields & {"visited_at", "diagnosis"} for each in self._free):
            return "visits", "a header names a visit or a diagnosis"
        if any(each.best((*_MOMENTS, *(form for form in _CLOCKS if ":" in form))) for each in self._free):
            return "appointments", "a column has times"
        return "patients", "no column has times"

    def _place(self) -> Iterator[str]:
        found = self._countries.most_common()
        usual = _ZONES.get(found[0][0]) if found else None
        zone = usual or self._own_zone or "UTC"
        own = "the zone of this computer" if self._own_zone else "this computer does not say its own"
        zone_because = f"most people in {found[0][0]} live in it" if usual else own
        yield f"zone = {_quoted(zone)}  # check this: {zone_because}"
        counts = ", ".join(f"{country} {count:,}" for country, count in found)
        because = f"country codes of the phones: {counts}" if found else "the country of the zone of this computer"
        unknown = '# country = ""  # fill in: the country of phones without a country code, such as "AR"'
        yield f"country = {_quoted(self._country)}  # check this: {because}" if self._country else unknown

    def _take(self, field: str) -> _Column | None:
        """Return the column of a field, which no other field gets then; None if no header names it."""
        named = (each for each in self._free if field in each.fields and each.is_like(field))
        best = min(named, key=lambda each: self._rank(field, each), default=None)
        return best and self._use(best)

    def _use(self, column: _Column) -> _Column:
        self._free = [each for each in self._free if each is not column]
        self._used.append(column)
        return column

    def _rank(self, field: str, column: _Column) -> bool:
        """Return whether another column with a header for the same field is preferred."""
        if field == "patient.phone":
            return _MOBILE.search(column.words) is None
        return bool(column.ids) and len(column.ids) < self._rows

    def _columns_of_fields(self) -> Iterator[str]:
        """Yield a line for each field, in the order of the fields; first those that are required."""
        fields = FIELDS[self._kind]
        required = REQUIRED[self._kind]
        for field in (*required, *(each for each in _HEADERS if each in fields and each not in required)):
            if field == "status":
                continue
            line = self._line_of_time(field) if field in TIMES else self._line_of(field)
            if line is None and field in required:
                line = f'# {_key(field)} = ""  # fill in: the column with {_WORDS["required"][field]}'
            if line is not None:
                yield line

    def _line_of(self, field: str) -> str | None:
        column = self._take(field)
        if column is None and field == "patient.external_id" and self._kind == "patients":
            column = self._take("external_id")
        if field == "patient.full_name" and column is None:
            return self._line_of_name()
        if column is None:
            return self._line_by_values(field)
        others = ", ".join(_quoted(each.header) for each in self._free if field in each.fields and each.is_like(field))
        comments = [f"guess: it could also be {others}"] if others else []
        if field in _IDS and field in REQUIRED[self._kind] and len(column.ids) < self._rows:
            comments.append(f"check this: {len(column.ids):,} different values in {self._rows:,} rows")
        if field == "patient.full_name" and column.looks["listed name"] >= _MOST * min(column.filled, _SAMPLE) > 0:
            comments.append("check this: messages show names as they are written here, surname first or in capitals")
        if field == DATE_OF_BIRTH:
            return self._with_format(field, [(column, _DATES)], comments)
        return _line(field, _quoted(column.header), comments)

    def _line_of_name(self) -> str | None:
        names = [each for form in _WORDS["names"].values() for each in self._free if re.fullmatch(form, each.words)]
        for each in names:
            self._use(each)
        if len(names) < 2:
            return _line("patient.full_name", _quoted(names[0].header), []) if names else None
        template = _quoted(" ".join(f"{{{each.header}}}" for each in names))
        return _line("patient.full_name", f"{{ template = {template} }}", ["guess: check the order"])

    def _line_by_values(self, field: str) -> str | None:
        """Return a commented line for a column that no header explains, but whose values look like the field."""
        for each in self._free:
            if field in _LOOKS and each.filled and each.is_like(field) and not each.fields:
                self._use(each)
                line = _line(field, _quoted(each.header), ["guess by the values: if it is right, remove the first #"])
                return f"# {line}"
        return None

    def _line_of_time(self, field: str) -> str | None:
        free = [each for each in self._free if DATE_OF_BIRTH not in each.fields]
        named = [each for each in free if each.fields & {field, "start_at"}]
        clocks = [each for each in (*named, *free) if each.best(_CLOCKS)]
        for group, comments in ((named, []), (free, ["guess by the values"])):
            if moments := [each for each in group if each.best(_MOMENTS)]:
                return self._with_format(field, [(moments[0], _MOMENTS)], comments)
            if dates := [each for each in group if each.best(_DATES)]:
                if clocks:
                    return self._with_format(field, [(dates[0], _DATES), (clocks[0], _CLOCKS)], comments)
                if field == "visited_at":
                    return self._with_format(field, [(dates[0], _DATES)], comments)
        return None

    def _with_format(self, field: str, parts: Sequence[tuple[_Column, Sequence[str]]], comments: list[str]) -> str:
        """Return the line of a time or date that consists of columns, each with one of the formats."""
        found: list[list[str]] = []
        for column, formats in parts:
            self._use(column)
            best = column.best(formats, month_first=self._country == "US")
            found.append(best)
            comments += self._about_formats(column, best, formats)
        headers = [_quoted(column.header) for column, _ in parts]
        source = f"column = {headers[0]}" if len(headers) == 1 else f"columns = [{', '.join(headers)}]"
        is_iso = any(_OFFSET in best for best in found)  # which needs no format, and has none
        if field in TIMES and parts[-1][1] is _DATES:
            source, is_iso = f"template = {_quoted(f'{{{parts[0][0].header}}} 12:00')}", False
            found.append(["%H:%M"])
            comments.append("check this: no column has the time of day, so it is noon")
        if is_iso or not all(found):
            return _line(field, headers[0] if len(headers) == 1 else f"{{ {source} }}", comments)
        joined = [_quoted(" ".join(each)) for each in itertools.product(*found)]
        shown = f"[{', '.join(joined)}]" if len(joined) > 1 else joined[0]
        return _line(field, f"{{ {source}, format = {shown} }}", comments)

    def _about_formats(self, column: _Column, best: Sequence[str], formats: Sequence[str]) -> Iterator[str]:
        for form in best[:1]:
            twins = [each for each in formats if each != form and _SHAPES[each] == _SHAPES[form]]
            for twin in (each for each in twins if column.formats[each] == column.formats[form]):
                meant = _in_words(column.example, form) if column.example else ""
                yield f"check this: {_quoted(twin)} fits as many values{meant}"
        if others := column.filled - sum(column.formats[each] for each in best):
            yield f"check this: {others:,} of {column.filled:,} values have another form"

    def _statuses(self, column: _Column) -> Iterator[str]:
        yield from ("", "[columns.status]", f"column = {_quoted(column.header)}")
        if len(column.values) > _MOST_VALUES:
            yield "# check this: it has too many different values for a status"
            return
        yield from ("", '[columns.status.values]  # each value is "booked", "cancelled" or "ignore"')
        for value, count in column.values.most_common():
            words = _folded(value)
            meaning = next((each for each, form in _WORDS["statuses"].items() if re.match(form, words)), None)
            rows = f"{count:,} {'row' if count == 1 else 'rows'}"
            line = f'{_quoted(value)} = "{meaning or ""}"'
            yield f"{line}  # guess; {rows}" if meaning else f"# {line}  # fill in, and remove the first #; {rows}"


def _in_words(text: str, form: str) -> str:
    return f"; here {text} is {datetime.strptime(text, form):%d %B %Y}"  # noqa: DTZ007 - only the day is shown


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
