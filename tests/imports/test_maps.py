"""Maps: what each key may be, and errors that name the place and say what would be right."""

import re
from pathlib import Path

import pytest

from followup import ConfigurationError
from followup.imports import Import

START = 'kind = "appointments"\nzone = "America/Argentina/Buenos_Aires"\ncountry = "AR"\n'
COLUMNS = '[columns]\nexternal_id = "Nro"\nstart_at = "Inicio"\n'


def load(folder: Path, text: str | bytes) -> Import:
    (folder / "map.toml").write_bytes(text.encode() if isinstance(text, str) else text)
    return Import.load(folder / "map.toml")


def test_the_defaults(tmp_path: Path) -> None:
    loaded = load(tmp_path, b"\xef\xbb\xbf" + (START + COLUMNS).encode()).map
    assert (loaded.mobiles, loaded.past, loaded.missing, loaded.shared_phones) == ("keep", "skip", "report", "reject")
    assert (loaded.max_rejected, loaded.max_gone, loaded.name, loaded.sheet) == (5, 20, "default", None)


@pytest.mark.parametrize(
    ("settings", "columns", "message"),
    [
        ("kinds = 1", "", "kinds is unknown; did you mean kind?"),
        ('mobile = "keep"', "", "mobile is unknown; did you mean mobiles?"),
        ('mobiles = "yes"', "", "mobiles must be one of keep, assume"),
        ("past = true", "", "past must be one of skip, send"),
        ('missing = "delete"', "", "missing must be one of report, cancel"),
        ("shared_phones = []", "", "shared_phones must be one of reject, send"),
        ('max_rejected = "5"', "", "max_rejected must be a percentage from 0 to 100, without quotes"),
        ("max_gone = 101", "", "max_gone must be a percentage from 0 to 100"),
        ("max_gone = nan", "", "max_gone must be a percentage from 0 to 100"),
        ("max_gone = true", "", "max_gone must be a percentage from 0 to 100"),
        ('name = " "', "", "name must be text in quotes"),
        ("sheet = 1", "", "sheet must be text in quotes"),
        (f'name = "{"x" * 256}"', "", "name must have at most 255 characters, and no control characters"),
        (r'name = "a\u0000b"', "", "name must have at most 255 characters"),
        ("", 'patient = "x"', "columns.patient is unknown in a map of appointments; did you mean patient.dni?"),
        ("", 'reson = "x"', "columns.reson is unknown in a map of appointments; did you mean reason?"),
        ("", '"patient.fullname" = "x"', "columns.patient.fullname is unknown in a map of appointments; did you mean"),
        ("", 'diagnosis = "x"', "columns.diagnosis is unknown in a map of appointments; "),
        ("", "type = 1", 'columns.type must be one of "Header", or a table with column = '),
        ("", "type = {}", "columns.type must be one of"),
        ("", 'type = { column = "a", value = "b" }', "columns.type must be one of"),
        ("", 'type = { column = "" }', "columns.type.column must be text in quotes"),
        ("", 'type = { columns = "a" }', 'columns.type.columns must be a list of texts in quotes, such as ["Fecha'),
        ("", 'type = { template = "{" }', 'columns.type.template must have headers in braces, such as "{Nombre}'),
        ("", 'type = { column = "a", format = "%d" }', "columns.type.format is unknown"),
        ("", 'type = { column = "a", values = {} }', "columns.type.values is unknown"),
        ("", 'status = { column = "a", value = {} }', "columns.status must be one of"),
        ("", 'status = { column = "a", values = {} }', "columns.status.values must be a table, such as"),
        ("", 'status = { column = "a", values = { x = "no" } }', "columns.status.values.'x' must be one of booked, "),
        ("", 'status = { column = "a", values = { x = "booked", " x" = "ignore" } }', "columns.status.values has 'x'"),
        ("", '"patient.dni" = "a"\n[columns.patient]\ndni = "b"', "columns.patient.dni is there twice"),
        ("", 'status = { value = "done" }', "columns.status.value must be one of booked, cancelled, ignore"),
    ],
)  # fmt: skip
def test_an_invalid_key_is_named_with_what_would_be_right(
    settings: str, columns: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, f"{START}{settings}\n{COLUMNS}{columns}")
    assert str(caught.value).startswith(f"{tmp_path / 'map.toml'}: {message}")


@pytest.mark.parametrize(
    "format",
    [
        *("%d/%m/%Y", "%H:%M", "%d/%m %H:%M", "%d/%m/%Y %I:%M", "%d/%m/%Y %H:%M %Z", "%d/%m/%Y %d %H:%M"),
        *("d/m/Y H:i", "%Q", "", 1, []),
    ],
)
def test_a_format_that_leaves_something_open_is_invalid(format: object, tmp_path: Path) -> None:
    text = (START + COLUMNS).replace('"Inicio"', f'{{ column = "Inicio", format = {format!r} }}')
    with pytest.raises(
        ConfigurationError, match=r"columns\.start_at\.format must (be text|have year, month, day and hour)"
    ):
        load(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kind = \n", "a map must be TOML: .*line 1"),
        (b"\xff", "a map must be UTF-8 text"),
        ("x = " + "[" * 5_000, "a map must be TOML"),
        ("x" * 1_100_000, "a map has at most 1,048,576 bytes"),
        (START, "columns is required"),
        (START + "columns = 1", r"columns must be a table, \[columns\]"),
        (START + "[columns]\n", "columns.external_id is required in a map of appointments"),
        (START + '[columns]\nexternal_id = "Nro"', "columns.start_at is required in a map of appointments"),
        (START.replace("appointments", "turnos") + COLUMNS, "kind must be one of appointments, patients, visits"),
        (START.replace("appointments", "visits") + COLUMNS, "columns.start_at is unknown in a map of visits; the keys"),
        (START.replace("appointments", "patients") + COLUMNS, "columns.external_id is unknown in a map of patients; "),
        (START.replace("Buenos_Aires", "Rosario") + COLUMNS, "zone must be the IANA name of a time zone, such as"),
        (START.replace("America/Argentina/Buenos_Aires", "../../etc") + COLUMNS, "zone must be the IANA name"),
        (START.replace('"AR"', '"ar"') + COLUMNS, "country must be the ISO 3166 code of a country in upper case"),
        (START.replace("country", "city") + COLUMNS, "city is unknown; "),
    ],
)
def test_an_unusable_map_is_an_error_that_names_the_place(text: str | bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=rf"map\.toml: {message}") as caught:
        load(tmp_path, text)
    assert re.match(r"[^\n]*\Z", str(caught.value))


def test_fields_of_the_patient_may_be_written_without_quotes(tmp_path: Path) -> None:
    job = load(tmp_path, START + COLUMNS + 'patient.phone = "Celular"\n[columns.doctor]\nfull_name = "Médico"')
    (tmp_path / "turnos.csv").write_text("Nro,Inicio,Celular,Médico\nA1,2035-01-01 10:00,+59894123456,Ruiz", "utf-8")
    (event,) = job.check(tmp_path / "turnos.csv").events
    assert event["data"]["patient"] == {"phone": "+59894123456"}
    assert event["data"]["appointment"]["doctor"] == {"fullName": "Ruiz"}
