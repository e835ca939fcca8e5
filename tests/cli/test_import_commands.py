"""``followup import``: the commands for a clinic's own files, with the example as the system of a clinic exports it."""

import json
import re
import shutil
import sqlite3
import tomllib
from pathlib import Path
from typing import Any

import attrs
import pytest
from support.pages import blocks, read
from support.shell import Shell

from followup.imports import Import, maps
from followup.imports.proposal import propose
from followup.imports.report import CODES
from followup.outbox import Outbox
from followup_mockserver import MockServer

SDK = Path(__file__).parents[2] / "sdk/followup"
EXAMPLES = Path(__file__).parents[2] / "examples/import"
PERSONAL = ["4812", "Muñoz", "Pérez", "33456789", "HC-1013"]
CHECK = ("import", "check", "turnos.csv", "--map", "turnos.toml")
RUN = ("import", "run", "turnos.csv", "--map", "turnos.toml")
VERIFY = ("import", "verify", "turnos.csv", "--map", "turnos.toml")


@pytest.fixture
def clinic(shell: Shell) -> Shell:
    """A folder with the export and the map of the example, and the database of an outbox."""
    for name in ("turnos.csv", "turnos.toml"):
        shutil.copy(EXAMPLES / name, shell.directory)
    shell.environment["FOLLOWUP_DATABASE_URL"] = f"sqlite:///{shell.directory}/clinic.db"
    Outbox(shell.environment["FOLLOWUP_DATABASE_URL"]).create_tables()
    return shell


def edit(clinic: Shell, name: str, old: str, new: str) -> None:
    file, encoding = clinic.directory / name, "cp1252" if name.endswith("csv") else "utf-8"
    text = file.read_bytes().decode(encoding)
    assert old in text
    file.write_bytes(text.replace(old, new).encode(encoding))


class TestInit:
    def test_the_proposal_is_a_map_that_says_what_is_missing(self, clinic: Shell) -> None:
        result = clinic.run("import", "init", "turnos.csv", "--output", "mine.toml")
        assert (result.returncode, result.stderr) == (0, "")
        assert "followup import check turnos.csv --map mine.toml" in result.stdout
        proposed = (clinic.directory / "mine.toml").read_text()
        assert not any(each in proposed for each in PERSONAL)
        assert '# "Lista de espera" = ""  # completar (fill in) y quitar el primer #; 2 filas' in proposed
        job, mine = Import.load(EXAMPLES / "turnos.toml"), Import.load(clinic.directory / "mine.toml")
        assert mine.map.columns.keys() == job.map.columns.keys()
        assert {**mine.map.columns, "status": None} == {**job.map.columns, "status": None}
        report = mine.check(EXAMPLES / "turnos.csv")
        assert [each.value for each in report.doubts if each.code == "value_unknown"] == ["Lista de espera"] * 2

    def test_a_computer_without_a_known_zone_is_not_in_utc(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = tmp_path / "pacientes.csv"
        file.write_text("Nombre,Teléfono\nAna,11 5555-0000\n", encoding="utf-8")
        monkeypatch.setenv("TZ", "America/Lima")
        assert 'zone = "America/Lima"  # check this: the zone of this computer' in propose(file, language="en")
        monkeypatch.setenv("TZ", "Etc/UTC")
        assert '# zone = ""  # fill in: the zone of the clinic' in propose(file, language="en")
        monkeypatch.setenv("TZ", "")
        monkeypatch.setattr(Path, "resolve", lambda path, strict=False: path)  # as where /etc/localtime is no link
        assert '# zone = ""  # fill in: the zone of the clinic' in propose(file, language="en")

    def test_a_file_is_never_overwritten(self, clinic: Shell) -> None:
        before = (clinic.directory / "turnos.toml").read_text()
        error = clinic.error("import", "init", "turnos.csv", "--output", "turnos.toml")
        assert error == "followup: turnos.toml exists already; choose another name, or remove it\n"
        assert (clinic.directory / "turnos.toml").read_text() == before

    @pytest.mark.parametrize(
        ("table", "expected"),
        [
            (
                "Folio,Fecha y hora,Teléfono\n1,03/04/2030 10:00,+52 55 1234 5678\n2,05/04/2030 9:30,+52 55 1234 5679",
                [
                    'zone = "America/Mexico_City"  # check this: most people in MX live in it',
                    'country = "MX"  # check this: country codes of the phones: MX 2',
                    (
                        'external_id = "Folio"  # check this: it may be the number of the line or of a slot, '
                        "which comes to another patient"
                    ),
                    (
                        'start_at = { column = "Fecha y hora", format = "%d/%m/%Y %H:%M" }  # check this: '
                        '"%m/%d/%Y %H:%M" fits as many values'
                    ),
                ],
            ),
            (
                """Código do agendamento;Data;Horário;Nome;Sobrenome;CPF;Situação
                7;28.02.2030;14:00;Ana;Souza;123.456.789-09;Marcado
                8;01.03.2030;08:30;Rui;Lima;987.654.321-00;Cancelado""",
                [
                    'external_id = "Código do agendamento"',
                    'start_at = { columns = ["Data", "Horário"], format = "%d.%m.%Y %H:%M" }',
                    '"patient.full_name" = { template = "{Nome} {Sobrenome}" }  # guess: check the order',
                    '"patient.dni" = "CPF"',
                    '"Cancelado" = "cancelled"  # guess; 1 row',
                ],
            ),
            (
                """Appointment ID,Start,Phone,Mobile,Date of birth,Status
                1,2030-05-01T10:00:00-04:00,+1 212 555 0100,+1 212 555 0101,05/17/1984,Booked""",
                [
                    'start_at = "Start"',
                    '"patient.phone" = "Mobile"  # guess: it could also be "Phone"',
                    '"patient.date_of_birth" = { column = "Date of birth", format = "%m/%d/%Y" }',
                    '# Not sent: "Phone"',
                ],
            ),
            (
                "HC;Apellido y nombre;Nacimiento;Datos\nH1;DÍAZ ANA;1/2/1990;11 4812-0001\n",
                [
                    'kind = "patients"  # guess: no column has times. Or: "appointments", "patients", "visits"',
                    '"patient.external_id" = "HC"',
                    '"patient.full_name" = "Apellido y nombre"',
                    '# Not sent: "Datos"',
                ],
            ),
            (
                "Código;Fecha de atención;Hora;Diagnóstico\n1;12/05/25;9:00;I10\n2;31/05/25;10:30;",
                ['visited_at = { columns = ["Fecha de atención", "Hora"], format = "%d/%m/%y %H:%M" }'],
            ),
            (
                "Paciente;Hora;Sala\nAna;10:00;1\nAna;11:00;2",
                [
                    '# external_id = ""  # fill in: the column with the unique number of each row',
                    '# Not sent: "Hora", "Sala"',
                ],
            ),
            (
                "IdTurno;Fecha;Hora;Paciente\n9;13/05/2030 10:30:00;30/12/1899 10:30:00;PRUEBA, Ana",
                [
                    ('start_at = { column = "Fecha", format = "%d/%m/%Y %H:%M:%S" }  # guess: it could also be "Hora"'),
                    (
                        '"patient.full_name" = { column = "Paciente", order = "surname, name" }  # check this: the '
                        "surname is first, so it is turned round"
                    ),
                ],
            ),
            (
                "Id;Fecha;Hora;Paciente\n9;2030-05-13 00:00:00;10:30;Ana",
                ['start_at = { columns = ["Fecha", "Hora"], format = "%Y-%m-%d %H:%M:%S %H:%M" }'],
            ),
            ("Id;Fecha;Hora;Paciente\n9;13/05/2030;30/12/1899 10:30:00;Ana", ['# Not sent: "Fecha", "Hora"']),
            (
                "HC;Paciente;Fecha Nac.\n9;Ana;hacia 1950",
                ['"patient.date_of_birth" = "Fecha Nac."  # check this: 1 of 1 values have another form'],
            ),
            (
                "Nro;DNI;Fecha de atención;Hora\n9;30111001;13/05/2024;10:30",
                [
                    (
                        'kind = "visits"  # guess: a header names a visit or a diagnosis. Or: "appointments", '
                        '"patients", "visits"'
                    )
                ],
            ),
            (
                "Turno;Estado;Situación\n9;Confirmado;Activo",
                ['column = "Estado"  # guess: it could also be "Situación"'],
            ),
            (
                "Id;Fecha;Duración;Hasta;Desde;Hora de fin\n9;13/05/2030;00:30;10:30;10:00;10:30",
                ['start_at = { columns = ["Fecha", "Desde"], format = "%d/%m/%Y %H:%M" }'],
            ),
            (
                "Id;Fecha;Hora;Fecha Turno;Hora Turno\n9;22/04/2030;17:05;13/05/2030;10:00",
                [
                    (
                        'start_at = { columns = ["Fecha Turno", "Hora Turno"], format = "%d/%m/%Y %H:%M" }  '
                        '# guess: it could also be "Fecha", "Hora"'
                    )
                ],
            ),
            (
                "appointment_id,start_at,mobile_phone,end_at\nx,2030-05-13T10:00:00-03:00,+54 9 11 4812-0001,y",
                ['external_id = "appointment_id"', 'start_at = "start_at"', '"patient.phone" = "mobile_phone"'],
            ),
            (
                "Turno;Día;Horario;Estado;Estatus\n9;Lunes 13/05/2030;3:30 p. m.;Baja California;Reprogramado",
                [
                    'start_at = { columns = ["Día", "Horario"], format = "%A %d/%m/%Y %I:%M %p" }',
                    '# "Reprogramado" = ""  # fill in, and remove the first #; 1 row',
                ],
            ),
            (
                "Nº,Cita,Paciente,Fecha de atención\n1,libre,Ana,13/05/2030 10:00\n2,libre,Luis,14/05/2030 10:00",
                ['kind = "appointments"  # guess: a column has times. Or: "appointments", "patients", "visits"'],
            ),
            (
                """Event UUID,Invitee Name,Start (UTC),Teléfono 1,Teléfono 2,Canceled
                u1,Ana,2030-05-13 10:00,+34 612 345 678,+34 612 345 679,false""",
                [
                    'external_id = "Event UUID"',
                    '"patient.full_name" = "Invitee Name"',
                    (
                        'start_at = { column = "Start (UTC)", format = "%Y-%m-%d %H:%M" }  # guess by the values; '
                        'check this: the header names UTC; if the times are in it, zone = "UTC"'
                    ),
                    '"patient.phone" = "Teléfono 1"  # guess: it could also be "Teléfono 2"',
                    '# "false" = ""  # fill in, and remove the first #; 1 row',
                ],
            ),
            (
                "Appt ID,Patient,Mobile,Appt Time\n9001,Ana,212-555-0143,930",
                [
                    (
                        'kind = "appointments"  # guess: a header names an appointment. '
                        'Or: "appointments", "patients", "visits"'
                    ),
                    'external_id = "Appt ID"',
                ],
            ),
            (
                "Fecha,Turno,Paciente,Fecha#2\n13/05/2030,a,Ana,b",
                [
                    (
                        'kind = "appointments"  # guess: a header names an appointment. '
                        'Or: "appointments", "patients", "visits"'
                    )
                ],
            ),
        ],
    )
    def test_headers_and_values_are_recognized(self, shell: Shell, table: str, expected: list[str]) -> None:
        (shell.directory / "export.csv").write_text(table)
        result = shell.run("import", "init", "export.csv", "--language", "en", TZ="America/New_York")
        assert result.returncode == 0, result.stderr
        assert [line for line in expected if line not in result.stdout.splitlines()] == [], result.stdout


class TestCheck:
    def test_only_a_terminal_shows_values(self, clinic: Shell) -> None:
        shown = clinic.on_a_terminal(80, *CHECK)
        assert "fila 9  Celular  4812-0117" in shown
        assert "fila 2: Ana María Pérez, lunes 13 de mayo de 2030 08:00, +5491148120110," in shown
        assert max(map(len, shown.splitlines())) <= 80
        for options in ((), ("--json",)):
            result = clinic.run(*CHECK, *options)
            assert (result.returncode, result.stderr) == (1, "")
            assert not any(each in result.stdout for each in PERSONAL)
            assert "4812-0117" in clinic.run(*CHECK, *options, "--show-personal-data").stdout
        assert not any(each in clinic.on_a_terminal(80, *CHECK, "--json") for each in PERSONAL)

    def test_json(self, clinic: Shell) -> None:
        report = json.loads(clinic.run(*CHECK, "--json").stdout)
        doubts = report.pop("doubts")
        assert report == {
            "rows": 54, "rejected": 2, "ignored": 1, "unchanged": 4, "gone": 0, "events": {"appointment.created": 46},
            "preview": [
                {"row": row, "name": "…", "weekday": "Monday", "start": start, "phone": "…", "status": "booked"}
                for row, start in ((2, "2030-05-13T08:00"), (3, "2030-05-13T09:30"), (4, "2030-05-13T10:00"))
            ],
            "summary": {
                "firstDay": "2030-05-13", "lastDay": "2030-06-04", "firstTime": "08:00", "lastTime": "17:30",
                "midnight": 0, "before6": 0, "after22": 0, "sundays": 0, "patients": 34, "withoutPhone": 1,
                "withoutDocument": 0, "ignored": 1, "hiddenRows": 0,
            },
        }  # fmt: skip
        values = {each["code"]: (each["row"], each["column"], each["value"]) for each in doubts}
        assert values["field_dropped"] == (9, "Celular", "…")
        assert values["in_the_past"] == (55, "Fecha + Hora", "20/11/2026 09:00")

    def test_a_column_that_also_identifies_a_person_is_masked(self, clinic: Shell) -> None:
        edit(clinic, "turnos.toml", 'external_id = "Nro Turno"', 'external_id = "Documento"')
        doubts = json.loads(clinic.run(*CHECK, "--json").stdout)["doubts"]
        assert {each["value"] for each in doubts if each["code"] == "id_repeated"} == {"…"}

    def test_the_page_needs_no_other_file_and_masks_values(self, clinic: Shell) -> None:
        clinic.on_a_terminal(80, *CHECK, "--html", "doubts.html")
        page = (clinic.directory / "doubts.html").read_text()
        assert "field_dropped" in page
        assert "rechazadas: 2; ignoradas: 1." in page
        assert not any(each in page for each in (*PERSONAL, "http", "src=", "url(", "$"))
        clinic.run(*CHECK, "--html", "doubts.html", "--show-personal-data")
        assert "4812-0117" in (clinic.directory / "doubts.html").read_text()

    @pytest.mark.parametrize(
        ("language", "word", "day", "event"),
        [
            ("es", "rechazadas", "lunes 13 de mayo de 2030 08:00", "46 turnos nuevos"),
            ("pt", "rejeitadas", "segunda-feira 13 de maio de 2030 08:00", "46 agendamentos novos"),
            ("en", "rejected", "Monday 13 May 2030 08:00", "46 appointment.created"),
        ],
    )
    def test_the_page_is_in_a_language(self, clinic: Shell, language: str, word: str, day: str, event: str) -> None:
        clinic.run(*CHECK, "--html", "doubts.html", "--language", language)
        page = (clinic.directory / "doubts.html").read_text()
        assert f'<html lang="{language}">' in page
        assert word in page
        assert f"<td>{day}</td>" in page
        assert event in page
        assert ("so the row was rejected" in page) == (language == "en")
        assert ("or set mobiles = " in page) == (language == "en")
        assert "{" not in page.partition("</style>")[2]

    def test_every_doubt_is_translated_with_its_detail(self) -> None:
        texts = tomllib.loads((SDK / "cli/import_doubts.toml").read_text(encoding="utf-8"))
        details = {code for code, each in CODES.items() if "{detail}" in each.text}
        for language in ("es", "pt"):
            assert texts[language].keys() == CODES.keys()
            assert {code for code, text in texts[language].items() if "{detail}" in text} == details
        assert texts["es_details"].keys() == texts["pt_details"].keys()

    @pytest.mark.parametrize(
        ("language", "expected"),
        [
            ("es", ["(más que las 12 del encabezado)", "(un DNI tiene de 6 a 8 cifras)", "full_name es un error"]),
            ("pt", ["(mais que as 12 do cabeçalho)", "(um DNI tem de 6 a 8 dígitos)", "full_name é um erro"]),
        ],
    )
    def test_details_are_translated(self, clinic: Shell, language: str, expected: list[str]) -> None:
        start = "9;13/05/2030;08:00;Confirmado;;;"
        rows = [f"{start}H9;Paz;Eva;30111009;;;x\n", f"{start};Paz;#N/A;30111008;;\n", f"{start};Paz;Luz;9;;\n"]
        header = (clinic.directory / "turnos.csv").read_text(encoding="cp1252").partition("\n")[0]
        lines = [header + "\n", *(row.replace("9;", f"{number};", 1) for number, row in enumerate(rows))]
        (clinic.directory / "turnos.csv").write_text("".join(lines), encoding="cp1252")
        shown = clinic.run(*CHECK, "--language", language).stdout
        assert [each for each in expected if each not in shown] == [], shown

    def test_hostile_values_are_escaped(self, clinic: Shell) -> None:
        edit(clinic, "turnos.csv", "4812-0117", "<b>\x1b[31m")
        clinic.run(*CHECK, "--html", "doubts.html", "--show-personal-data")
        assert "<td>&lt;b&gt;\\x1b[31m</td>" in (clinic.directory / "doubts.html").read_text()
        assert "\x1b[31m" not in clinic.raw_on_a_terminal(80, *CHECK)

    @pytest.mark.parametrize(
        ("file", "map", "expected"),
        [
            ("nowhere.csv", "turnos.toml", "cannot read nowhere.csv: "),
            ("turnos.csv", "nowhere.toml", "cannot read nowhere.toml: "),
            ("turnos.toml", "turnos.toml", "turnos.toml has no column"),
            ("turnos.csv", "turnos.csv", "turnos.csv: a map must be"),
        ],
    )
    def test_a_file_or_map_that_cannot_be_used(self, clinic: Shell, file: str, map: str, expected: str) -> None:
        for command in ("check", "run", "verify"):
            result = clinic.run("import", command, file, "--map", map)
            assert (result.returncode, result.stdout) == (2, "")
            assert result.stderr.startswith(f"followup: {expected}")

    def test_a_full_disk_for_temporary_files(self, clinic: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
        connect = sqlite3.connect

        def connect_to_full_disk(*args: Any, **kwargs: Any) -> sqlite3.Connection:
            connection = connect(*args, **kwargs)
            connection.execute("PRAGMA max_page_count = 1")
            return connection

        monkeypatch.setattr(sqlite3, "connect", connect_to_full_disk)
        result = clinic.run(*CHECK)
        assert (result.returncode, result.stdout) == (2, "")
        assert result.stderr == "followup: cannot write a temporary file: database or disk is full\n"


class TestPage:
    def test_the_map_of_the_page_has_every_setting(self, tmp_path: Path) -> None:
        page = read("how-to/import-maps.md")
        (block,) = blocks(page, "toml")
        (tmp_path / "page.toml").write_text(block, "utf-8")
        assert Import.load(tmp_path / "page.toml").map.kind == "appointments"
        settings = re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`[^|]+) \|", page, re.MULTILINE)))
        names = attrs.fields_dict(maps.Map).keys()
        assert {*settings, "kind", "zone", "country", "columns"} == names

    def test_the_output_of_the_page_is_that_of_the_command(self, clinic: Shell) -> None:
        shown = next(
            block for block in blocks(read("how-to/import-files.md"), "text") if block.startswith("turnos.csv")
        )
        printed = clinic.on_a_terminal(80, *CHECK)
        assert shown in "\n".join(line.rstrip() for line in printed.splitlines())


class TestRun:
    def test_a_second_run_records_nothing(self, clinic: Shell, server: MockServer) -> None:
        first = clinic.run(*RUN, "--send")
        assert (first.returncode, first.stderr) == (1, "")
        assert "Recorded: 46 appointment.created." in first.stdout
        assert "Sent: 46. Rejected: 0. Waiting: 0." in first.stdout
        assert not any(each in first.stdout for each in PERSONAL)
        second = json.loads(clinic.run(*RUN, "--send", "--json").stdout)
        assert (second["events"], second["unchanged"]) == ({}, 50)
        with server.client() as client:
            assert len([*client.appointments.list(limit=100)]) == 46

    def test_too_many_rejected_rows_record_nothing(self, clinic: Shell) -> None:
        edit(clinic, "turnos.toml", "[columns]", "max_rejected = 3\n\n[columns]")
        result = clinic.run(*RUN, "--json")
        assert result.returncode == 2
        assert "2 of 54 rows were rejected, more than max_rejected = 3 %, so nothing was recorded" in result.stderr
        assert json.loads(result.stdout)["rejected"] == 2
        assert "Not recorded: 46 appointment.created. Unchanged: 4. Gone: 0.\n" in clinic.run(*RUN).stdout
        assert Outbox(clinic.environment["FOLLOWUP_DATABASE_URL"]).status().waiting == 0

    def test_without_a_key_nothing_is_recorded(self, clinic: Shell) -> None:
        result = clinic.run(*RUN, "--send", FOLLOWUP_API_KEY="")
        assert (result.returncode, result.stdout) == (2, "")
        assert "FOLLOWUP_API_KEY" in result.stderr
        assert Outbox(clinic.environment["FOLLOWUP_DATABASE_URL"]).status().waiting == 0

    def test_events_that_are_not_accepted_are_counted(self, clinic: Shell, server: MockServer) -> None:
        server.add_fault(operation="events.create", kind="status", status=401)
        result = clinic.run(*RUN, "--send")
        assert result.returncode == 1
        assert "Check FOLLOWUP_API_KEY" in result.stderr
        assert "Recorded: 46" in result.stdout


class TestVerify:
    def test_differences(self, clinic: Shell, server: MockServer) -> None:
        clinic.run(*RUN, "--send")
        agreed = clinic.run(*VERIFY)
        assert agreed.returncode == 1
        assert "48213  rejected: 2030-05-14 10:00 in the file, not there at the service\n" in agreed.stdout
        assert agreed.stdout.endswith("2 differences\n")
        edit(clinic, "turnos.csv", "48201;13/05/2030;08:00", "48201;13/05/2030;08:30")
        edit(clinic, "turnos.csv", "48202;", "48999;")
        result = clinic.run(*VERIFY, "--json")
        assert (result.returncode, result.stderr) == (1, "")
        found = {each["externalId"]: each for each in json.loads(result.stdout)["differences"]}
        assert [found.pop(each)["kind"] for each in ("48213", "48214")] == ["rejected", "rejected"]
        assert found == {
            "48201": {
                "externalId": "48201",
                "kind": "time",
                "here": "2030-05-13T11:30:00.000Z",
                "there": "2030-05-13T11:00:00.000Z",
            },
            "48202": {"externalId": "48202", "kind": "unexpected", "here": None, "there": "2030-05-13T12:30:00.000Z"},
            "48999": {"externalId": "48999", "kind": "missing", "here": "2030-05-13T12:30:00.000Z", "there": None},
        }
        shown = clinic.run(*VERIFY).stdout
        assert "48201  time: 2030-05-13 08:30 in the file, 2030-05-13 08:00 at the service" in shown
        assert "5 differences" in shown

    def test_a_service_that_cannot_be_reached_is_no_difference(self, clinic: Shell) -> None:
        result = clinic.run(*VERIFY, FOLLOWUP_BASE_URL="http://127.0.0.1:1")
        assert result.returncode == 2
        assert "followup doctor" in result.stderr
