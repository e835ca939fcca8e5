"""The tutorial works as written: its files are saved, its commands run in terminals, and their output is compared."""

import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.ports import free_port

TUTORIAL = (Path(__file__).parents[2] / "docs" / "tutorial.md").read_text()
BLOCK = re.compile(r"((?:[^\n]+\n)*)\n*^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
"""A paragraph, and the block that follows it."""

INSTALLATION = re.compile(r"^(python3 -m venv|\. \.venv|python -m pip install '\.\[all\]'$)")
LEFT_RUNNING = ("followup-mock serve", "python receiver.py")
PORTS = {"4210": str(free_port()), "8000": str(free_port())}
WIDTH = 100
PATIENCE = 60
"""Seconds after which a command counts as hanging."""


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
    text = re.sub(
        r"(?<=│ )[A-Za-z0-9]{7,}(?= *(?:│|$))", "ID", text, flags=re.MULTILINE
    )  # an id that is wrapped over two lines
    return [line.rstrip() for line in text.strip().splitlines()]


class Terminal:
    """A pseudo-terminal in which one command runs."""

    def __init__(self, command: str, folder: Path) -> None:
        self._terminal, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, WIDTH, 0, 0))
        os.set_blocking(self._terminal, False)
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self.process = subprocess.Popen(
            ["bash", "-c", f"exec {command}"],
            cwd=folder,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            env={
                "PATH": path,
                "HOME": str(folder),
                "TERM": "xterm",
                "LC_ALL": "C.UTF-8",
                "FOLLOWUP_BASE_URL": f"http://127.0.0.1:{PORTS['4210']}",
            },
        )
        os.close(slave)
        self.output = ""

    def read(self) -> str:
        """Return the output so far."""
        with contextlib.suppress(BlockingIOError, OSError):
            while part := os.read(self._terminal, 65_536):
                self.output += part.decode()
        return self.output

    def finish(self) -> str:
        """Wait until the command succeeds, and return its whole output."""
        ends = time.monotonic() + PATIENCE
        while self.process.poll() is None:
            self.read()
            assert time.monotonic() < ends, self.output
            time.sleep(0.02)
        assert self.process.returncode == 0, self.read()
        return self.read()

    def wait_for(self, lines: list[str], *, in_any_order: bool = False) -> None:
        """Wait until the output ends with these lines."""
        ends = time.monotonic() + PATIENCE
        arranged = sorted if in_any_order else list
        while arranged(comparable(self.read())[-len(lines) :]) != arranged(lines):
            assert self.process.poll() is None, self.output
            assert time.monotonic() < ends, (self.output, lines)
            time.sleep(0.02)

    def interrupt(self) -> None:
        """Press Ctrl-C, and check that the command ends without a traceback."""
        self.process.send_signal(2)
        assert self.process.wait(PATIENCE) == 0
        assert "Traceback" not in self.read()

    def close(self) -> None:
        """Kill the command, and close the terminal."""
        self.process.kill()
        self.process.wait()
        os.close(self._terminal)


@pytest.fixture
def terminals() -> Iterator[dict[str, Terminal]]:
    running: dict[str, Terminal] = {}
    yield running
    for terminal in running.values():
        terminal.close()


def test_the_tutorial_works_as_written(tmp_path: Path, terminals: dict[str, Terminal]) -> None:
    blocks = BLOCK.findall(TUTORIAL)
    assert len(blocks) > 12
    shown, secret, last = "", "", None
    for introduction, kind, content in blocks:
        if kind == "python":
            (name,) = re.findall(r"ave this as `(\w+\.py)`", introduction)
            code = with_test_ports(content).replace("whsec_...", secret or "whsec_...")
            (tmp_path / name).write_text(code)
        elif kind == "shell":
            (command,) = [line for line in content.splitlines() if not INSTALLATION.match(line)] or [None]
            if command is None:
                continue
            if command.startswith(LEFT_RUNNING):
                typed = f"{command} --port {PORTS['4210']}" if "serve" in command else command
                last = terminals[command] = Terminal(typed, tmp_path)
            else:
                last, terminal = None, Terminal(command, tmp_path)
                try:
                    shown = terminal.finish()
                finally:
                    terminal.close()
                secret = secret or "".join(re.findall(r"whsec_\w+", shown))
        elif "second terminal" in introduction:
            terminals["python receiver.py"].wait_for(comparable(content), in_any_order="in any order" in introduction)
        elif last is not None:
            last.wait_for(comparable(content))
        else:
            assert comparable(shown) == comparable(content)
    assert secret
    for terminal in reversed(terminals.values()):
        terminal.interrupt()
