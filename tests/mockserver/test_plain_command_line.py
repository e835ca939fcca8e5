"""``followup-mock serve`` with plain options starts without Typer, and means the same as with it."""

import json
import signal
import subprocess
import sys
from collections.abc import Sequence

import httpx
import pytest

BOTH_PARSERS = """
import json, sys, typer.main
from followup_mockserver.cli.generated import mock_options
from followup_mockserver.cli.plain_serve import plain_serve
from followup_mockserver.cli.serve import commands

OWN = ("host", "port", "env_file", "quiet", "snapshot")

def by_typer(arguments):
    try:
        context = typer.main.get_group(commands).commands["serve"].make_context("serve", arguments)
    except (Exception, SystemExit) as error:
        return error
    own = {name: context.params.pop(name) for name in OWN}
    options = mock_options(context.params)
    return own | {name: options[name] for name in options if context.get_parameter_source(name).name != "DEFAULT"}

def shown(values):  # as text, since older versions of Typer make a path of it later
    return isinstance(values, dict) and {name: str(value) for name, value in values.items() if value or value == 0}

for arguments in json.loads(sys.argv[1]):
    plain = plain_serve(arguments)
    same = plain is not None and shown({"quiet": False} | plain.keywords) == shown(by_typer(arguments))
    print("left to Typer" if plain is None else "same" if same else f"{plain} is not {by_typer(arguments)}")
"""
"""Prints a line for each command line: whether both parsers agree, or only Typer parses it."""

ONCE: dict[str, Sequence[str]] = {
    "--host": ["127.0.0.1", "localhost", "::1"],
    "--port": ["0", "4210", "59999", "042"],
    "--env-file": ["mock.env", "/tmp/with space/mock.env", "C:\\temp\\mock.env", "día.env"],
    "--rate-limit": ["0", "1000"],
    "--seed": ["0", "1234"],
}
FLAGS = ["--quiet", "--allow-http-webhooks"]

LEFT_TO_TYPER: list[list[str]] = [
    ["--help"],
    ["--no-allow-http-webhooks"],
    ["--allow-http-webhooks=1"],
    ["--port"],
    ["--port", "65536"],
    ["--port", "4_210"],
    ["--port", "\u0664\u0662\u0661\u0660"],
    ["--port=0"],
    ["--seed", "-5"],
    ["--country", "AR"],
    ["--env-file", "~/mock.env"],
    ["--env-file", "$HOME/mock.env"],
    ["--env-file", "--port"],
    ["--", "--port", "0"],
]


def parsed(command_lines: Sequence[Sequence[str]]) -> list[str]:
    # In a process of its own, since some versions of Typer and click warn of each other when they are imported.
    arguments = [sys.executable, "-c", BOTH_PARSERS, json.dumps(command_lines)]
    return subprocess.run(
        arguments, capture_output=True, text=True, check=True, timeout=60, encoding="utf-8"
    ).stdout.splitlines()


def test_plain_options_mean_the_same_as_with_typer() -> None:
    command_lines: list[list[str]] = [[], *([flag] for flag in FLAGS), FLAGS, FLAGS[::-1]]
    for option, values in ONCE.items():
        command_lines += [[option, value] for value in values]
        command_lines.append([part for value in values for part in (option, value)])  # the last one counts
    command_lines.append([part for option, values in ONCE.items() for part in (option, values[-1])] + FLAGS)
    found = dict(zip(map(tuple, command_lines), parsed(command_lines), strict=True))
    assert {line: outcome for line, outcome in found.items() if outcome != "same"} == {}


def test_everything_else_is_left_to_typer() -> None:
    found = dict(zip(map(tuple, LEFT_TO_TYPER), parsed(LEFT_TO_TYPER), strict=True))
    assert {line: outcome for line, outcome in found.items() if outcome != "left to Typer"} == {}


NOT_OF_SERVE = ("typer", "rich", "httpx", "cattrs", "phonenumbers", "jsonschema_rs", "tzdata", "sqlalchemy", "pytest")
NOT_OF_A_START = ("state.snapshots.parts", "simulation", "judge", "dashboard.views", "contract.openapi")


@pytest.mark.parametrize(("arguments", "imported"), [((), set()), (("--seed", "+1"), {"typer"})])
def test_a_plain_start_imports_only_what_it_needs(arguments: tuple[str, ...], imported: set[str]) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "followup_mockserver", "serve", "--port", "0", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        url = process.stdout.readline().removeprefix("base URL").strip()
        assert httpx.get(f"{url}/_mock/health", trust_env=False).is_success
        process.send_signal(signal.SIGTERM)
        _, report = process.communicate(timeout=60)
    assert process.returncode == 0
    modules = {line.rpartition("|")[2].strip() for line in report.splitlines() if line.startswith("import time:")}
    assert "flask" in modules
    assert imported <= modules
    assert modules & {*NOT_OF_SERVE, *(f"followup_mockserver.{each}" for each in NOT_OF_A_START)} <= imported
