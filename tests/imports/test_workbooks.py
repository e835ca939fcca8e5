"""Excel workbooks: what a cell shows is what is read; damaged and hostile ones are errors of one line."""

import re
import struct
import zipfile
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from followup import ConfigurationError
from followup.imports import Doubt, Import, ImportRefused

MAP = """
kind = "appointments"
zone = "America/Argentina/Buenos_Aires"
country = "AR"
[columns]
external_id = "Turno"
start_at = { columns = ["Fecha", "Hora"], format = "%d/%m/%Y %H:%M" }
"patient.phone" = "Celular"
"patient.full_name" = "Paciente"
"""
HEADER = ["Turno", "Fecha", "Hora", "Celular", "Paciente"]
DAY = date(2035, 9, 28)
PHONE = 5491148120001


def importer(folder: Path, text: str = MAP) -> Import:
    (folder / "map.toml").write_text(text, encoding="utf-8")
    return Import.load(folder / "map.toml")


def save(folder: Path, *rows: list[Any], sheets: tuple[str, ...] = (), formats: dict[str, str] | None = None) -> Path:
    workbook = openpyxl.Workbook()
    for row in rows:
        workbook.active.append(row)
    for cell, number_format in (formats or {}).items():
        workbook.active[cell].number_format = number_format
    for title in sheets:
        workbook.create_sheet(title)
    workbook.save(folder / "turnos.xlsx")
    return folder / "turnos.xlsx"


def edited(file: Path, part: str, edit: Any) -> Path:
    """Return the file with a part that another program may have written."""
    with zipfile.ZipFile(file) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts[part] = edit(parts[part].decode()).encode()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return file


SHEET = "xl/worksheets/sheet1.xml"


@pytest.mark.parametrize(
    ("day", "hour", "start"),
    [
        (DAY, time(10, 30), "2035-09-28T13:30"),
        (datetime.combine(DAY, time()), "10:30", "2035-09-28T13:30"),
        ("28/09/2035", time(10, 30), "2035-09-28T13:30"),
        (DAY, 0.4375, "2035-09-28T13:30"),
        ("28/09/2035", 0.75, "2035-09-28T21:00"),
        (DAY, 10 / 24 + 20 / 1440, "2035-09-28T13:20"),
        (DAY, time(10, 29, 59, 999_000), "2035-09-28T13:30"),
        (datetime.combine(DAY, time(10, 29, 59, 999_000)), None, "2035-09-28T13:30"),
        (datetime.combine(DAY, time(0, 0, 0, 200_000)), "10:30", "2035-09-28T13:30"),
        (datetime.combine(DAY, time(10, 30)), None, "2035-09-28T13:30"),
        (DAY, None, None),
        (DAY, 1.5, None),
        (49580, "10:30", None),
        (datetime.combine(DAY, time(10, 30)), "10:30", None),
        ("#N/A", "10:30", None),
    ],
)
def test_dates_times_and_parts_of_a_day_are_what_they_show(day: Any, hour: Any, start: str | None, tmp_path: Path):
    report = importer(tmp_path).check(save(tmp_path, HEADER, ["A1", day, hour, PHONE, "Ana"]))
    assert [event["data"]["appointment"]["startAt"][:16] for event in report.events] == [start] * (start is not None)
    assert [doubt.code for doubt in report.doubts] == ["time_format"] * (start is None)


def test_numbers_have_no_point_and_booleans_are_words(tmp_path: Path) -> None:
    rows = [1001.0, DAY, "10:30", float(PHONE), 7.5], [True, DAY, "10:30", f" {PHONE}", None]
    first, second = importer(tmp_path).check(save(tmp_path, HEADER, *rows)).events
    assert (first["data"]["appointment"]["externalId"], first["data"]["patient"]["fullName"]) == ("1001", "7.5")
    assert first["data"]["patient"]["phone"] == second["data"]["patient"]["phone"] == f"+{PHONE}"
    assert second["data"]["appointment"]["externalId"] == "TRUE"


def test_a_formula_is_its_last_result_and_an_error_rejects(tmp_path: Path) -> None:
    file = save(tmp_path, HEADER, ["A1", DAY, "10:30", PHONE, "=A1"], ["A2", DAY, "10:30", PHONE, "#REF!"])
    report = importer(tmp_path).check(
        edited(file, SHEET, lambda xml: re.sub("</f><v ?/?>(</v>)?", "</f><v>5</v>", xml))
    )
    assert [event["data"]["patient"]["fullName"] for event in report.events] == ["5"]
    assert [(each.row, each.column, each.code) for each in report.doubts] == [(3, "Paciente", "field_invalid")]


def test_rows_are_numbered_as_the_spreadsheet_shows_them(tmp_path: Path) -> None:
    row = ["A1", DAY, "?", PHONE, "Ana"]
    file = save(tmp_path, [], HEADER, [" "], [], row, [], ["A3", *row[1:], None, " "], ["A2", *row[1:], "x"])
    found = [(each.row, each.code) for each in importer(tmp_path).check(file).doubts]
    assert found == [(5, "time_format"), (7, "time_format"), (8, "row_long")]


def test_the_sheet_is_the_first_or_the_one_of_the_map(tmp_path: Path) -> None:
    file = save(tmp_path, HEADER, sheets=("Otra",))
    assert importer(tmp_path, 'sheet = "Sheet"' + MAP).check(file).rows == 0
    with pytest.raises(ConfigurationError, match="is empty"):
        importer(tmp_path, 'sheet = "Otra"' + MAP).check(file)
    with pytest.raises(ConfigurationError, match="no sheet 'Agenda'; its sheets are Sheet, Otra"):
        importer(tmp_path, 'sheet = "Agenda"' + MAP).check(file)


def test_declared_dimensions_are_not_believed(tmp_path: Path) -> None:
    for declared in ("A1:XFD1048576", "A1", "A1:A1"):
        file = save(tmp_path, HEADER, ["A1", DAY, "10:30", PHONE, "Ana"])
        edited(file, SHEET, lambda xml, to=declared: re.sub('ref="[A-Z0-9:]+"', f'ref="{to}"', xml))
        assert importer(tmp_path).check(file).rows == 1


def test_the_calendar_of_1904_is_read_and_a_date_that_none_has_is_a_doubt(tmp_path: Path) -> None:
    file = save(tmp_path, HEADER, ["A1", 49580 - 1462, "10:30", PHONE], formats={"B2": "dd/mm/yyyy"})
    edited(file, "xl/workbook.xml", lambda xml: re.sub("<workbookPr ?/>", '<workbookPr date1904="1"/>', xml))
    assert [each["data"]["appointment"]["startAt"][:10] for each in importer(tmp_path).check(file).events] == [
        "2035-09-28"
    ]
    file = save(tmp_path, HEADER, ["A1", 99999999, "10:30", PHONE], formats={"B2": "dd/mm/yyyy"})
    assert [doubt.code for doubt in importer(tmp_path).check(file).doubts] == ["time_format"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is empty"),
        (b"\n \n\t\n", "is empty"),
        ("%PDF-1.7\nMaría Peña Núñez".encode("cp850"), "is a PDF: export the table"),
        (b"PK\x03\x04nothing", "no workbook that can be read"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "no workbook that can be read"),
        (b"\xef\xbb\xbf <html><table>", "is HTML or XML"),
        ("Turno;Fecha\n".encode("utf-16-le"), "save it as UTF-8"),
        (b"x" * 1_100_000, "1,000,000 characters or more"),
        (b"Turno,Fecha,Hora,Celular,Paciente\n" + b'A1,"' + b"x\n" * 70_000, "row 2: .* double quote"),
        (b"Turno,Fecha,Hora,Telefono,Paciente\n", "no column 'Celular' in its first row$"),
        (b"Turno,Fecha,Hora,celular,Paciente\n", "did you mean 'celular'"),
    ],
)
def test_what_cannot_be_used_is_an_error_of_one_line(content: bytes, problem: str, tmp_path: Path) -> None:
    (tmp_path / "export.csv").write_bytes(content)
    with pytest.raises(ConfigurationError, match=problem) as caught:
        importer(tmp_path).check(tmp_path / "export.csv")
    assert str(caught.value).startswith(str(tmp_path / "export.csv"))
    assert "\n" not in str(caught.value)


def test_a_workbook_that_expands_too_far_is_not_read(tmp_path: Path) -> None:
    file = save(tmp_path, HEADER)
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("xl/more.xml", "")
        archive.getinfo("xl/styles.xml").file_size = 300 * 1_048_576
    with pytest.raises(ConfigurationError, match="too large for a workbook"):
        importer(tmp_path).check(file)


def test_every_broken_byte_of_a_workbook_is_an_error_of_ours_or_a_report(tmp_path: Path) -> None:
    file = save(tmp_path, HEADER, ["A1", DAY, "10:30", PHONE, "Ana"])
    whole = file.read_bytes()
    for position in range(0, len(whole), 97):
        file.write_bytes(whole[:position] + bytes([whole[position] ^ 0x55]) + whole[position + 1 :])
        try:
            doubts: Any = importer(tmp_path).check(file).doubts
        except (ConfigurationError, ImportRefused):
            doubts = []
        assert all(isinstance(each, Doubt) for each in doubts)


BOOKED = ["A1", DAY, "10:30", PHONE, "Ana"]


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        (lambda xml: re.sub(r'r="([A-Z]*)3"', r'r="\g<1>2"', xml), "repeat or go backwards, after row 2"),
        (lambda xml: xml.replace('<row r="3"', '<row r="1"'), "repeat or go backwards"),
        (lambda xml: xml.replace('<row r="3"', '<row r="-1"'), "repeat or go backwards"),
        (lambda xml: re.sub(r'r="([A-Z]*)3"', r'r="\g<1>2000000000"', xml), "a row number above 1,048,576"),
        (lambda xml: re.sub(r' r="([A-Z]+)3"', r' r="\g<1>4"', xml), "cells of another row in row 3"),
        (lambda xml: re.sub(r'r="([A-Z]*)3"', r'r="\g<1>1048576"', xml).replace("E1048576", "XFD1048576"), "too large"),
        (lambda xml: xml.replace("<sheetData>", "<sheetData><!--" + "x" * 5_000_000), "a cell with more characters"),
        (lambda xml: '<!DOCTYPE x [<!ENTITY a "b">]>' + xml, "a part that no spreadsheet writes"),
    ],
)
def test_a_hostile_sheet_is_not_read(edit: Any, problem: str, tmp_path: Path) -> None:
    file = edited(save(tmp_path, HEADER, BOOKED, ["A2", *BOOKED[1:]]), SHEET, edit)
    with pytest.raises(ConfigurationError, match=problem):
        importer(tmp_path).check(file)


def test_rows_far_below_are_read_with_their_numbers(tmp_path: Path) -> None:
    def move(xml: str) -> str:
        return re.sub(r'r="([A-Z]*)3"', r'r="\g<1>900000"', xml)

    file = edited(save(tmp_path, HEADER, BOOKED, ["A2", DAY, "?", PHONE]), SHEET, move)
    assert [each.row for each in importer(tmp_path).check(file).doubts] == [900000]


def test_hidden_rows_are_read_and_merged_cells_have_the_value_of_the_first(tmp_path: Path) -> None:
    workbook = openpyxl.Workbook()
    for row in (["Agenda"], HEADER, BOOKED, ["A2", None, "11:30", PHONE, "Ana"], ["A3", None, "12:30", PHONE, "Ana"]):
        workbook.active.append(row)
    workbook.active.merge_cells("B3:B5")
    workbook.active.row_dimensions[4].hidden = True
    workbook.save(tmp_path / "turnos.xlsx")
    report = importer(tmp_path).check(tmp_path / "turnos.xlsx")
    assert [each["data"]["appointment"]["startAt"][:16] for each in report.events] == [
        f"2035-09-28T{hour}:30" for hour in (13, 14, 15)
    ]
    assert (report.summary.hidden_rows, report.rows) == (1, 3)


def test_sheets(tmp_path: Path) -> None:
    workbook = openpyxl.Workbook()
    workbook.active.append(["Listas"])
    workbook.active.sheet_state = "hidden"
    for number, title in enumerate(("Dra. Ruiz", "Dr. Almada", "Notas"), 1):
        sheet = workbook.create_sheet(title)
        rows = (
            [[title]]
            if title == "Notas"
            else [HEADER, [f"A{number}", DAY, "10:30", PHONE, "Ana"], [f"B{number}", DAY, "?"]]
        )
        for row in rows:
            sheet.append(row[::-1] if title == "Dr. Almada" else row)
    workbook.save(tmp_path / "turnos.xlsx")

    def found(setting: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        report = importer(tmp_path, setting + MAP).check(tmp_path / "turnos.xlsx")
        doubts = [(each.row, each.column, each.code) for each in report.doubts]
        return [each["data"]["appointment"]["externalId"] for each in report.events], doubts

    bad = [(3, "Fecha + Hora", "time_format"), (3, None, "patient_missing")]
    assert found("") == (["A1"], [*bad, (None, None, "sheet_unread")])
    assert found('sheet = "Dr. Almada"\n')[0] == ["A2"]
    events, doubts = found('sheets = ["*"]\n')
    assert events == ["A1", "A2"]
    assert doubts[0] == (3, "Dra. Ruiz!Fecha + Hora", "time_format")
    assert (3, "Dr. Almada!Fecha + Hora", "time_format") in doubts
    with pytest.raises(ConfigurationError, match="sheets and sheet are both there"):
        found('sheet = "Notas"\nsheets = ["*"]\n')


OPEN_DOCUMENT = (
    '<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"><office:body><office:spreadsheet>'
    '<table:table table:name="Turnos">{rows}</table:table></office:spreadsheet></office:body></office:document-content>'
)


def open_document(folder: Path, *rows: str) -> Path:
    with zipfile.ZipFile(folder / "turnos.ods", "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("content.xml", OPEN_DOCUMENT.format(rows="".join(rows)))
        archive.writestr("META-INF/manifest.xml", "<manifest/>")
    return folder / "turnos.ods"


def test_cells_of_an_open_document_that_are_merged_downwards_have_the_value_of_the_first(tmp_path: Path) -> None:
    cell = '<table:table-cell office:value-type="string"><text:p>{}</text:p></table:table-cell>'.format
    day = cell("28/09/2035").replace("cell ", 'cell table:number-rows-spanned="2" ', 1)
    rows = [
        [*map(cell, HEADER)],
        [cell("T-1"), day, cell("10:30"), cell("+5491148120001"), cell("Ana")],
        [cell("T-2"), "<table:covered-table-cell/>", cell("11:30"), cell("+5491148120002"), cell("Luis")],
    ]
    file = open_document(tmp_path, *(f"<table:table-row>{''.join(row)}</table:table-row>" for row in rows))
    starts = [each["data"]["appointment"]["startAt"] for each in importer(tmp_path).check(file).events]
    assert starts == ["2035-09-28T13:30:00.000Z", "2035-09-28T14:30:00.000Z"]


def open_row(*texts: str, attributes: str = "", cell: str = "") -> str:
    cells = (
        f'<table:table-cell office:value-type="string"{cell}><text:p>{text}</text:p></table:table-cell>'
        for text in texts
    )
    return f"<table:table-row{attributes}>{''.join(cells)}</table:table-row>"


def test_an_open_document_is_read_and_a_hostile_one_is_not(tmp_path: Path) -> None:
    rows = (
        open_row(*HEADER),
        open_row("A1", "28/09/2035", "10:30", str(PHONE), "Ana", attributes=' table:visibility="filter"'),
    )
    empty = '<table:table-cell table:number-columns-repeated="16384"/>'
    end = f'<table:table-row table:number-rows-repeated="1048000">{empty}</table:table-row>'
    report = importer(tmp_path).check(open_document(tmp_path, *rows, end))
    assert (len(report.events), report.summary.hidden_rows) == (1, 1)
    for attributes, cell in (
        (' table:number-rows-repeated="1000000000"', ""),
        (' table:number-rows-repeated="1000000"', ' table:number-columns-repeated="16384"'),
    ):
        with pytest.raises(ConfigurationError, match="too large for a workbook"):
            importer(tmp_path).check(open_document(tmp_path, *rows, open_row("x", attributes=attributes, cell=cell)))


END_OF_CHAIN = 0xFFFF_FFFE


def old_workbook(folder: Path, stream: bytes, end: int = END_OF_CHAIN) -> Path:
    """Write a workbook of Excel 97 with a directory of one sector and a stream of eight."""
    numbers = struct.pack("<5H6x9I", 62, 3, 0xFFFE, 9, 6, 0, 1, 1, 0, 4096, END_OF_CHAIN, 0, END_OF_CHAIN, 0)
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".ljust(24, b"\0") + numbers + struct.pack("<2I", 0, 0xFFFF_FFFF)
    links = struct.pack("<10I", 0xFFFF_FFFD, end, *range(3, 10), END_OF_CHAIN)
    entries = b"".join(
        struct.pack("<64sH2B3I36xIQ", f"{name}\0".encode("utf-16-le"), 18, kind, 1, *3 * [0xFFFF_FFFF], start, size)
        for name, kind, start, size in (("Root Entry", 5, END_OF_CHAIN, 0), ("Workbook", 2, 2, 4096))
    )
    sectors = [
        header.ljust(512, b"\xff"),
        links.ljust(512, b"\xff"),
        entries.ljust(512, b"\0"),
        stream.ljust(4096, b"\0"),
    ]
    (folder / "turnos.xls").write_bytes(b"".join(sectors))
    return folder / "turnos.xls"


@pytest.mark.parametrize(
    ("record", "end", "problem"),
    [
        (b"", 1, "is no workbook that can be read (ValueError)"),
        (struct.pack("<4H", 0x0203, 14, 65535, 65535), END_OF_CHAIN, "is too large for a workbook"),
        (struct.pack("<2H2I2H", 0x0200, 14, 0, 65536, 0, 65535), END_OF_CHAIN, "is too large for a workbook"),
        (struct.pack("<6H", 0x0200, 10, 3, 1, 18, 20), END_OF_CHAIN, "is no workbook that can be read (ValueError)"),
    ],
)
def test_an_old_workbook_that_would_take_all_memory(tmp_path: Path, record: bytes, end: int, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(f"turnos.xls {problem}")):
        importer(tmp_path).check(old_workbook(tmp_path, record, end))
