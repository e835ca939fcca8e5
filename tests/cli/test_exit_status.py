"""The exit status of a command, as ``followup --help`` documents it; no error is a traceback."""

import subprocess
import sys

import pytest
from support.shell import Shell

from followup_mockserver import MockServer

BUG = """
import followup

def fail(*_, **__):
    raise KeyError("+54 9 11 5555-0000")

followup.FollowUp = fail
from followup.cli import main
main()
"""
"""Runs ``followup`` with a client that fails in a way that nobody expects."""


TIME = "must be a time with an offset, such as 2030-05-17T14:30:00-03:00 (Z means UTC)"
BOOKING = ("appointments", "create", "--start-at", "2030-05-17T14:30:00Z", "--patient")


@pytest.mark.parametrize("arguments", [("account", "retrieve"), ("--help",)])
def test_success_is_0_without_a_word_on_standard_error(shell: Shell, arguments: tuple[str, ...]) -> None:
    result = shell.run(*arguments)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("patients", "retrieve", "pat_none"), "404 invalid_request_error (resource_missing)"),
        (("events", "create", '[{"id": "1", "type": "order.issued", "data": {}}, {"id": "2"}]'), "1 of 2 events was"),
        (("events", "send-all", "nowhere.json"), "cannot read nowhere.json: "),
        (("events", "send-all", "."), "cannot read .: "),
        ((*BOOKING, "@patients.json"), "cannot read patients.json: No such file or directory"),
        (("patients", "create", "--phone", "x", "--full-name", "Ana"), " [--phone] ["),
        (("appointments", "list", "--starting-after", "pat_1"), " [--starting-after] ["),
        (("intake-requests", "create", "--patient", '{"phone": "1"}'), " [--patient, patient.phone] ["),
    ],
)
def test_a_failure_is_1_and_one_line(shell: Shell, arguments: tuple[str, ...], problem: str) -> None:
    result = shell.run(*arguments)
    assert problem in result.stderr
    assert (result.returncode, len(result.stderr.splitlines())) == (1, 1)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("patients", "lst"), "Error: No such command 'lst'. Did you mean 'list'?"),
        (("patients", "retrieve"), "Error: Missing argument 'ID'."),
        (("patients", "list", "--limit", "many"), "'many' is not a valid int"),
        (("demo", "--nothing"), "No such option"),
        (("patients", "retrieve", "apt_1"), "followup: ID must be a string that begins with 'pat_'"),
        (("patients", "retrieve", "pat_mQwC…XW19"), "without spaces, line breaks"),
        (("treatments", "retrieve", "T-1"), "ID must be a string that begins with 'trt_'"),
        (("treatments", "retrieve", "pat_1"), "ID must be a string that begins with 'trt_'"),
        (("patients", "update", "pat_1", "--full-name", "\udcff"), "--full-name is not valid Unicode: it contains a"),
        (("events", "create", "{"), "events is not JSON"),
        (("treatments", "create", "--name", "x", "--patient", "{"), "--patient is not JSON"),
        ((*BOOKING, "patient.json"), "--patient must be an id of the service, or JSON: an object, @FILE, or - for"),
        (
            ("intake-requests", "create", "--patient", '{"full_name": "Ana", "fullName": "Eva"}'),
            "--patient has both full_name and fullName, which are the same field",
        ),
        (
            ("events", "create", '[{"id": "1"}, {"occurredAt": null, "occurred_at": null}]'),
            "events has both occurredAt and occurred_at, which are the same field",
        ),
        (("patients", "update", "pat_x", "--clear", "phone"), "can be cleared: full-name, email, dni, external-id"),
        (("patients", "update", "pat_x", "--clear", "email", "--email", "a@example.com"), "cannot be combined"),
        (("appointments", "update", "apt_1", "--start-at", "2030-05-17T14:30:00"), f"--start-at {TIME}"),
        (("appointments", "update", "apt_1", "--start-at", "2030-05-17"), f"--start-at {TIME}"),
        (("appointments", "list", "--start-at-gte", "2030-05-17"), f"--start-at-gte {TIME}"),
        (("appointments", "list", "--start-at-lt", "0001-01-01T00:00:00+10:00"), "--start-at-lt is out of range: in"),
        (("patients", "create", "--phone", "1", "--date-of-birth", "29/02/1980"), "must be a date, such as 1980-02-29"),
    ],
)
def test_invalid_arguments_are_2_and_one_line_before_anything_is_sent(
    shell: Shell, server: MockServer, arguments: tuple[str, ...], problem: str
) -> None:
    result = shell.run(*arguments)
    *usage, line = result.stderr.splitlines()
    assert problem in line
    assert (result.returncode, len(usage)) == (2, 3 if line.startswith("Error: ") else 0)  # Typer's are below its usage
    assert server.requests == []


def test_a_bug_is_one_line_without_personal_data() -> None:
    command = [sys.executable, "-c", BUG, "account", "retrieve"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == 1
    assert result.stderr.startswith("followup: internal error, please report it: KeyError at ")
    assert "5555" not in result.stderr
    assert len(result.stderr.splitlines()) == 1


INTERRUPTED_IMPORT = """
import sys


class Interrupted:
    def find_spec(self, name, path=None, target=None):
        if name == "followup.cli.application":
            raise KeyboardInterrupt


sys.meta_path.insert(0, Interrupted())
from {package}.cli import main

main()
"""


@pytest.mark.parametrize("package", ["followup", "followup_mockserver"])
def test_an_interrupted_import_prints_no_traceback(package: str) -> None:
    code = INTERRUPTED_IMPORT.replace("{package}", package)
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert (result.returncode, result.stderr) == (130, "")
