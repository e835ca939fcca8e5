"""Maps: TOML files that say which columns of a clinic's file are which fields, and how to read them."""

import codecs
import difflib
import re
import tomllib
from collections.abc import Collection, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal, NoReturn, get_args
from zoneinfo import ZoneInfo

import attrs
import phonenumbers

from followup import ConfigurationError, DoctorInput, PatientInput
from followup._core.codec.kinds import kinds_in
from followup._core.package_data import zone_of
from followup._store.schema import LONGEST_TEXT
from followup.imports.files import Layout
from followup.imports.formats import Format, FormatError, format_of
from followup.imports.values import At

Kind = Literal["appointments", "patients", "visits"]
Status = Literal["booked", "cancelled", "ignore"]

_PATIENT = tuple(f"patient.{name}" for name in PatientInput.__annotations__)
_DOCTOR = tuple(f"doctor.{name}" for name in DoctorInput.__annotations__)

FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "appointments": ("external_id", "start_at", "status", "type", "reason", *_PATIENT, *_DOCTOR),
    "patients": _PATIENT,
    "visits": ("external_id", "visited_at", "type", "diagnosis", "notes", *_PATIENT, *_DOCTOR),
}
"""The fields that the columns of a file may have, by kind of object."""

REQUIRED: Final[Mapping[str, tuple[str, ...]]] = {
    "appointments": ("external_id", "start_at"),
    "patients": ("patient.external_id",),
    "visits": ("external_id", "visited_at"),
}

TIMES: Final = ("start_at", "visited_at")
DATE_OF_BIRTH: Final = "patient.date_of_birth"

_OTHER_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "values": ("status",),
    "format": (*TIMES, DATE_OF_BIRTH),
    "order": ("patient.full_name",),
}
_LAST_HEADER_ROW = 10_000
_NAMES: Final = {
    "zone": "must be the IANA name of a time zone, such as America/Argentina/Buenos_Aires",
    "encoding": "must be the name of an encoding, such as cp850, cp1252, mac_roman or utf-8",
}
_SOURCES = ("column", "columns", "template", "value")
_FORMS = (
    '"Header", or a table with column = "Header", columns = ["Header", …], template = "{Header} …" or value = "text"'
)
PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_ORDER = "surname, name"
"""The order of a name that is turned round before it is sent."""

MAX_BYTES: Final = 1024 * 1024
"""The largest map."""


@attrs.frozen
class Column:
    """How the text of a field is made of the cells of a row.

    Attributes:
        headers: the columns; several are joined by a space.
        template: text in which ``{Header}`` stands for a cell; None: the cells as they are.
        constant: text that all rows have; None if it comes from cells.
        formats: the formats of a time or date; none: ISO 8601.
        values: what the values of a status mean.
        is_surname_first: whether a name is written as ``PÉREZ, Ana``.
    """

    headers: tuple[str, ...] = ()
    template: str | None = None
    constant: str | None = None
    formats: tuple[Format, ...] = ()
    values: Mapping[str, Status] | None = None
    is_surname_first: bool = False


@attrs.frozen(kw_only=True)
class Map(Layout):
    """A map, validated. The attributes are the keys of the TOML file.

    Attributes:
        columns: the columns by field, such as ``patient.phone``.
    """

    kind: Kind
    zone: ZoneInfo
    country: str
    columns: Mapping[str, Column]
    mobiles: Literal["keep", "assume"] = "keep"
    past: Literal["skip", "send"] = "skip"
    missing: Literal["report", "cancel"] = "report"
    max_rejected: float = 5
    max_gone: float = 20
    name: str = "default"
    shared_phones: Literal["reject", "send"] = "reject"
    midnight: Literal["reject", "send"] = "reject"
    mixed_dates: Literal["reject", "send"] = "reject"
    ignore: Mapping[str, frozenset[str]] = attrs.field(factory=dict)

    @property
    def id_field(self) -> str:
        """The field that identifies an object."""
        return REQUIRED[self.kind][0]

    @property
    def time_field(self) -> str:
        """The field with the start of an appointment or the time of a visit; empty for patients."""
        return "".join(REQUIRED[self.kind][1:])

    def skips(self, at: At | None, now: datetime) -> bool:
        """Return whether an object with this time is passed over, unless it is known: an appointment in the past."""
        return self.kind == "appointments" and self.past == "skip" and at is not None and at.instant < now

    @property
    def headers(self) -> tuple[str, ...]:
        """The headers of all columns."""
        mapped = (header for each in self.columns.values() for header in each.headers)
        return tuple(dict.fromkeys((*mapped, *self.ignore)))

    def column_of(self, field: str) -> str | None:
        """Return the header of a field, several joined by `` + ``; None if the file has no column of it."""
        column = self.columns.get(field)
        return " + ".join(column.headers) or None if column else None


_SETTINGS = kinds_in(Map)
_REQUIRED_SETTINGS = [each.name for each in attrs.fields(Map) if each.default is attrs.NOTHING]


def load(path: str | Path) -> Map:
    """Return the map in a file.

    Raises:
        OSError: the file cannot be read.
        ConfigurationError: the map is invalid; the message names the file, the key in it, and a valid value.
    """
    with Path(path).open("rb") as stream:
        content = stream.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ConfigurationError(f"{path}: a map has at most {MAX_BYTES:,} bytes; is this the file to import?")
    try:
        document = tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path}: a map must be UTF-8 text; save it in this encoding") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{path}: a map must be TOML: {error}") from None
    except RecursionError:
        raise ConfigurationError(f"{path}: a map must be TOML, with fewer levels of nesting") from None
    return _Reader(str(path)).map(document)


class _Reader:
    """Validates the document in a map; errors name the path and the key."""

    def __init__(self, path: str) -> None:
        self._path = path

    def map(self, document: Mapping[str, Any]) -> Map:
        self._check_names("", document, _SETTINGS)
        self._check_required("", document, _REQUIRED_SETTINGS)
        settings = {name: self._setting(name, value) for name, value in document.items() if name != "columns"}
        columns = self._columns(settings["kind"], document["columns"])
        if "sheet" in settings and "sheets" in settings:
            self._fail("sheets", "and sheet are both there: remove one of them")
        return Map(columns=columns, **settings)

    def _setting(self, name: str, value: Any) -> Any:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if _SETTINGS[name].values:
            return self._one_of(name, value, _SETTINGS[name].values)
        if float in _SETTINGS[name].types:
            if not is_number or not 0 <= value <= 100:
                self._fail(name, "must be a percentage from 0 to 100, without quotes")
            return value
        if name in ("sheets", "header"):
            found = self._texts(name, value, '["Turno", "Fecha"]')
            if len(set(found)) < len(found):
                self._fail(name, "has a name twice")
            return found
        if name == "ignore":
            if not isinstance(value, dict):
                self._fail("ignore", 'must be a table, [ignore], with lines such as "Paciente" = ["LIBRE", ""]')
            return {_one_line(key): self._ignored(key, texts) for key, texts in value.items()}
        if name == "header_row":
            if not is_number or value not in range(1, _LAST_HEADER_ROW + 1):
                self._fail(name, f"must be the number of a row, from 1 to {_LAST_HEADER_ROW:,}")
            return value
        text = self._text(name, value)
        if name == "name" and not (text.isprintable() and len(text) <= LONGEST_TEXT):
            self._fail(name, f"must have at most {LONGEST_TEXT} characters, and no control characters")
        if name == "country" and text not in phonenumbers.SUPPORTED_REGIONS:
            self._fail(name, "must be the ISO 3166 code of a country in upper case, such as AR")
        try:
            # Codecs such as base64 and rot13 read no text.
            if name == "encoding" and not codecs.lookup(text)._is_text_encoding:
                raise LookupError  # noqa: TRY301 - as that of an unknown one
            return zone_of(text) if name == "zone" else text
        except (LookupError, ValueError, OSError):
            self._fail(name, _NAMES[name])

    def _ignored(self, header: str, texts: Any) -> frozenset[str]:
        if not isinstance(texts, list) or not texts or not all(isinstance(each, str) for each in texts):
            self._fail(f"ignore.{header}", 'must be a list of texts in quotes, such as ["LIBRE", ""]')
        return frozenset(_one_line(each).casefold() for each in texts)

    def _texts(self, key: str, value: Any, example: str) -> tuple[str, ...]:
        if not isinstance(value, list) or not value:
            self._fail(key, f"must be a list of texts in quotes, such as {example}")
        return tuple(self._text(key, each) for each in value)

    def _columns(self, kind: str, columns: Any) -> dict[str, Column]:
        if not isinstance(columns, dict):
            self._fail(
                "columns", 'must be a table, [columns], with a line such as external_id = "Header" for each field'
            )
        flat: dict[str, Any] = {}
        for name, value in columns.items():  # patient.phone without quotes is a table in TOML
            is_group = name in ("patient", "doctor") and isinstance(value, dict)
            found = {f"{name}.{inner}": each for inner, each in value.items()} if is_group else {name: value}
            for each in found.keys() & flat.keys():
                self._fail(f"columns.{each}", "is there twice, with quotes and without them")
            flat |= found
        self._check_names("columns.", flat, FIELDS[kind], f" in a map of {kind}")
        self._check_required("columns.", flat, REQUIRED[kind], f" in a map of {kind}")
        return {name: self._column(name, value) for name, value in flat.items()}

    def _column(self, field: str, value: Any) -> Column:
        key = f"columns.{field}"
        table = {"column": value} if isinstance(value, str) else value
        forms = [name for name in _SOURCES if name in table] if isinstance(table, dict) else []
        if len(forms) != 1:
            self._fail(key, f"must be one of {_FORMS}")
        others = [name for name, fields in _OTHER_KEYS.items() if field in fields]
        self._check_names(f"{key}.", table, (*_SOURCES, *others))
        headers, template, constant = self._source(key if table is not value else f"{key}.{forms[0]}", table)
        if field == "status" and constant is not None:
            self._one_of(f"{key}.value", constant, get_args(Status))
        return Column(
            headers,
            template,
            constant,
            self._formats(field, table["format"]) if "format" in table else (),
            self._values(f"{key}.values", table["values"]) if "values" in table else None,
            "order" in table and self._one_of(f"{key}.order", table["order"], (_ORDER,)) == _ORDER,
        )

    def _source(self, key: str, table: Mapping[str, Any]) -> tuple[tuple[str, ...], str | None, str | None]:
        """Return headers, template and constant of a column."""
        if "columns" in table:
            return tuple(map(_one_line, self._texts(key, table["columns"], '["Fecha", "Hora"]'))), None, None
        if "column" in table:
            return (_one_line(self._text(key, table["column"])),), None, None
        if "value" in table:
            return (), None, self._text(key, table["value"])
        template = self._text(key, table["template"])
        headers = tuple(map(_one_line, PLACEHOLDER.findall(template)))
        if not all(headers) or not headers:
            self._fail(key, 'must have headers in braces, such as "{Nombre} {Apellido}"')
        return headers, template, None

    def _formats(self, field: str, value: Any) -> tuple[Format, ...]:
        key = f"columns.{field}.format"
        texts = [self._text(key, each) for each in (value if isinstance(value, list) and value else [value])]
        try:
            return tuple(format_of(each, has_time=field in TIMES) for each in texts)
        except FormatError as error:
            self._fail(key, str(error))

    def _values(self, key: str, values: Any) -> dict[str, Status]:
        if not isinstance(values, dict) or not values:
            self._fail(key, 'must be a table, such as { "Confirmado" = "booked", "Anulado" = "cancelled" }')
        found: dict[str, Status] = {}
        for text, meaning in values.items():
            if text.strip() in found:
                self._fail(key, f"has {text.strip()!r} twice; spaces around values are ignored")
            found[text.strip()] = self._one_of(f"{key}.{text.strip()!r}", meaning, get_args(Status))
        return found

    def _check_names(self, prefix: str, table: Mapping[str, Any], known: Collection[str], where: str = "") -> None:
        for name in table:
            if name not in known:
                close = difflib.get_close_matches(name, known, n=1)
                hint = f"did you mean {close[0]}?" if close else f"the keys{where} are {', '.join(known)}"
                self._fail(f"{prefix}{name}", f"is unknown{where}; {hint}")

    def _check_required(self, prefix: str, table: Mapping[str, Any], names: Collection[str], where: str = "") -> None:
        for name in names:
            if name not in table:
                self._fail(f"{prefix}{name}", f"is required{where}")

    def _one_of(self, key: str, value: Any, options: tuple[str, ...]) -> Any:
        if value not in options:
            self._fail(key, f"must be one of {', '.join(options)}")
        return value

    def _text(self, key: str, value: Any) -> str:
        if not isinstance(value, str) or not value.strip():
            self._fail(key, "must be text in quotes")
        return value.strip()

    def _fail(self, key: str, problem: str) -> NoReturn:
        raise ConfigurationError(f"{self._path}: {key} {problem}")


def _one_line(text: str) -> str:
    """Return a text without line breaks and without spaces around it, as headers are compared."""
    return " ".join(text.split())
