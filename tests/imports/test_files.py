"""Files as clinics export them, written by hand, with an answer sheet written by hand: events and doubts of each."""

import json
from pathlib import Path

import pytest

from followup import ConfigurationError
from followup.imports import Import, Report

FILES = Path(__file__).parent / "files"

ARGENTINA = {"kind": "appointments", "zone": "America/Argentina/Buenos_Aires", "country": "AR"}
SPAIN = {"kind": "appointments", "zone": "Europe/Madrid", "country": "ES"}
STATUS = {"column": "Estado", "values": {"Confirmado": "booked", "Anulado ": "cancelled", "Feriado": "ignore"}}
COLUMNS = {
    "external_id": "Turno",
    "start_at": {"columns": ["Fecha", "Hora"], "format": "%d/%m/%Y %H:%M"},
    "status": STATUS,
    "patient.full_name": "Paciente",
    "patient.phone": "Celular",
    "patient.dni": "DNI",
}
THREE = {"external_id": "Turno", "start_at": "Inicio", "patient.phone": "Celular"}
DOCUMENTS = {"external_id": "Turno", "start_at": "Inicio", "patient.dni": "Documento"}
PATIENTS = {
    "patient.external_id": "HC",
    "patient.full_name": {"template": "{Apellido}, {Nombre}"},
    "patient.phone": {"column": "Tel"},
    "patient.email": "Mail",
    "patient.date_of_birth": {"column": "Nacimiento", "format": "%d/%m/%Y"},
}
VISITS = {
    "external_id": "id",
    "visited_at": {"columns": ["fecha", "hora"], "format": "%d/%m/%Y %H:%M"},
    "patient.full_name": "paciente",
    "patient.external_id": "hc",
    "diagnosis": "dx",
    "notes": "notas",
    "doctor.full_name": {"value": "Dra. Ruiz"},
}


def formatted(*formats: str) -> dict[str, object]:
    return THREE | {"start_at": {"column": "Inicio", "format": list(formats)}}


TWO_BOOKED = """
A1 | 2035-09-28T13:30 | +5491148120001 | 30111222 | Añasco Núñez
A2 | 2035-10-03T12:05 | +5493515120002 | 28222333 | Bea Sosa
"""

ANSWERS = {
    "plain": (ARGENTINA, COLUMNS, TWO_BOOKED),
    "bom": (ARGENTINA, COLUMNS, TWO_BOOKED),
    "utf_16": (ARGENTINA, COLUMNS, TWO_BOOKED),
    "cp1252": (ARGENTINA, COLUMNS, TWO_BOOKED),
    "pipe": (ARGENTINA, COLUMNS, TWO_BOOKED),
    "mac": (ARGENTINA, COLUMNS, TWO_BOOKED),
    "sep_line": (ARGENTINA, COLUMNS, TWO_BOOKED),
    "undefined_byte": (
        ARGENTINA,
        COLUMNS,
        """
A1 | 2035-09-28T13:30 | +5491148120001 | 30111222 | Añasco Núñez
A2 | 2035-10-03T12:05 | +5493515120002 | 28222333 | B�a Sosa
row 3 | Paciente | encoding_replaced | B�a Sosa
""",
    ),
    "bom_and_bad_byte": (
        ARGENTINA,
        COLUMNS,
        TWO_BOOKED.replace("Bea", "B�a") + "row 3 | Paciente | encoding_replaced | B�a Sosa",
    ),
    "one_bad_byte": (ARGENTINA, COLUMNS, TWO_BOOKED + "row 3 | Notas | encoding_replaced | Adi�s"),
    "quotes": (
        ARGENTINA,
        COLUMNS,
        """
A1 | 2035-09-28T13:30 | +5491148120001 | 30111222 | Sosa, Bea "Nena"
A2 | 2035-09-28T14:00 | +5491148120002 | 30111223 | Paz Eva
row 4 | Fecha + Hora | time_format | 28/09/2035 11h30
""",
    ),
    "empty_rows": (
        ARGENTINA,
        COLUMNS,
        """
A1 | 2035-09-28T13:30 | +5491148120001 | 30111222 | Ana
row 8 | Fecha + Hora | time_format | 28/09/2035
""",
    ),
    "trailer": (
        ARGENTINA,
        COLUMNS,
        """
A1 | 2035-09-28T13:30 | +5491148120001 | 30111222 | Añasco Núñez
""",
    ),
    "headers": (
        ARGENTINA,
        COLUMNS,
        """
A1 | 2035-09-28T13:30 | +5491148120001 | 30111222 | Ana
A2 | 2035-09-28T13:45 | +5491148120002 | 30111223 | Bea
A3 | 2035-09-28T13:50 | +5491148120003 | 30111224 | Eva
""",
    ),
    "wrong_length": (
        ARGENTINA,
        COLUMNS,
        """
A1 | 2035-09-28T13:30 | +5491148120001 | 30111222 | Añasco Núñez
row 3 | - | row_long | -
row 4 | - | row_short | -
row 5 | - | row_long | -
""",
    ),
    "cut_off": (
        ARGENTINA,
        COLUMNS,
        """
A1 | 2035-09-28T13:30 | +5491148120001 | 30111222 | Añasco Núñez
row 3 | - | row_short | -
""",
    ),
    "statuses": (
        ARGENTINA,
        COLUMNS,
        """
A1 | 2035-09-28T13:30 | +5491148120001 | Ana
row 3 | Estado | value_unknown | confirmado
row 4 | Estado | value_unknown | -
row 7 | Estado | value_unknown | Ausente
""",
    ),
    "ids": (
        ARGENTINA,
        COLUMNS,
        """
A2 | 2035-09-28T14:30 | +5491148120001 | Ana
a1 | 2035-09-28T16:30 | +5491148120001 | Ana
row 2 | Turno | id_missing | -
row 3 | Turno | id_repeated | A1
row 5 | Turno | id_repeated | A1
row 8 | Turno | id_repeated | A1
row 8 | Fecha + Hora | time_format | 28/09/2035 ?
""",
    ),
    "iso": (
        ARGENTINA,
        THREE,
        """
A1 | 2035-09-28T13:30 | +5491148120001
A2 | 2035-09-28T13:30 | +5491148120001
A3 | 2035-09-28T13:30 | +5491148120001
A8 | 2035-09-28T13:30 | +5491148120001
row 5 | Inicio | time_format | 2035-09-28
row 6 | Inicio | time_format | -
row 7 | Inicio | time_format | 28/09/2035 10:30
row 8 | Inicio | time_format | 2035-09-28T25:00
row 10 | Inicio | time_format | 0001-01-01T00:00+14:00
""",
    ),
    "clock_changes": (
        SPAIN,
        THREE,
        """
A1 | 2035-03-25T00:59 | +34612345678
A3 | 2035-03-25T01:00 | +34612345678
A4 | 2035-10-28T00:30 | +34612345678
A5 | 2035-10-28T01:30 | +34612345678
A6 | 2035-10-28T02:00 | +34612345678
row 3 | Inicio | time_nonexistent | 2035-03-25 02:30
row 5 | Inicio | time_ambiguous | 2035-10-28 02:30
""",
    ),
    "two_formats": (
        ARGENTINA,
        formatted("%d/%m/%Y %H:%M", "%Y.%m.%d %H%M"),
        """
A1 | 2035-09-28T13:30 | +5491148120001
A2 | 2035-09-28T13:30 | +5491148120001
row 4 | Inicio | time_format | 28-09-2035 10:30
""",
    ),
    "day_or_month": (
        ARGENTINA,
        formatted("%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M"),
        """
A1 | 2035-09-28T13:30 | +5491148120001
A2 | 2035-09-28T13:30 | +5491148120001
A4 | 2035-05-05T13:30 | +5491148120001
row 4 | Inicio | time_format | 03/04/2035 10:30
""",
    ),
    "twelve_hours": (
        ARGENTINA,
        formatted("%b %d %Y %I:%M %p"),
        """
A1 | 2035-09-28T03:05 | +5491148120001
A2 | 2035-09-28T18:05 | +5491148120001
row 4 | Inicio | time_format | Sep 28 2035 15:05
""",
    ),
    "phones": (
        ARGENTINA,
        THREE,
        """
A2 | 2035-09-28T13:30 | +541148120001
A6 | 2035-09-28T13:30 | +5491148120001
A7 | 2035-09-28T13:30 | +5491148120001
A8 | 2035-09-28T13:30 | +5491148120001
A12 | 2035-09-28T13:30 | +59894123456
row 2 | Celular | phone_invalid | 15 4812-0001
row 3 | Celular | phone_landline | 11 4812-0001
row 4 | Celular | phone_invalid | +54 9 11 4812-0001 int. 3
row 5 | Celular | phone_invalid | 011 15-4812-0001 / 4812-0002
row 6 | Celular | phone_invalid | 011 15-4812-0001, 011 15-4812-0002
row 10 | Celular | phone_invalid | +54 9 11
row 11 | - | patient_missing | -
row 12 | - | patient_missing | -
row 14 | Celular | phone_invalid | 011 15-4812-0001 (hija)
row 15 | Celular | phone_invalid | +1 212 555 CALL
""",
    ),
    "assumed": (
        ARGENTINA | {"mobiles": "assume"},
        THREE,
        """
A1 | 2035-09-28T13:30 | +5491148120001
A2 | 2035-09-28T13:30 | +5493514123456
A3 | 2035-09-28T13:30 | +59827123456
A4 | 2035-09-28T13:30 | +5491148120001
row 2 | Celular | phone_assumed_mobile | 11 4812-0001
row 3 | Celular | phone_assumed_mobile | (0351) 412-3456
row 4 | Celular | phone_landline | +598 2712 3456
""",
    ),
    "documents": (
        ARGENTINA,
        DOCUMENTS,
        """
A1 | 2035-09-28T13:30 | 30111222
A2 | 2035-09-28T13:30 | 30111222
A3 | 2035-09-28T13:30 | 30111222
A4 | 2035-09-28T13:30 | 30111222
A5 | 2035-09-28T13:30 | 5111222
A8 | 2035-09-28T13:30 | M7654321
A12 | 2035-09-28T13:30 | 30111222
A13 | 2035-09-28T13:30 | AAB123456
A14 | 2035-09-28T13:30 | 30111228
row 4 | Documento | dni_is_cuil | 20-30111222-0
row 5 | Documento | dni_is_cuil | 20301112220
row 6 | Documento | dni_is_cuil | 27-05111222-4
row 7 | Documento | dni_invalid | 20-30111222-4
row 8 | Documento | dni_invalid | 30-71234567-1
row 10 | - | patient_missing | -
row 11 | - | patient_missing | -
row 12 | - | patient_missing | -
row 15 | Documento | dni_is_cuil | 20-30111228-9
""",
    ),
    "documents_cl": (
        {"kind": "appointments", "zone": "America/Santiago", "country": "CL"},
        DOCUMENTS,
        """
A1 | 2035-09-28T13:30 | 12345670K
row 3 | Documento | dni_invalid | 20-30111222-4
row 4 | - | patient_missing | -
""",
    ),
    "patients": (
        ARGENTINA | {"kind": "patients"},
        PATIENTS,
        """
2 | Paz,
+5491148120004 | 4 | Paz Ríos, Eva Luz
5
row 2 | HC | id_repeated | 1
row 4 | HC | id_missing | -
row 5 | Mail | field_dropped | eva@@example.com
row 5 | Nacimiento | field_dropped | 31/02/1980
row 6 | Nacimiento | field_dropped | 28/09/2935
row 7 | Apellido + Nombre | field_invalid | #N/A,
row 7 | Nacimiento | field_dropped | 28/09/80
row 8 | HC | id_repeated | 1
""",
    ),
    "visits": (
        ARGENTINA | {"kind": "visits"},
        VISITS,
        """
V1 | 2025-09-28T13:30 | 7 | Ana | Dra. Ruiz | Control | Vuelve en "6" meses
row 3 | - | patient_missing | -
row 4 | fecha + hora | time_format | 29/09/2025
""",
    ),
    "long_cells": (
        ARGENTINA,
        THREE | {"type": "Práctica"},
        """
A1 | 2035-09-28T13:30 | +5491148120001 | xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
row 3 | Práctica | field_invalid | xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
row 4 | Turno | field_invalid | A3A3A3A3A3A3A3A3A3A3A3A3A3A3A3A3A3A3A3A3
row 5 | Inicio | field_invalid | 2222222222222222222222222222222222222222
""",
    ),
    "shared_phones": (
        ARGENTINA,
        THREE | {"patient.external_id": "HC", "patient.dni": "DNI"},
        """
A3 | 2035-09-28T13:30 | +5491148120003 | 30111444 | 3
A4 | 2035-09-29T13:30 | +5491148120003 | 3
A5 | 2035-09-29T13:30 | +5491148120003 | 30111444
A8 | 2035-09-28T13:30 | +5491148120008
A9 | 2035-09-28T13:30 | +5491148120008 | 9
row 2 | Celular | phone_shared | +5491148120001
row 3 | Celular | phone_shared | 011 15 4812 0001
row 7 | Celular | phone_shared | +5491148120006
row 8 | Celular | phone_shared | +5491148120006
row 11 | Celular | phone_shared | +5491148120011
row 12 | Celular | phone_shared | +5491148120011
""",
    ),
    "cut_off_in_quotes": (
        ARGENTINA,
        COLUMNS,
        """
A1 | 2035-09-28T13:30 | +5491148120001 | 30111222 | Añasco Núñez
row 3 | - | row_short | -
""",
    ),
    "nul_character": (
        ARGENTINA,
        COLUMNS,
        """
A1 | 2035-09-28T13:30 | +5491148120001 | 30111222 | Añasco Núñez
row 3 | Paciente | field_invalid | Be.a
""",
    ),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_each_file_has_the_events_and_doubts_of_the_answer_sheet(name: str, tmp_path: Path) -> None:
    settings, columns, answer = ANSWERS[name]
    report = importer(tmp_path, settings, columns).check(FILES / f"{name}.csv")
    assert lines_of(report) == answer.strip().splitlines()


def test_every_file_has_an_answer() -> None:
    assert {file.stem for file in FILES.iterdir()} == ANSWERS.keys()


def test_a_quote_that_takes_in_the_rows_after_it_is_an_error(tmp_path: Path) -> None:
    rows = [
        "Turno,Inicio,Celular,Nota",
        'A1,2035-09-28T10:30,+5491148120001,"a',
        "A2,2035-09-28T11:30,+5491148120002,b",
    ]
    (tmp_path / "turnos.csv").write_text("\n".join(rows), encoding="utf-8")
    job = importer(tmp_path, ARGENTINA, THREE)
    with pytest.raises(ConfigurationError, match=r"row 2: this is no CSV; a double quote may have been opened and not"):
        job.check(tmp_path / "turnos.csv")
    (tmp_path / "turnos.csv").write_text("\n".join([*rows, '"']), encoding="utf-8")
    assert job.check(tmp_path / "turnos.csv").rows == 1


def test_errors_of_a_spreadsheet_and_control_characters_are_no_documents(tmp_path: Path) -> None:
    rows = ["Turno;Inicio;Documento", "A1;2035-09-28T10:30;#DIV/0!", "A2;2035-09-28T10:30;30111\x00222"]
    (tmp_path / "turnos.csv").write_text("\n".join(rows), encoding="utf-8")
    doubts = importer(tmp_path, ARGENTINA, DOCUMENTS).check(tmp_path / "turnos.csv").doubts
    assert [(doubt.row, doubt.code) for doubt in doubts] == [(2, "field_invalid"), (3, "field_invalid")]


def importer(folder: Path, settings: dict[str, object], columns: dict[str, object]) -> Import:
    lines = [f"{key} = {toml(value)}" for key, value in settings.items()]
    lines += ["[columns]", *(f'"{key}" = {toml(value)}' for key, value in columns.items())]
    (folder / "map.toml").write_text("\n".join(lines), encoding="utf-8")
    return Import.load(folder / "map.toml")


def toml(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{key}" = {toml(each)}' for key, each in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)


OF_OBJECT = ("externalId", "startAt", "visitedAt")
OF_PATIENT = ("phone", "dni", "externalId", "email", "dateOfBirth", "fullName")


def lines_of(report: Report) -> list[str]:
    lines = []
    for event in report.events:
        patient = event["data"].get("patient", {})
        about = event["data"].get("appointment") or event["data"].get("visit") or {}
        about = {key: value[:16] if key.endswith("At") else value for key, value in about.items()}
        texts = [*map(about.get, OF_OBJECT), *map(patient.get, OF_PATIENT), about.get("doctor", {}).get("fullName")]
        lines.append([*texts, *map(about.get, ("type", "diagnosis", "notes"))])
    for doubt in report.doubts:
        lines.append([f"row {doubt.row}", doubt.column or "-", doubt.code, doubt.value or "-"])
        assert not doubt.value or len(doubt.value) < 4 or doubt.value not in doubt.text
    return [" | ".join(one_line(text) for text in line if text) for line in lines]


def one_line(text: str) -> str:
    return text[:40].replace("\n", "/").replace("\0", ".")
