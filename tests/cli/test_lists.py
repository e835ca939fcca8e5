"""The lists of ``followup``: times with their zone, what a page leaves out, and formats."""

import csv
import io
import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from support.responses import page, patient
from support.server import ScriptedServer, reply
from support.shell import Shell

from followup_mockserver import MockServer


def book(server: MockServer, *starts: str) -> list[Any]:
    """Book an appointment at each of these times, with the external ids T-1, T-2 and so on."""
    with server.client() as client:
        patient = client.patients.create(phone="+5491155550000", full_name="Ana")
        return [
            client.appointments.create(patient=patient.id, start_at=start, external_id=f"T-{number}", type="control")
            for number, start in enumerate(starts, start=1)
        ]


def cells(shown: str, text: str) -> list[str]:
    """Return the cells of the row that contains a text."""
    (row,) = [line for line in shown.splitlines() if text in line]
    return re.split(" {2,}", row.strip())


class TestTimes:
    @pytest.mark.parametrize(
        ("zone", "heading", "time"),
        [
            ("Europe/Madrid", "(CEST)", "2030-05-17 16:30"),
            ("America/Argentina/Buenos_Aires", "(UTC-3)", "2030-05-17 11:30"),
            ("Asia/Kathmandu", "(UTC+5:45)", "2030-05-17 20:15"),
        ],
    )
    def test_the_heading_names_the_time_zone(
        self, shell: Shell, server: MockServer, zone: str, heading: str, time: str
    ) -> None:
        book(server, "2030-05-17T14:30:00Z")
        shown = shell.on_a_terminal(100, "appointments", "list", TZ=zone)
        assert cells(shown, "T-1")[0] == time
        assert heading in shown

    def test_a_time_on_the_other_side_of_a_change_of_the_clocks_names_its_zone(
        self, shell: Shell, server: MockServer
    ) -> None:
        book(server, "2030-10-26T10:00:00Z", "2030-10-28T10:00:00Z")
        shown = shell.on_a_terminal(80, "appointments", "list", TZ="Europe/Madrid")
        assert cells(shown, "T-1")[0] == "2030-10-26 12:00 CEST"
        assert cells(shown, "T-2")[0] == "2030-10-28 11:00"
        assert "(CET)" in shown


class TestMore:
    def test_a_pipe_learns_that_there_is_more_without_a_line_in_its_data(
        self, shell: Shell, server: MockServer
    ) -> None:
        made = book(server, *(f"2030-05-17T{hour:02}:00:00Z" for hour in range(4)))
        result = shell.run("appointments", "list", "--limit", "3")
        assert [json.loads(line)["externalId"] for line in result.stdout.splitlines()] == ["T-4", "T-3", "T-2"]
        assert result.stderr == (
            f"Showing 3, and there are more: use --all, --limit (up to 100) or --starting-after {made[1].id}.\n"
        )
        rest = shell.run("appointments", "list", "--starting-after", made[1].id)
        assert [json.loads(line)["externalId"] for line in rest.stdout.splitlines()] == ["T-1"]
        assert rest.stderr == ""

    def test_a_list_that_goes_back_continues_backwards(self, shell: Shell, server: MockServer) -> None:
        made = book(server, *(f"2030-05-17T{hour:02}:00:00Z" for hour in range(4)))
        result = shell.run("appointments", "list", "--limit", "2", "--ending-before", made[0].id)
        assert [json.loads(line)["externalId"] for line in result.stdout.splitlines()] == ["T-3", "T-2"]
        assert f"--ending-before {made[2].id}." in result.stderr


def patients(server: MockServer, *names: str) -> list[str]:
    """Create a patient for each of these names, and return the ids, newest first."""
    with server.client() as client:
        for number, name in enumerate(names):
            client.patients.create(phone=f"+549115555{number:04}", full_name=name)
        return [each.id for each in client.patients.list(limit=100)]


class TestFormats:
    def test_csv_has_a_header_crlf_and_no_cell_that_a_spreadsheet_runs(self, shell: Shell, server: MockServer) -> None:
        harmless = ["-12", "+3.5e7", "+54 9 11 5555-0000", 'Ana "la Rubia", Pérez', "two\nlines", " =1"]
        formulas = ["=1+1", "+cmd|x", "-1+1", "@SUM(A1)", "+1+1", "-", "=\t1"]
        names = [*harmless, *formulas]
        shown = shell.run("patients", "list", "--csv", "--limit", "100", PYTHONIOENCODING="ascii").stdout
        assert shown.startswith("id,object,fullName,phone,")
        made = patients(server, *names)
        text = shell.run("patients", "list", "--csv", "--limit", "100", PYTHONIOENCODING="ascii").stdout
        rows = [*csv.DictReader(io.StringIO(text, newline=""))]
        assert [row["id"] for row in rows] == made
        assert [row["fullName"] for row in rows][::-1] == [*harmless, *(f"'{each}" for each in formulas)]
        assert {row["phone"][:10] for row in rows} == {"+549115555"}
        assert {row["optedOut"] for row in rows} == {"false"}
        assert {row["email"] for row in rows} == {""}
        assert all(datetime.fromisoformat(row["createdAt"]).tzinfo for row in rows)
        assert text.count("\r\n") == len(names) + 1
        assert text.endswith("\r\n")

    def test_csv_and_the_other_formats_on_a_terminal(self, shell: Shell, server: MockServer) -> None:
        made = patients(server, "a\tb", "=1", "c")
        header, *lines = shell.on_a_terminal(400, "patients", "list", "--csv").splitlines()
        assert header.startswith("id,object,fullName,")
        assert [line.split(",")[:3:2] for line in lines] == [
            [each, name] for each, name in zip(made, ["c", "'=1", r"a\tb"], strict=True)
        ]
        assert shell.on_a_terminal(80, "patients", "list", "--ids").splitlines() == made

    def test_ids_and_csv_come_page_by_page_and_a_reader_may_stop(self, shell: Shell, server: MockServer) -> None:
        made = patients(server, *map(str, range(6)))
        assert shell.run("patients", "list", "--ids", "--all", "--limit", "2").stdout.splitlines() == made
        server.add_fault(operation="patients.list", kind="status", status=400, skip=1)
        for option, lines in (("--ids", 2), ("--csv", 3)):
            result = shell.run("patients", "list", option, "--all", "--limit", "2")
            assert (result.returncode, len(result.stdout.splitlines())) == (1, lines)
            server.add_fault(operation="patients.list", kind="status", status=400, skip=1)


def test_a_foreign_web_server_is_named_with_the_command_that_examines_it(tmp_path: Path) -> None:
    with ScriptedServer([reply(404, b"<h1>Not Found</h1>", {"Content-Type": "text/html"})]) as foreign:
        shown = Shell(foreign.url, "k", tmp_path).error("patients", "list")
    assert '404 Not Found [patients.list]. This may be no response of the service: "followup doctor" finds out' in shown


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00.000+14:00", "9999-12-31T23:59:59.000-14:00"])
def test_one_time_that_utc_cannot_express_does_not_cost_the_page(tmp_path: Path, time: str) -> None:
    listed = page(patient(), patient("pat_2", createdAt=time))
    with ScriptedServer([reply(200, listed)]) as service:
        shell = Shell(service.url, "k", tmp_path)
        for option in ("--json", "--csv"):
            result = shell.run("patients", "list", option)
            assert (result.returncode, time in result.stdout) == (0, True), result.stderr
        assert time[:10] in shell.on_a_terminal(400, "patients", "list")
