"""What ``followup`` shows on a terminal: tables that fit, short and harmless text, and hints for a person."""

import json
import re
import shlex
import subprocess
import unicodedata
from typing import Any

import httpx
import pytest
from contract import specification as spec
from support.shell import COMMAND, Shell
from support.terminal import Terminal

from followup_mockserver import MockServer

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x1b[31mRED\x9b5m \u202egnirts\u2028next\u200f Ana"
"""Sets the title, clears the screen, turns red (also with C1), turns the direction of writing, and breaks the line."""


def controls(text: str) -> set[str]:
    """The characters of a text that a terminal may obey, or that change how others are shown; but for line ends."""
    return {each for each in text if unicodedata.category(each) in ("Cc", "Cf", "Zl", "Zp", "Cs")} - {"\n"}


def book(server: MockServer) -> Any:
    with server.client() as client:
        patient = client.patients.create(
            phone="+54 9 11 5555-0000", full_name="Ana María Pérez", dni="30.123.456", external_id="P-0001"
        )
        (doctor, *_) = client.doctors.list()
        return client.appointments.create(
            patient=patient.id,
            start_at="2030-05-17T14:30:00-03:00",
            external_id="T-2030-0001",
            type="primera consulta",
            doctor=doctor.id,
        )


class TestHostileText:
    def test_a_name_cannot_command_the_terminal(self, shell: Shell, server: MockServer) -> None:
        with server.client() as client:
            patient = client.patients.create(phone="+5491155550000", full_name=HOSTILE)
        for command in (("list",), ("retrieve", patient.id)):
            shown = shell.on_a_terminal(200, "patients", *command)
            assert r"\x1b]0;owned\x07\x1b[2J\x1b[31mRED\x9b5m \u202egnirts\u2028next\u200f Ana" in shown
            assert controls(shown) == set()

    @pytest.mark.parametrize("command", [("list",), ("list", "--json")])
    def test_json_holds_the_same_name_and_no_control_character(
        self, shell: Shell, server: MockServer, command: tuple[str, ...]
    ) -> None:
        with server.client() as client:
            client.patients.create(phone="+5491155550000", full_name=f"{HOSTILE} Pérez \U000e0041")
        piped = shell.run("patients", *command).stdout
        (line,) = piped.splitlines()
        assert json.loads(line)["fullName"] == f"{HOSTILE} Pérez \U000e0041"
        assert controls(piped) == set()

    def test_an_error_text_cannot_command_the_terminal(self, shell: Shell, server: MockServer) -> None:
        written = shell.error("patients", "retrieve", f"apt_{HOSTILE}")
        assert controls(written) == set()
        written = shell.error("patients", f"{HOSTILE}")
        assert controls(written) == set()

    def test_the_file_of_rejected_events_and_the_summary_are_harmless(self, shell: Shell) -> None:
        event = {"id": HOSTILE, "type": HOSTILE, "data": {"patient": {"fullName": HOSTILE}}}
        name = f"events{HOSTILE}.json".replace("/", "")
        try:
            (shell.directory / name).touch()
        except OSError:
            name = "events.json"  # Windows has no such names
        (shell.directory / name).write_text(json.dumps([event]))
        shown = shell.on_a_terminal(200, "events", "send-all", name)
        assert "1 event was rejected" in shown
        assert controls(shown) - {"\r"} == set()  # the bar begins its line again
        written = (shell.directory / f"{name}.rejected.jsonl").read_text()
        assert json.loads(written)["event"] == event
        assert controls(written) == set()

    def test_a_name_is_no_markup(self, shell: Shell, server: MockServer) -> None:
        with server.client() as client:
            client.patients.create(phone="+5491155550000", full_name="[red]Ana[/red] [link=file:///]x")
        assert "[red]Ana[/red] [link=file:///]x" in shell.on_a_terminal(200, "patients", "list")


class TestTables:
    @pytest.mark.parametrize("width", [80, 110])
    def test_appointments_show_their_start_status_and_external_id(
        self, shell: Shell, server: MockServer, width: int
    ) -> None:
        book(server)
        lines = shell.on_a_terminal(width, "appointments", "list").splitlines()
        (row,) = [line for line in lines if "T-2030-0001" in line]
        assert "2030-05-17 17:30" in row
        assert "confirmed" in row
        assert all(len(line) <= width for line in lines)

    def test_a_stage_is_no_id(self, shell: Shell, server: MockServer) -> None:
        server.receive_reply(book(server).patient)
        assert "in_conversation" in shell.on_a_terminal(80, "patients", "list")

    @pytest.mark.parametrize(("width", "other"), [(40, None), (60, None), (96, "short"), (120, "whole")])
    def test_the_id_of_a_row_is_whole_and_those_of_others_where_there_is_room(
        self, shell: Shell, server: MockServer, width: int, other: str | None
    ) -> None:
        made = book(server)
        shown = shell.on_a_terminal(width, "appointments", "list")
        assert made.id in shown.split()
        short = f"{made.patient[:8]}…{made.patient[-4:]}"
        assert [(short in shown), (made.patient in shown)] == [other == "short", other == "whole"]

    @pytest.mark.parametrize("width", [80, 110])
    def test_deliveries_show_their_status_status_code_and_last_error(
        self, shell: Shell, server: MockServer, width: int
    ) -> None:
        server.mount("https://clinic.example/hooks", lambda request: httpx.Response(503))
        with server.client() as client:
            client.webhook_endpoints.create(url="https://clinic.example/hooks", enabled_events=["*"])
        book(server)
        server.advance()
        lines = shell.on_a_terminal(width, "webhook-deliveries", "list").splitlines()
        assert lines[2].startswith("appointment.created"), "the heading has more than two lines"
        (row,) = [line for line in lines if "patient.upserted" in line]
        (delivery,) = [each.id for each in server.deliveries if each.event_type == "patient.upserted"]
        shown = ["pending", delivery, "503", *(["HTTP status 503."] if width > 80 else [])]
        assert re.split(" {2,}", row.strip())[1 : 1 + len(shown)] == shown

    @pytest.mark.parametrize(
        ("group", "width"),
        [("patients", 20), *((each.name.split(".")[0], 60) for each in spec.OPERATIONS if each.list_of)],
    )
    def test_every_list_fits(self, shell: Shell, server: MockServer, group: str, width: int) -> None:
        made = book(server)
        with server.client() as client:
            long = "a long text " * 20
            client.visits.create(patient=made.patient, visited_at="2026-09-01T10:00:00Z", diagnosis=long, notes=long)
            client.treatments.create(patient=made.patient, name=long, instructions=long)
            client.intake_requests.create(patient={"phone": "+5491155550000", "full_name": "Ana"}, summary=long)
            client.events.create({"id": "e-1", "type": "order.issued", "data": {"text": long}})
            client.webhook_endpoints.create(url=f"https://127.0.0.1:9/{'a' * 200}", enabled_events=["*"])
            client.patients.update(made.patient, full_name=long)
        lines = shell.on_a_terminal(width, group.replace("_", "-"), "list").splitlines()
        assert len(lines) > 2
        assert all(len(line) <= width for line in lines), lines

    def test_omitted_columns_are_named(self, shell: Shell, server: MockServer) -> None:
        book(server)
        shown = " ".join(shell.on_a_terminal(40, "appointments", "list").split())
        assert "No room for" in shown
        assert "--json shows everything" in shown

    def test_an_empty_list_is_reported(self, shell: Shell) -> None:
        assert shell.on_a_terminal(80, "patients", "list").strip() == "No results."


class TestProgress:
    def test_the_events_that_are_sent_are_counted(self, shell: Shell) -> None:
        events = [{"id": str(number), "type": "order.issued", "data": {}} for number in range(3)]
        (shell.directory / "events.json").write_text(json.dumps(events))
        assert "events: 3" in shell.on_a_terminal(100, "events", "send-all", "events.json")
        assert "events: " not in shell.run("events", "send-all", "events.json").stderr

    def test_objects_are_counted_while_a_file_gets_them(self, shell: Shell, server: MockServer) -> None:
        with server.client() as client:
            for number in range(3):
                client.patients.create(phone=f"+5491155{number:06}")
        assert "patients: 3" in shell.on_a_terminal(200, "patients", "list", "--all")
        assert "patients: 3" not in shell.on_a_terminal(200, "patients", "list", "--all", "--json")
        assert shell.run("patients", "list", "--all").stderr == ""
        command = shlex.join([*COMMAND, "patients", "list", "--all"])
        variables = {**shell.environment, "TERM": "xterm"}
        with Terminal(["sh", "-c", f"{command} >out.jsonl"], variables, cwd=shell.directory) as terminal:
            assert terminal.end() == 0
            assert "patients: 3" in terminal.output
        assert len((shell.directory / "out.jsonl").read_text().splitlines()) == 3


class TestReaders:
    @pytest.mark.parametrize("unbuffered", ["", "1"])
    def test_a_reader_that_stops_is_no_error(self, shell: Shell, server: MockServer, unbuffered: str) -> None:
        with server.client() as client:
            for number in range(30):
                client.patients.create(phone=f"+5491155{number:06}", full_name="x" * 4_000)
        command = [*COMMAND, "patients", "list", "--all"]
        environment = {**shell.environment, "PYTHONUNBUFFERED": unbuffered}
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
            assert process.stdout
            assert process.stderr
            process.stdout.readline()
            process.stdout.close()
            assert process.stderr.read() == b""
            assert process.wait(60) == 0


class TestMessages:
    def test_messages_wrap_between_words(self, shell: Shell, server: MockServer) -> None:
        book(server)
        book(server)
        for arguments in (("--limit", "1"), ("--start-at-gte", "soon")):
            whole = shell.run("appointments", "list", *arguments).stderr
            lines = shell.on_a_terminal(60, "appointments", "list", *arguments).splitlines()
            assert all(len(line) <= 60 for line in lines), lines
            assert " ".join(lines).endswith(whole.strip()), lines

    def test_states_and_verdicts_have_colours_where_they_are_wanted(self, shell: Shell, server: MockServer) -> None:
        server.mount("https://clinic.example/hooks", lambda _: httpx.Response(503))
        with server.client() as client:
            client.webhook_endpoints.create(url="https://clinic.example/hooks", enabled_events=["*"])
        book(server)
        server.advance()
        for arguments, styled in (
            (("doctor",), "\x1b[32mOK\x1b[0m    service"),
            (("doctor",), "\x1b[31mFAIL\x1b[0m  endpoint"),
            (("webhook-deliveries", "list"), "\x1b[33mpending"),
            (("webhook-deliveries", "list"), "\x1b[31m503"),
        ):
            assert styled in shell.raw_on_a_terminal(120, *arguments)
            for variable in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
                shown = shell.raw_on_a_terminal(120, *arguments, **variable)
                assert not re.search(r"\x1b\[3\dm", shown)
                assert re.sub(r"\x1b\[\d*m", "", styled) in re.sub(r"\x1b\[\d*m", "", shown)
        assert "\x1b[32mOK\x1b[0m" in shell.run("doctor", FORCE_COLOR="1").stdout
        assert "\x1b" not in shell.run("doctor").stdout
