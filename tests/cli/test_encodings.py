"""Encodings and time zones of a computer that are not ours: in pipes and files, everything is UTF-8."""

import json
from datetime import datetime, timedelta, timezone

import pytest
from support.shell import Shell

from followup.cli import output
from followup_mockserver import MockServer

NAME = "Iñaki Ñandú"
LATIN_1 = {"PYTHONIOENCODING": "latin-1"}
ASCII = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
"""A locale without UTF-8, as that of Windows."""


@pytest.mark.parametrize("variables", [LATIN_1, ASCII], ids=["chosen", "locale"])
def test_what_a_command_prints_into_a_pipe_is_read_by_another(
    shell: Shell, server: MockServer, variables: dict[str, str]
) -> None:
    with server.client() as client:
        client.patients.create(phone="+5491155550000", full_name=NAME)
    printed = shell.run("patients", "list", **variables).stdout
    assert printed.isascii()  # so that it survives what PowerShell does in a pipe
    visit = ("visits", "create", "--visited-at", "2026-05-17T14:30:00Z", "--patient", "-")
    assert shell.run(*visit, stdin=printed).returncode == 0
    assert json.loads(printed)["fullName"] == NAME
    (shell.directory / "turnos.csv").write_text("Turno,Inicio,Médico\nT-1,2030-05-17T10:00,Ñ\n", encoding="utf-8")
    assert "Médico" in shell.run("import", "init", "turnos.csv", **variables).stdout


def test_text_in_a_pipe_has_all_characters(shell: Shell) -> None:
    assert "Clínica" in shell.run("doctor", **ASCII).stdout
    assert r"Cl\xednica" in shell.run("doctor", PYTHONIOENCODING="ascii").stdout


LINES = "".join(f'{{"id": "{each}", "type": "order.issued", "data": {{"name": "{NAME}"}}}}\n' for each in "12")


def test_a_byte_order_mark_is_no_part_of_what_is_read(shell: Shell) -> None:
    result = shell.run("events", "create", "-", stdin=LINES.encode("utf-8-sig"))
    assert len(result.stdout.splitlines()) == 2, result.stderr


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "cp1252"])
@pytest.mark.parametrize(
    ("command", "where"),
    [
        (("events", "create", "-"), "events"),
        (("person", "erase", "--external-id", "-"), "--external-id"),
        (("person", "export", "--email", "-"), "--email"),
    ],
)
def test_another_encoding_is_rejected(shell: Shell, command: tuple[str, ...], where: str, encoding: str) -> None:
    expected = f"followup: {where}: standard input must be UTF-8 text; save it in this encoding\n"
    assert shell.error(*command, stdin=LINES.encode(encoding)) == expected


def test_the_zone_that_tz_names_needs_no_help_of_the_c_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Kathmandu")  # without tzset, the C library does not know it
    assert output.with_local_times("2030-05-17T14:30:00Z") == "2030-05-17 20:15 UTC+5:45"


@pytest.mark.parametrize("name", ["Argentina Standard Time", "Hora estándar de Argentina", "-03"])
def test_a_zone_without_a_short_name_is_its_offset(name: str) -> None:
    assert output.zone_of(datetime(2030, 5, 17, tzinfo=timezone(timedelta(hours=-3), name))) == "UTC-3"


@pytest.mark.parametrize("zone", ["Etc/UTC", ""], ids=["named", "of the computer"])
def test_a_date_before_1970(shell: Shell, server: MockServer, zone: str) -> None:
    """The C library of Windows has no local time for it."""
    with server.client() as client:
        client.visits.create(patient={"phone": "+5491155550000"}, visited_at="1969-05-17T14:30:00Z")
    assert "1969-05-17 14:30" in shell.on_a_terminal(80, "visits", "list", TZ=zone)
