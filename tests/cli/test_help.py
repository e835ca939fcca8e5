"""The lists of commands, which both programs show without importing the commands."""

import json
import subprocess
import sys

import pytest
from support.shell import run_here

SUMMARIES = """
import json, sys, typer.main
from {package}.cli.app import app

group = typer.main.get_command(app)
def first_paragraph(command):
    return " ".join(command.help.partition("\\n\\n")[0].split())

listed = {{name: first_paragraph(command) for name, command in group.commands.items()}}
loaded = {{name: first_paragraph(getattr(each, "load", lambda: each)()) for name, each in group.commands.items()}}
print(json.dumps([listed, loaded]))
"""
"""Prints the summary of each command in the list, and the first paragraph of its own help."""

IMPORTED = """
import contextlib, sys
from {package}.cli import main

sys.argv = ["{package}", "--help"]
with contextlib.suppress(SystemExit):
    main()
print([name for name in ("httpx", "attrs", "cattrs", "asyncio", "rich", "flask", "waitress") if name in sys.modules])
"""


def output(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout


@pytest.mark.parametrize("package", ["followup", "followup_mockserver"])
def test_the_list_shows_the_first_paragraph_of_each_help_which_imports_no_client_and_no_server(package: str) -> None:
    imported = '\nprint(sys.modules.keys() & {"flask", "werkzeug", "waitress", "httpx"})'
    *_, texts, loaded = output(SUMMARIES.format(package=package) + imported).splitlines()
    assert loaded == "set()"
    listed, commands = json.loads(texts)
    assert listed == commands
    assert len(listed) >= 12


@pytest.mark.parametrize(("program", "lines"), [("followup", 30), ("followup-mock", 39)])
def test_the_list_of_commands_fits_a_screen(program: str, lines: int) -> None:
    """The screen of 40 lines has the next prompt too."""
    page = run_here(program, "--help", environment={"COLUMNS": "80"}).stdout.splitlines()
    assert len(page) <= lines
    assert max(map(len, page)) <= 80


@pytest.mark.parametrize(
    ("program", "old", "new"),
    [
        ("followup", "events send", "events send-all"),
        ("followup", "webhooks verify", "verify-webhook"),
        ("followup-mock", "disturb", "webhook-fault"),
    ],
)
def test_a_command_is_found_under_its_old_name_with_a_hint(program: str, old: str, new: str) -> None:
    before, after = (run_here(program, *words.split(), "--help") for words in (old, new))
    assert (before.returncode, before.stdout) == (0, after.stdout)
    assert before.stderr == f'{program}: "{old}" is now "{new}"; the old name ends with the next release.\n'
    assert after.stderr == ""
    assert f" {old.split()[-1]} " not in run_here(program, *old.split()[:-1], "--help").stdout


@pytest.mark.parametrize("package", ["followup", "followup_mockserver"])
def test_a_help_page_imports_neither_client_nor_service(package: str) -> None:
    assert output(IMPORTED.format(package=package)).splitlines()[-1] == "[]"
