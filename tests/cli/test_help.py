"""The lists of commands, which both programs show without importing the commands."""

import json
import subprocess
import sys

import pytest

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


@pytest.mark.parametrize("package", ["followup", "followup_mockserver"])
def test_a_help_page_imports_neither_client_nor_service(package: str) -> None:
    assert output(IMPORTED.format(package=package)).splitlines()[-1] == "[]"
