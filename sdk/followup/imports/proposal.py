"""Proposes the map of a file from its headers and values, with a comment at each guess and at each alternative."""

import contextlib
import functools
import itertools
import json
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

import attrs
import phonenumbers

from followup.imports.files import Table, text_of
from followup.imports.maps import DATE_OF_BIRTH, FIELDS, REQUIRED, TIMES
from followup.imports.phones import phone_of
from followup.imports.values import Invalid

_ZONES: Final[Mapping[str, str]] = {
    "AR": "America/Argentina/Buenos_Aires",
    "BO": "America/La_Paz",
    "BR": "America/Sao_Paulo",
    "CL": "America/Santiago",
    "CO": "America/Bogota",
    "CR": "America/Costa_Rica",
    "DO": "America/Santo_Domingo",
    "EC": "America/Guayaquil",
    "ES": "Europe/Madrid",
    "GT": "America/Guatemala",
    "MX": "America/Mexico_City",
    "PA": "America/Panama",
    "PE": "America/Lima",
    "PT": "Europe/Lisbon",
    "PY": "America/Asuncion",
    "US": "America/New_York",
    "UY": "America/Montevideo",
    "VE": "America/Caracas",
}
"""The zone of each country in which most of its people live."""

_NUMBER = "(id|nro|no|num(ero)?|n|cod(igo)?|number|code)"
_OF = "( de| do| da| del| of)?( el| la| o| a| the)?"
_VISIT = "(atencion|atendimento|visita|consulta realizada|visit|encounter)"
_BOOKING = f"(turno|cita|agendamento|appointment|booking|reserva|consulta|{_VISIT})"
_PERSON = "(paciente|patient|pac|persona|cliente)"
_DOCTOR = "(medico|medica|doctor|doctora|dr|profesional|profissional|provider|physician|prestador)"
_NAMES: Final[Mapping[str, str]] = {
    "external_id": rf"{_NUMBER}{_OF} {_BOOKING}|{_BOOKING} {_NUMBER}|folio|{_NUMBER}|turno|cita",
    "visited_at": rf"(fecha|data|date|dia|hora|time)( y hora| e hora)?{_OF} {_VISIT}|{_VISIT} (date|time)",
    "start_at": (
        rf"(fecha|data|dia|date|day|hora|hora inicio|horario|inicio|start|time|fecha y hora|data e hora|date time"
        rf"|fecha hora|start (at|time|date)|comienzo)({_OF} {_BOOKING})?|{_BOOKING} (date|time|start)"
    ),
    "status": r"estado|estatus|status|situacion|situacao|state|asistencia|condicion",
    "reason": r"(motivo|causa|reason)( (de|da|for))?( la)? (cancelacion|anulacion|baja|cancelamento|cancellation)",
    "type": (
        r"practica|tipo|type|servicio|servico|service|prestacion|procedimento|procedimiento|estudio|motivo"
        rf"|especialidad turno|tipo{_OF} (turno|cita|consulta|atencion|practica)|(visit|appointment) type|procedure"
    ),
    "diagnosis": r"diagnostico|diagnosis|cie ?10|cid|dx",
    "notes": r"notas?|observacion(es)?|observacoes|obs|comentarios?|notes?|comments?",
    "patient.external_id": (
        rf"hc|h c|hist(oria)?( clinica)?|{_NUMBER}{_OF} (hc|historia( clinica)?|{_PERSON}|prontuario)"
        rf"|{_PERSON} {_NUMBER}|prontuario|expediente|legajo|ficha|mrn|record( number)?"
    ),
    "patient.dni": (
        rf"dni|d n i|doc(umento)?|(nro|numero|n|num)( de)? doc(umento)?|documento{_OF} {_PERSON}|cpf|rut|rg|ci|cedula"
        r"|cuil|curp|nif|identificacion|national id|document( number)?"
    ),
    "patient.phone": (
        r"(tel(efono)?|telefone|fone|phone|nro|numero)?( de| do)? ?(cel(ular)?|movil|mobile|whatsapp|wsp|cell( phone)?)"
        rf"|(tel(efono)?|telefone|fone|phone)( number)?( 1)?({_OF} {_PERSON})?|{_PERSON} phone|contacto"
    ),
    "patient.email": r"(e ?)?mail|correo( electronico)?|email( address)?",
    "patient.date_of_birth": (
        r"((fecha|fec|f|data|dt)( de)? )?(nac(imiento)?|nascimento)|dob|birth ?date|date of birth"
    ),
    "patient.full_name": (
        rf"{_PERSON}|(apellidos?|nombres?)( y)? (nombres?|apellidos?)|(nombre|nome) completo|full name"
        rf"|(nombre|nome|name){_OF} {_PERSON}|{_PERSON} (name|nombre)"
    ),
    "doctor.external_id": rf"{_NUMBER}{_OF} {_DOCTOR}|{_DOCTOR} {_NUMBER}|matricula|crm",
    "doctor.full_name": rf"{_DOCTOR}|(nombre|nome|name){_OF} {_DOCTOR}|{_DOCTOR} name|agenda",
    "doctor.specialty": r"especialidad|especialidade|specialty",
}
"""The fields, and what their headers look like without accents, case and punctuation."""

_GIVEN = "nombres?|nome|name|(first|given) name"
_FAMILY = "apellidos?|sobrenome|surname|(last|family) name"
_MOBILE = re.compile("cel|movil|mobile|wh?ats|wsp")

_STATUSES: Final[Mapping[str, str]] = {
    "booked": "confirm|reserv|asign|program|agend|pendient|pendente|otorg|marcad|booked|scheduled|activ|a confirmar|"
    "atendid|present|asisti|ausent|no asis|falt|finaliz|realiz|complet|attended|no show|en espera|em espera|arrived|"
    "en sala|nuevo|new|reprogram|remarc|reagend|resched|sobreturno",
    "cancelled": "cancel|anul|suspend|baja|elimin|desmarc|delet|void",
    "ignore": "feriado|bloque|block|libre|livre|free|disponib|availab|vacaci|ferias|licencia|receso|holiday|almuerzo",
}
"""The beginnings of the words for a status."""

_REQUIRED: Final[Mapping[str, str]] = {
    "external_id": "the unique number of each row",
    "patient.external_id": "the unique number of each patient",
    "start_at": 'the start, or { columns = ["Fecha", "Hora"], format = "%d/%m/%Y %H:%M" }',
    "visited_at": 'the time, or { columns = ["Fecha", "Hora"], format = "%d/%m/%Y %H:%M" }',
}

_SETTINGS = (
    '# mobiles = "keep"  # or "assume": in Argentina, a number that is written as a landline is taken as the mobile',
    '# shared_phones = "reject"  # or "send": patients who share a phone are sent as they are',
    '# past = "skip"  # or "send": also appointments that began before now and are not known',
    '# missing = "report"  # or "cancel": known appointments that are still ahead and not in the file',
    "# max_rejected = 5  # percent of the rows; above it, nothing is recorded",
    "# max_gone = 20  # percent of the known appointments that are still ahead; above it, nothing is recorded",
    '# name = "default"  # one for each of several files with one database',
)

_MOST_VALUES = 30
"""A column with more different values is no status."""

_LOOKS: Final[Mapping[str, re.Pattern[str]]] = {
    "patient.phone": re.compile(r"(?=(\D*\d){8,15}\D*$)[+(\d][\d\s().+/-]*"),
    "patient.dni": re.compile(r"(dni\s*)?[\d.]{7,11}(-[\dk]{1,2})?|\d\d-\d{8}-\d", re.IGNORECASE),
    "patient.email": re.compile(r"[^@\s]+@[^@\s]+\.\w+"),
}
"""What the values of a field look like, whatever its header is."""

_SAMPLE = 1_000
"""Phones whose spelling is examined."""

_MOST = 0.6
"""The part of the values that must look like those of a field."""

_DATES = (
    *("%d/%m/%Y", "%d-%m-%Y", "%d.%m.%Y", "%d/%m/%y", "%d-%m-%y", "%d.%m.%y"),
    *("%m/%d/%Y", "%m-%d-%Y", "%m/%d/%y", "%m-%d-%y", "%Y-%m-%d", "%Y/%m/%d", "%Y%m%d"),
)
_CLOCKS = ("%H:%M", "%H:%M:%S", "%I:%M %p", "%I:%M:%S %p", "%I:%M%p", "%H.%M", "%Hh%M")
_OFFSET = "ISO 8601 with an offset"
_MOMENTS = (*(day + f" {clock}" for day in _DATES for clock in _CLOCKS), "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", _OFFSET)
_ISO = {"%Y-%m-%d", *(form for form in _MOMENTS if form.startswith("%Y-%m-%d") and form.endswith(("M", "S"))), _OFFSET}
"""Formats that a map need not name."""


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
    """What the header and the values of a column say."""

    header: str
    words: str = attrs.field(init=False)
    has_ids: bool = attrs.field(init=False)
    filled: int = 0
    formats: Counter[str] = attrs.field(factory=Counter)
    looks: Counter[str] = attrs.field(factory=Counter)
    values: Counter[str] = attrs.field(factory=Counter)
    countries: Counter[str] = attrs.field(factory=Counter)
    example: str = ""
    is_padded: bool = True
    ids: set[int] = attrs.field(factory=set)
    phones: list[str] = attrs.field(factory=list)

    def __attrs_post_init__(self) -> None:
        self.words = _folded(self.header)
        self.has_ids = self.is_named("external_id") or self.is_named("patient.external_id")

    def add(self, value: str) -> None:
        """Count a value."""
        if len(self.values) <= _MOST_VALUES:
            self.values[value] += 1
        if not value:
            return
        self.filled += 1
        self._add_formats(value)
        self.looks.update(field for field, pattern in _LOOKS.items() if pattern.fullmatch(value))
        if self.has_ids:
            self.ids.add(hash(value))
        if self.is_named("patient.phone") and len(self.phones) < _SAMPLE:
            self.phones.append(value)
        if value.startswith(("+", "00")) and (country := _country_of(value)):
            self.countries[country] += 1

    def _add_formats(self, value: str) -> None:
        formats = _formats_of(value)
        self.formats.update(formats)
        if not formats:
            return
        self.is_padded = self.is_padded and not re.search(r"(?<!\d)\d(?!\d)", value)
        if len(formats) > 1 and len({*re.split(r"\D", value)[:2]}) > 1:
            self.example = self.example or value

    def is_named(self, field: str) -> bool:
        """Return whether the header is one of a field."""
        return re.fullmatch(_NAMES[field], self.words) is not None

    def is_like(self, field: str) -> bool:
        """Return whether most values look like those of a field; an empty column looks like any."""
        return field not in _LOOKS or self.looks[field] >= _MOST * self.filled

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
    for rows, (_, cells) in enumerate(table.rows(on_progress), start=1):  # noqa: B007 - the number of rows
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
        lines = [
            f"# Proposed by 'followup import init' from {self._name}, with {self._rows:,} rows. Read each comment,",
            "# and correct what is wrong. Then see what the file would do: followup import check FILE --map THIS_FILE",
            "",
            f'kind = "{self._kind}"  # guess: {self._kind_because}. Or: "appointments", "patients", "visits"',
            *self._place(),
            *_SETTINGS,
            "",
            "[columns]",
            *fields,
            *([f"# Not sent: {left}"] if left else []),
            *(self._statuses(status) if status else []),
        ]
        return "\n".join(lines) + "\n"

    def _kind_of(self) -> tuple[str, str]:
        if any(each.is_named("visited_at") or each.is_named("diagnosis") for each in self._free):
            return "visits", "a header names a visit or a diagnosis"
        if any(each.best((*_MOMENTS, *(form for form in _CLOCKS if ":" in form))) for each in self._free):
            return "appointments", "a column has times"
        return "patients", "no column has times"

    def _place(self) -> Iterator[str]:
        found = self._countries.most_common()
        zone = _ZONES.get(found[0][0], self._own_zone) if found else self._own_zone
        zone_because = f"most people in {found[0][0]} live in it" if found else "the zone of this computer"
        yield f"zone = {_quoted(zone)}  # check this: {zone_because}"
        counts = ", ".join(f"{country} {count:,}" for country, count in found)
        because = f"country codes of the phones: {counts}" if found else "the country of the zone of this computer"
        if self._country:
            yield f"country = {_quoted(self._country)}  # check this: {because}"
        else:
            yield '# country = ""  # fill in: the country of phones without a country code, such as "AR"'

    def _take(self, field: str) -> _Column | None:
        """Return the column of a field, which no other field gets then; None if no header names it."""
        named = [each for each in self._free if each.is_named(field) and each.is_like(field)]
        named.sort(key=lambda each: self._rank(field, each))
        return self._use(named[0]) if named else None

    def _use(self, column: _Column) -> _Column:
        self._free = [each for each in self._free if each is not column]
        self._used.append(column)
        return column

    def _rank(self, field: str, column: _Column) -> bool:
        """Return whether another column with a header for the same field is preferred."""
        if field == "patient.phone":
            return _MOBILE.search(column.words) is None
        return column.has_ids and len(column.ids) < self._rows

    def _columns_of_fields(self) -> Iterator[str]:
        """Yield a line for each field, in the order of the fields; first those that are required."""
        fields = FIELDS[self._kind]
        required = REQUIRED[self._kind]
        for field in (*required, *(each for each in _NAMES if each in fields and each not in required)):
            if field == "status":
                continue
            line = self._line_of_time(field) if field in TIMES else self._line_of(field)
            if line is None and field in required:
                line = f'# {_key(field)} = ""  # fill in: the column with {_REQUIRED[field]}'
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
        others = ", ".join(_quoted(each.header) for each in self._free if each.is_named(field) and each.is_like(field))
        comments = [f"guess: it could also be {others}"] if others else []
        if column.has_ids and field in REQUIRED[self._kind] and len(column.ids) < self._rows:
            comments.append(f"check this: {len(column.ids):,} different values in {self._rows:,} rows")
        if field == DATE_OF_BIRTH:
            return self._with_format(field, [(column, _DATES)], comments)
        if field == "patient.phone" and (landlines := self._landlines(column)):
            comments.append(f'{landlines:,} are written as landlines: mobiles = "assume" takes them as mobiles')
        return _line(field, _quoted(column.header), comments)

    def _line_of_name(self) -> str | None:
        names = [each for form in (_GIVEN, _FAMILY) for each in self._free if re.fullmatch(form, each.words)]
        for each in names:
            self._use(each)
        if len(names) < 2:
            return _line("patient.full_name", _quoted(names[0].header), []) if names else None
        template = _quoted(" ".join(f"{{{each.header}}}" for each in names))
        return _line("patient.full_name", f"{{ template = {template} }}", ["guess: check the order"])

    def _line_by_values(self, field: str) -> str | None:
        """Return a commented line for a column that no header explains, but whose values look like the field."""
        for each in self._free:
            if field in _LOOKS and each.filled and each.is_like(field) and not any(map(each.is_named, _NAMES)):
                self._use(each)
                line = _line(field, _quoted(each.header), ["guess by the values: if it is right, remove the first #"])
                return f"# {line}"
        return None

    def _line_of_time(self, field: str) -> str | None:
        free = [each for each in self._free if not each.is_named(DATE_OF_BIRTH)]
        named = [each for each in free if each.is_named(field) or each.is_named("start_at")]
        clocks = [each for each in (*named, *free) if each.best(_CLOCKS)]
        for group, comments in ((named, []), (free, ["guess by the values"])):
            if moments := [each for each in group if each.best(_MOMENTS)]:
                return self._with_format(field, [(moments[0], _MOMENTS)], comments)
            if (dates := [each for each in group if each.best(_DATES)]) and clocks:
                return self._with_format(field, [(dates[0], _DATES), (clocks[0], _CLOCKS)], comments)
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
        if all(each in _ISO for best in found for each in best) and all(column.is_padded for column, _ in parts):
            return _line(field, headers[0] if len(headers) == 1 else f"{{ {source} }}", comments)
        joined = [_quoted(" ".join(each)) for each in itertools.product(*found)]
        shown = f"[{', '.join(joined)}]" if len(joined) > 1 else "".join(joined)
        return _line(field, f"{{ {source}, format = {shown} }}" if joined else headers[0], comments)

    def _about_formats(self, column: _Column, best: Sequence[str], formats: Sequence[str]) -> Iterator[str]:
        for form in best[:1]:
            twins = [each for each in formats if each != form and _SHAPES[each] == _SHAPES[form]]
            for twin in (each for each in twins if column.formats[each] == column.formats[form]):
                meant = _in_words(column.example, form) if column.example else ""
                yield f"check this: {_quoted(twin)} fits as many values{meant}"
        if others := column.filled - sum(column.formats[each] for each in best):
            yield f"check this: {others:,} of {column.filled:,} values have another form"

    def _landlines(self, column: _Column) -> int:
        """Return how many of the first phones are written as landlines, if that may be meant otherwise."""
        found = 0
        for each in column.phones if self._country == "AR" else ():
            with contextlib.suppress(Invalid):
                found += phone_of(each, "AR", "assume")[1] == "phone_assumed_mobile"
        return found

    def _statuses(self, column: _Column) -> Iterator[str]:
        yield ""
        yield "[columns.status]"
        yield f"column = {_quoted(column.header)}"
        if len(column.values) > _MOST_VALUES:
            yield "# check this: it has too many different values for a status"
            return
        yield ""
        yield '[columns.status.values]  # each value is "booked", "cancelled" or "ignore"'
        for value, count in column.values.most_common():
            words = _folded(value)
            meaning = next((each for each, form in _STATUSES.items() if re.match(form, words)), None)
            rows = f"{count:,} {'row' if count == 1 else 'rows'}"
            if meaning:
                yield f'{_quoted(value)} = "{meaning}"  # guess; {rows}'
            else:
                yield f'# {_quoted(value)} = ""  # fill in, and remove the first #; {rows}'


def _in_words(text: str, form: str) -> str:
    return f"; here {text} is {datetime.strptime(text, form):%d %B %Y}"  # noqa: DTZ007 - only the day is shown


def _key(field: str) -> str:
    return f'"{field}"' if "." in field else field


def _line(field: str, value: str, comments: Sequence[str]) -> str:
    return f"{_key(field)} = {value}" + (f"  # {'; '.join(comments)}" if comments else "")


def _own_zone() -> str:
    """Return the IANA name of the zone of this computer; UTC if it has none."""
    link = Path("/etc/localtime")
    for name in (os.environ.get("TZ", "").lstrip(":"), str(link.resolve()).rpartition("zoneinfo/")[2]):
        with contextlib.suppress(KeyError, ValueError, OSError):
            return ZoneInfo(name).key
    return "UTC"
