"""The exit status of a command, as ``followup --help`` documents it; no error is a traceback."""

import subprocess
import sys

import pytest
from support.shell import Shell

BUG = """
import followup

def fail(*_, **__):
    raise KeyError("+54 9 11 5555-0000")

followup.FollowUp = fail
from followup.cli import main
main()
"""
"""Runs ``followup`` with a client that fails in a way that nobody expects."""


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (("account", "retrieve"), 0),
        (("--help",), 0),
        (("patients", "retrieve", "pat_none"), 1),
        (("events", "create", '[{"id": "1", "type": "order.issued", "data": {}}, {"id": "2"}]'), 1),
        (("events", "send-all", "nowhere.json"), 1),
        (("patients", "retrieve", "apt_none"), 2),
        (("patients", "list", "--limit", "many"), 2),
        (("events", "create", "{"), 2),
        (("patients", "update", "pat_x", "--clear", "phone"), 2),
        (("demo", "--nothing"), 2),
    ],
)
def test_the_status_reports_the_outcome(shell: Shell, arguments: tuple[str, ...], status: int) -> None:
    result = shell.run(*arguments)
    assert result.returncode == status
    assert "Traceback" not in result.stderr
    assert bool(result.stderr) == bool(status)


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
