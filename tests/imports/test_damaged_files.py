"""Files as programs and people damage them: what a person sees is sent, or the row or the file has a doubt."""

import os
import tracemalloc
from datetime import date, time
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from support.exports import lines_of

from followup import ConfigurationError
from followup.imports import Import, ImportRefused

MAP = """
kind = "appointments"
zone = "America/Argentina/Buenos_Aires"
country = "AR"
max_rejected = 100
[columns]
external_id = "Turno"
start_at = { columns = ["Fecha", "Hora"], format = "%d/%m/%Y %H:%M" }
"patient.full_name" = "Paciente"
"patient.dni" = "DNI"
"patient.external_id" = "HC"
"patient.phone" = "Celular"
"""
HEADER = ["Turno", "Fecha", "Hora", "Paciente", "DNI", "HC", "Celular"]
ONE = ["1", "28/09/2035", "08:00", "Ana Pérez", "30111001", "H1", "11 15-4812-0001"]
TWO = ["2", "28/09/2035", "09:00", "Luis Gómez", "30111002", "H2", "11 15-4812-0002"]
SENT_ONE = "1 | 28/09/2035 08:00 | Ana Pérez | +5491148120001 | 30111001"
SENT_TWO = "2 | 28/09/2035 09:00 | Luis Gómez | +5491148120002 | 30111002"


def found(folder: Path, content: bytes, text: str = MAP, *, name: str = "turnos.csv") -> list[str]:
    """Return what a check finds in a file."""
    (folder / "map.toml").write_text(text, encoding="utf-8")
    (folder / name).write_bytes(content)
    job = Import.load(folder / "map.toml")
    try:
        return lines_of(job.check(folder / name), job.map.zone)
    except (ConfigurationError, ImportRefused) as error:
        return ["error: " + str(error).replace(f"{folder}{os.sep}", "")]


def table(*rows: list[str]) -> bytes:
    return "\n".join(";".join(row) for row in [HEADER, *rows]).encode()


def with_(row: list[str], **changes: str) -> list[str]:
    return [changes.get(header, cell) for header, cell in zip(HEADER, row, strict=True)]


QUOTED_THRICE = table(
    with_(ONE, Paciente='"Ana "la Negra" Pérez"'), TWO, with_(ONE, Turno="3", Paciente=r'"Ana \"Anita\" Pérez"')
)
OTHER_ORDER = ["Turno", "Fecha", "Hora", "DNI", "Paciente", "HC", "Celular"]
UNSEEN = "\u200b{}\u200e".format
LIKE_UTF_8 = (
    'error: turnos.csv looks like utf-8, so nothing was recorded: write encoding = "utf-8" into the map, or "cp1252" '
    "if check shows that its names are right"
)

FILES = {
    "quotes within quotes": (
        QUOTED_THRICE,
        [SENT_TWO, "row 2 field_invalid -", "row 4 field_invalid -", "3 rows, 2 rejected, 0 ignored"],
    ),
    "a quote that a later one closes": (
        table(with_(ONE, HC='"H1'), TWO, with_(TWO, Turno="3", HC='"H2"')),
        ["error: turnos.csv, row 2: this is no CSV; a double quote may have been opened and not closed"],
    ),
    "two encodings": (
        table(ONE, with_(ONE, Turno="3")) + "\n2;28/09/2035;09:00;Íñigo Gómez;;;11 15-4812-0002".encode("cp1252"),
        [LIKE_UTF_8],
    ),
    "characters that nobody sees": (
        table([*map(UNSEEN, ONE)]).replace(b"Turno", UNSEEN("Turno").encode()) + "\n\u200b;;;\u200e;;;".encode(),
        [SENT_ONE, "1 rows, 0 rejected, 0 ignored"],
    ),
    "a second header": (table(ONE, HEADER, TWO), [SENT_ONE, SENT_TWO, "2 rows, 0 rejected, 0 ignored"]),
    "a second header in another order": (
        table(ONE, OTHER_ORDER, TWO),
        ["error: turnos.csv, row 3: a second header has another order: save each table in its own file"],
    ),
    "two tables side by side": (
        "\n".join(";".join([*row, "", *row]) for row in (HEADER, ONE)).encode(),
        ["error: turnos.csv has each column twice in its first row: save each of the two tables in its own file"],
    ),
    "one document with and without its zeros": (
        table(with_(ONE, DNI="08.111.001", HC=""), with_(ONE, Turno="2", DNI="8111001", HC="", Celular="")),
        [
            "1 | 28/09/2035 08:00 | Ana Pérez | +5491148120001 | 8111001",
            "2 | 28/09/2035 08:00 | Ana Pérez | 8111001",
            "2 rows, 0 rejected, 0 ignored",
        ],
    ),
    "a newborn with the mother's phone": (
        table(with_(ONE, HC=""), with_(ONE, Turno="2", Paciente="RN Pérez Ana", DNI="", HC="")),
        ["row 2 phone_shared Celular", "row 3 phone_shared Celular", "2 rows, 2 rejected, 0 ignored"],
    ),
    "a child with the mother's document and phone": (
        table(ONE, with_(ONE, Turno="2", Paciente="Hija de Ana Pérez")),
        [
            SENT_ONE,
            "2 | 28/09/2035 08:00 | Hija de Ana Pérez | +5491148120001 | 30111001",
            "row 2 patient_joined Paciente",
            "row 3 patient_joined Paciente",
            "2 rows, 0 rejected, 0 ignored",
        ],
    ),
    "one patient's number and nothing else for two": (
        table(with_(ONE, DNI="", Celular=""), with_(ONE, Turno="2", Paciente="Pedro Díaz", DNI="", Celular="")),
        [
            "1 | 28/09/2035 08:00 | Ana Pérez",
            "2 | 28/09/2035 08:00 | Pedro Díaz",
            "row 2 patient_joined Paciente",
            "row 3 patient_joined Paciente",
            "2 rows, 0 rejected, 0 ignored",
        ],
    ),
    "one patient's number for a family": (
        table(ONE, with_(TWO, HC="H1"), with_(TWO, Turno="3", HC="H3", DNI="", Celular="")),
        [
            "3 | 28/09/2035 09:00 | Luis Gómez",
            "row 2 document_shared HC",
            "row 3 document_shared HC",
            "3 rows, 2 rejected, 0 ignored",
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_a_text(name: str, tmp_path: Path) -> None:
    content, expected = FILES[name]
    assert found(tmp_path, content) == expected


def test_bytes_that_are_not_in_the_encoding_of_the_map_are_a_doubt(tmp_path: Path) -> None:
    text = MAP.replace("[columns]", 'encoding = "utf-8"\n[columns]')
    lines = found(tmp_path, table(ONE) + "\n2;28/09/2035;09:00;Íñigo Gómez;;;11 15-4812-0002".encode("cp1252"), text)
    assert lines[0] == SENT_ONE
    assert lines[2] == "row 3 encoding_replaced Paciente"


def test_a_table_within_a_table_of_a_page(tmp_path: Path) -> None:
    rows = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in (HEADER, ONE))
    page = f"<table><tr><td>Menú<td>Agenda <table>{rows}</table></table>".encode()
    assert found(tmp_path, page, name="turnos.xls") == [SENT_ONE, "1 rows, 0 rejected, 0 ignored"]


def test_an_encrypted_workbook(tmp_path: Path) -> None:
    content = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".ljust(1536, b"\0") + "EncryptedPackage".encode("utf-16-le")
    expected = ["error: turnos.xlsx is encrypted: save it without a password"]
    assert found(tmp_path, content, name="turnos.xlsx") == expected


def test_a_date_that_may_be_exchanged_beside_a_text_that_is_no_date_of_the_map(tmp_path: Path) -> None:
    workbook = openpyxl.Workbook()
    rows: list[list[Any]] = [HEADER, ["1", "13/5/35", *ONE[2:]], ["2", date(2035, 6, 5), time(9), *TWO[3:]]]
    for row in rows:
        workbook.active.append(row)
    workbook.save(tmp_path / "made.xlsx")
    expected = ["row 2 time_format Fecha + Hora", "row 3 date_mixed Fecha + Hora", "2 rows, 2 rejected, 0 ignored"]
    assert found(tmp_path, (tmp_path / "made.xlsx").read_bytes(), name="turnos.xlsx") == expected


def test_long_cells_are_not_kept_in_memory(tmp_path: Path) -> None:
    found(tmp_path, table(*(with_(ONE, Turno=str(number), Celular=f"{number:05}" * 2_000) for number in range(1_000))))
    used = []
    tracemalloc.start()
    try:
        job = Import.load(tmp_path / "map.toml")
        job.check(tmp_path / "turnos.csv", on_progress=lambda *_: used.append(tracemalloc.get_traced_memory()[0] >> 20))
    finally:
        tracemalloc.stop()
    assert max(used) < 5
