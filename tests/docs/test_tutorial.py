"""The tutorial works as written: its files are saved, its commands run in terminals, and their output is compared."""

import contextlib
import os
import re
import signal
import sys
from pathlib import Path

from support.ports import free_port
from support.terminal import Terminal

TUTORIAL = (Path(__file__).parents[2] / "docs" / "tutorial.md").read_text()
BLOCK = re.compile(r"((?:[^\n]+\n)*)\n*^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
"""A paragraph, and the block that follows it."""

INSTALLATION = re.compile(r"^(python3 -m venv|\. \.venv|python -m pip install |git clone |cd followup$)")
LEFT_RUNNING = ("followup-mock serve", "python receiver.py")
PORTS = {"4210": str(free_port()), "8000": str(free_port())}


def with_test_ports(text: str) -> str:
    """Replace the ports of the tutorial with those of this test."""
    for documented, actual in PORTS.items():
        text = text.replace(documented, actual)
    return text


def comparable(text: str) -> list[str]:
    """Return the lines with the ports of the tutorial, and without ids, secrets, version and trailing spaces."""
    for documented, actual in PORTS.items():
        text = text.replace(actual, documented)
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text).replace("\r\n", "\n")
    text = re.sub(r"\b[a-z]+_(?:[A-Za-z0-9]{10,}|[A-Za-z0-9]{4}…[A-Za-z0-9]{4})", "ID", text)
    text = re.sub(r"(?<=followup-mock )\d[\w.]*(?=;)", "VERSION", text)
    return [line.rstrip() for line in text.strip().splitlines()]


def terminal_of(command: str, folder: Path) -> Terminal:
    """Start a command on a terminal, as a reader does."""
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(folder),
        "TERM": "xterm",
        "LC_ALL": "C.UTF-8",
        "FOLLOWUP_BASE_URL": f"http://127.0.0.1:{PORTS['4210']}",
    }
    return Terminal(["bash", "-c", f"exec {command}"], environment, cwd=folder, width=100)


def test_the_tutorial_works_as_written(tmp_path: Path) -> None:
    blocks = [each for each in BLOCK.findall(TUTORIAL) if each[1] != "powershell"]
    assert len(blocks) > 12
    secret, last = "", None
    running: dict[str, Terminal] = {}
    with contextlib.ExitStack() as stack:
        for introduction, kind, content in blocks:
            expected = comparable(content)
            arranged = sorted if "in any order" in introduction else list
            if kind == "python":
                (name,) = re.findall(r"ave this as `(\w+\.py)`", introduction)
                code = with_test_ports(content).replace("whsec_...", secret or "whsec_...")
                (tmp_path / name).write_text(code)
            elif kind == "shell":
                (command,) = [line for line in content.splitlines() if not INSTALLATION.match(line)] or [None]
                if command is None:
                    continue
                typed = f"{command} --port {PORTS['4210']}" if "serve" in command else command
                last = stack.enter_context(terminal_of(typed, tmp_path))
                if command.startswith(LEFT_RUNNING):
                    running[command] = last
                else:
                    assert last.end() == 0, last.output
                secret = secret or "".join(re.findall(r"whsec_\w+", last.output))
            else:
                shown = running["python receiver.py"] if "second terminal" in introduction else last
                assert shown
                if shown in running.values():
                    shown.wait_for(
                        lambda output: arranged(comparable(output)[-len(expected) :]) == arranged(expected)  # noqa: B023
                    )
                else:
                    assert comparable(shown.output) == expected
        assert secret
        for terminal in reversed(running.values()):
            terminal.process.send_signal(signal.SIGINT)
            assert terminal.end() == 0
            assert "Traceback" not in terminal.output
