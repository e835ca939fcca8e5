"""The codes of doubts, each with an example: a file that has it is imported, so the texts are those of the code."""

import csv
import io
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs

from followup.imports import Doubt, Import, ImportRefused
from followup.imports.report import CODES, doubt
from followup.outbox import Outbox

from .markdown import section, table

_MAP = """\
kind = "appointments"
zone = "{zone}"
country = "AR"
mobiles = "{mobiles}"
max_rejected = 100
max_gone = 100

[columns]
external_id = "Turno"
start_at = {{ columns = ["Fecha", "Hora"], format = "%d/%m/%Y %H:%M" }}
status = {{ column = "Estado", values = {{ "Confirmado" = "booked", "Anulado" = "cancelled" }} }}
"patient.external_id" = "HC"
"patient.full_name" = "Paciente"
"patient.dni" = "Documento"
"patient.phone" = "Celular"
"patient.email" = "Correo"
type = "Práctica"
"""

_ROW = {
    "Turno": "48201",
    "Fecha": "13/05/2030",
    "Hora": "08:00",
    "Estado": "Confirmado",
    "HC": "1001",
    "Paciente": "Ana Pérez",
    "Documento": "30.111.222",
    "Celular": "11 15-4812-0001",
    "Correo": "",
    "Práctica": "",
}
_OTHER = {"Turno": "48202", "HC": "1002", "Paciente": "Leo Pérez", "Documento": "50.111.222"}

Row = Mapping[str, str]
"""What differs from the row above."""


@attrs.frozen
class _Example:
    """Files of one import, a file a day, the last of which has the doubt; and what a reader sees in it.

    Without files, the text of the code is that of the doubt.
    """

    shown: str
    days: Sequence[Sequence[Row]]
    zone: str = "America/Argentina/Buenos_Aires"
    mobiles: str = "keep"
    after: bytes = b""


def _cell(column: str, value: str, mobiles: str = "keep") -> _Example:
    return _Example(f"{column} `{value}`" if value else f"{column} is empty", [[{column: value}]], mobiles=mobiles)


_MADRID = "Europe/Madrid"
_EXAMPLES: Mapping[str, _Example] = {
    "id_missing": _cell("Turno", ""),
    "id_repeated": _Example("two rows with Turno `48201`", [[{}, {**_OTHER, "Turno": "48201", "Celular": ""}]]),
    "row_short": _Example("the last line is cut off", [[{}]], after=b"48202;13/05/2030;09:00\n"),
    "row_long": _Example(
        "a `;` in a name without quotes", [[{}]], after=b"48202;13/05/2030;09:00;Confirmado;1;P;A;1;;;x\n"
    ),
    "time_format": _cell("Fecha", "13 de mayo"),
    "time_nonexistent": _Example("`31/03/2030` `02:30`", [[{"Fecha": "31/03/2030", "Hora": "02:30"}]], zone=_MADRID),
    "time_ambiguous": _Example("`27/10/2030` `02:30`", [[{"Fecha": "27/10/2030", "Hora": "02:30"}]], zone=_MADRID),
    "value_unknown": _cell("Estado", "Lista de espera"),
    "phone_invalid": _Example("Celular `4812-0001`", [[{"Celular": "4812-0001", "HC": "", "Documento": ""}]]),
    "phone_landline": _cell("Celular", "11 4812-0001"),
    "phone_assumed_mobile": _cell("Celular", "11 4812-0001", mobiles="assume"),
    "phone_shared": _Example("a mother and her son", [[{}, _OTHER]]),
    "phone_changed": _Example("another Celular than yesterday", [[{}], [{"Celular": "11 15-4812-0002"}]]),
    "dni_invalid": _Example("Documento `30.111.01O`", [[{"Documento": "30.111.01O", "HC": "", "Celular": ""}]]),
    "dni_is_cuil": _cell("Documento", "27-33456789-9"),
    "patient_missing": _Example("a row without a patient", [[{"HC": "", "Documento": "", "Celular": ""}]]),
    "field_invalid": _cell("Paciente", "#N/A"),
    "booked_again": _Example("`Confirmado` after `Anulado`", [[{}], [{"Estado": "Anulado"}], [{}]]),
    "gone": _Example("the file lacks `48201`, which it had yesterday", [[{}], [{**_OTHER, "Celular": ""}]]),
    "in_the_past": _cell("Fecha", "13/05/2020"),
    "encoding_replaced": _Example(
        "one program wrote UTF-8, another one did not",
        [[{"Paciente": "é" * 1500}]],
        after=b"48202;13/05/2030;09:00;Confirmado;1002;D\xedaz;50111222;;\n",
    ),
    "encoding_doubtful": _Example("a file of a program for DOS", [[]], after="1;;;;;Peña Muñoz;;;\n".encode("cp850")),
    "sheet_unread": _Example("a workbook with a sheet for each doctor", []),
    "rows_joined": _Example(
        "two rows with Turno `48201`, one for each Práctica", [[{"Práctica": "Consulta"}, {"Práctica": "Ecografía"}]]
    ),
    "patient_changed": _Example(
        "Turno `48201` of another patient than yesterday", [[{}], [{**_OTHER, "Turno": "48201", "Celular": ""}]]
    ),
    "document_shared": _Example(
        "a mother's Documento for her son",
        [[{"HC": ""}, {"Turno": "48202", "HC": "", "Paciente": "Leo Sosa", "Celular": "11 15-4812-0002"}]],
    ),
    "patient_joined": _Example(
        "a mother's Documento and Celular for her son", [[{}, {"Turno": "48202", "Paciente": "Leo Sosa"}]]
    ),
    "id_damaged": _cell("Turno", "48201.0"),
    "field_dropped": _cell("Correo", "ana@"),
    "time_midnight": _cell("Hora", "00:00"),
    "visit_in_future": _Example("a visit on `13/05/2030`", []),
    "date_mixed": _Example("in a workbook, the date 5 June beside the text `13/05/2030`", []),
}


def doubts_section() -> str:
    """Return the section with all codes."""
    rows = []
    for code in CODES:
        example = _EXAMPLES[code]
        found = next(each for each in _doubts_of(example) or [doubt(code)] if each.code == code)
        rows.append((f"`{code}`", "yes" if found.rejects else "no", example.shown, found.text))
    introduction = (
        "Every doubt has one of these codes. The examples are cells of appointments in Argentina, two in Spain; "
        "the texts are those of the doubts."
    )
    return section(2, "Codes of doubts", introduction, table(["Code", "Rejects the row", "Example", "Text"], rows))


def _doubts_of(example: _Example) -> Sequence[Doubt]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "map.toml").write_text(_MAP.format(zone=example.zone, mobiles=example.mobiles))
        job = Import.load(folder / "map.toml")
        outbox = Outbox(f"sqlite:///{folder}/clinic.db")
        outbox.create_tables()
        doubts: Sequence[Doubt] = []
        try:
            for day in example.days:
                (folder / "turnos.csv").write_bytes(_file(day) + example.after)
                doubts = [*job.run(folder / "turnos.csv", outbox).doubts]
        except ImportRefused as error:
            doubts = [*error.report.doubts]
        finally:
            outbox.close()
        return doubts


def _file(rows: Sequence[Row]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(_ROW), delimiter=";", lineterminator="\n")
    writer.writeheader()
    writer.writerows({**_ROW, **row} for row in rows)
    return text.getvalue().encode()
