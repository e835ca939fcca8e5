"""The lists of commands, which both programs show without importing the commands."""

import subprocess
import sys

import pytest
from support.shell import run_here

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


@pytest.mark.parametrize(("program", "command"), [("followup", "doctor"), ("followup-mock", "serve")])
def test_the_list_of_commands_has_the_summary_of_each_and_fits_a_terminal(program: str, command: str) -> None:
    page, own = (run_here(program, *words, "--help", environment={"COLUMNS": "80"}).stdout for words in ([], [command]))
    assert max(map(len, page.splitlines())) <= 80
    summary = own.splitlines()[2].strip()
    assert f"  {command} " in page
    assert summary in page


@pytest.mark.parametrize("package", ["followup", "followup_mockserver"])
def test_a_help_page_imports_neither_client_nor_service(package: str) -> None:
    assert output(IMPORTED.format(package=package)).splitlines()[-1] == "[]"
