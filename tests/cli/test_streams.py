"""Help without a command, usage errors, and streams that are closed or full."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.shell import COMMAND, COMMAND_OF_MOCK, Shell, run_here
from support.systems import needs_shell

from followup.cli import output


def run(command: list[str], redirection: str, shell: Shell) -> subprocess.CompletedProcess[str]:
    """Run a command with a redirection of the shell."""
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {redirection}', "sh", *command],
        capture_output=True, text=True, check=False, timeout=60, env=shell.environment, cwd=shell.directory,
    )  # fmt: skip


@pytest.mark.parametrize(
    "command", [["followup"], ["followup", "patients"], ["followup-mock"], ["followup-mock", "patients"]]
)
def test_a_group_without_a_command_shows_its_help(command: list[str]) -> None:
    result = run_here(*command)
    assert result.returncode == 2
    lines = (result.stdout + result.stderr).splitlines()  # newer versions of Typer write it to the first
    assert lines[0].startswith("Usage: followup")
    assert {"Commands:", "Start and check:", "Run:"} & {*lines}


@needs_shell
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs the device of a full disk")
@pytest.mark.parametrize("command", [[*COMMAND, "doctors", "list"], [*COMMAND_OF_MOCK, "--version"]])
def test_a_full_disk_is_one_line(command: list[str], shell: Shell) -> None:
    result = run(command, ">/dev/full", shell)
    program = "followup-mock" if "-m" in command else "followup"
    expected = f"{program}: cannot write the output: {os.strerror(28)}\n"
    assert (result.stderr, result.returncode) == (expected, 1)


@pytest.mark.parametrize("write", [lambda: output.write_line("x"), output.flush])
@pytest.mark.parametrize(("code", "raised"), [(errno.EINVAL, SystemExit), (errno.ENOSPC, OSError)])
def test_a_pipe_that_is_closed_on_windows(
    write: Callable[[], None], code: int, raised: type[BaseException], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(*_: object) -> None:
        raise OSError(code, "")

    with (tmp_path / "pipe").open("w") as pipe:
        monkeypatch.setattr(sys, "stdout", SimpleNamespace(write=fail, flush=fail, fileno=pipe.fileno))
        with pytest.raises(raised) as caught:
            write()
        monkeypatch.undo()
    assert raised is OSError or getattr(caught.value, "code", None) == 0
