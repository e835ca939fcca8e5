"""``followup-mock serve`` with plain options starts without Typer, and means the same as with it."""

import json
import signal
import subprocess
import sys
from collections.abc import Sequence

import pytest

BOTH_PARSERS = """
import json, sys, typer.main
from followup_mockserver.cli.plain_serve import plain_options
from followup_mockserver.cli.serve import commands
from followup_mockserver.cli.generated import mock_options
from followup_mockserver.settings.options import options_of

OWN = ("host", "port", "env_file", "quiet")  # as text, since older versions of Typer make a path of it later

def by_typer(arguments):
    try:
        values = typer.main.get_group(commands).commands["serve"].make_context("serve", arguments).params
        return [str(values.pop(name)) for name in OWN], options_of(mock_options(values))
    except (Exception, SystemExit) as error:
        return error

def plainly(arguments):
    values = plain_options(arguments)
    return values and ([str(values.pop(name)) for name in OWN], options_of(values))

for arguments in json.loads(sys.argv[1]):
    plain = plainly(arguments)
    typer_reads = plain and by_typer(arguments)
    print("left to Typer" if plain is None else "same" if plain == typer_reads else f"{plain} is not {typer_reads}")
"""
"""Prints a line for each command line: whether both parsers agree, or only Typer parses it."""

ONCE: dict[str, Sequence[str]] = {
    "--host": ["127.0.0.1", "localhost", "::1"],
    "--port": ["0", "4210", "65535", "04210"],
    "--env-file": ["mock.env", "/tmp/with space/mock.env", "C:\\temp\\mock.env", "día.env"],
    "--rate-limit": ["0", "1000000"],
    "--start-time": ["2026-09-28T12:00:00Z", "2026-09-28T12:00:00.5+02:00"],
    "--forward-to": ["http://127.0.0.1:8000/hooks", "https://clinic.example/hooks,a@b"],
    "--seed": ["0", "123456789"],
    "--country": ["AR", "UY"],
    "--idempotency-hours": ["1", "0.5", "24.0"],
    "--reminder-hours": ["48", "48,1.5", "24, 3,"],
    "--post-visit-hours": ["0", "4.25"],
    "--intake-required": ["dni", "dni, coverage.insurer"],
    "--language": ["pt"],
    "--time-zone": ["Europe/Madrid"],
}
FLAGS = ["--quiet", "--allow-http-webhooks", "--refuse-unknown-fields", "--accept-unknown-fields"]

LEFT_TO_TYPER: list[list[str]] = [
    ["--help"],
    ["--frozen"],
    ["--no-allow-http-webhooks"],
    ["--allow-http-webhooks=1"],
    ["--port"],
    ["--port", "65536"],
    ["--port", "-1"],
    ["--port", "4_210"],
    ["--port", " 4210"],
    ["--port", "\u0664\u0662\u0661\u0660"],
    ["--seed", "-5"],
    ["--seed", "1.0"],
    ["--idempotency-hours", "1e3"],
    ["--idempotency-hours", "nan"],
    ["--reminder-hours", ""],
    ["--reminder-hours", "soon"],
    ["--env-file", "~/mock.env"],
    ["--env-file", "$HOME/mock.env"],
    ["--env-file", "--port"],
    ["--env-file="],
    ["--forward-to", "https://clinic.example/?a=b"],
    ["--", "--port", "0"],
    ["-p", "0"],
    ["0"],
    ["--PORT", "0"],
    ["--por", "0"],
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
        command_lines += [[f"{option}={value}"] for value in values]
        command_lines.append([part for value in values for part in (option, value)])  # the last one counts
    command_lines.append([part for option, values in ONCE.items() for part in (option, values[-1])] + FLAGS)
    found = dict(zip(map(tuple, command_lines), parsed(command_lines), strict=True))
    assert {line: outcome for line, outcome in found.items() if outcome != "same"} == {}


def test_everything_else_is_left_to_typer() -> None:
    found = dict(zip(map(tuple, LEFT_TO_TYPER), parsed(LEFT_TO_TYPER), strict=True))
    assert {line: outcome for line, outcome in found.items() if outcome != "left to Typer"} == {}


@pytest.mark.parametrize(("arguments", "imported"), [((), False), (("--seed", "+1"), True)])
def test_a_plain_start_imports_no_typer(arguments: tuple[str, ...], imported: bool) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "followup_mockserver", "serve", "--port", "0", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline().startswith("base URL")
        process.send_signal(signal.SIGTERM)
        _, modules = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "flask" in modules
    assert ("typer" in modules) is imported
