"""What Windows and macOS lack or do otherwise: there are no forks, no polls, and other files and shells."""

import os
import signal
import socket
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
from support.systems import REPLACES_OPEN_FILES, needs_signals

from followup.cli.output import write_private_file
from followup_mockserver import MockServer
from followup_mockserver.cli import serving

WITHOUT_POSIX = """
import os, select, signal, socket, sys, time
for module in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[module] = None
absent = {
    os: "fork register_at_fork getuid geteuid fchmod chown killpg setsid mkfifo",
    select: "poll epoll",
    signal: "SIGHUP SIGQUIT SIGALRM SIGVTALRM SIGPROF SIGUSR1 SIGUSR2 SIGKILL setitimer pthread_sigmask",
    socket: "AF_UNIX",
    time: "tzset",
}
for module, names in absent.items():
    for name in names.split():
        if hasattr(module, name):  # macOS has no epoll
            delattr(module, name)
"""

INTEGRATION = """
import sqlalchemy
from datetime import timedelta
from followup import construct_event
from followup.cli import main
from followup.outbox import Outbox
from followup_mockserver import MockServer

with MockServer(start_time="2030-01-01T12:00:00Z") as server, server.client() as client:
    engine = sqlalchemy.create_engine("sqlite:///clinic.db")
    outbox = Outbox(engine)
    outbox.create_tables()
    start = server.clock.now + timedelta(days=3)
    client.appointments.create(patient={"phone": "+5491155550000"}, start_at=start)
    outbox.drain(client)
    engine.dispose()  # Python 3.13 warns of connections that were not closed
    server.advance(days=3)
    print(len(server.messages))
    sys.argv = ["followup", "patients", "list"]
    os.environ |= {"FOLLOWUP_BASE_URL": server.url, "FOLLOWUP_API_KEY": server.api_key}
    main()
"""


def test_client_mock_outbox_and_command_need_nothing_that_only_posix_has(tmp_path: Path) -> None:
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", WITHOUT_POSIX + INTEGRATION]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("2\n{")


WITHOUT_GROUPS = "import os; vars(os).pop('killpg', None); from followup_mockserver.cli import main; main()"
DEV = [sys.executable, "-c", WITHOUT_GROUPS, "dev", "--port", "0", "--quiet", "--", sys.executable, "-c"]


def test_dev_ends_with_its_program(tmp_path: Path) -> None:
    environment = {**os.environ, "HOME": str(tmp_path)}
    assert subprocess.run([*DEV, "raise SystemExit(5)"], check=False, timeout=60, env=environment).returncode == 5


@needs_signals
def test_dev_ends_its_program(tmp_path: Path) -> None:
    sleeps = [*DEV, "import time; print('ready', flush=True); time.sleep(600)"]
    with subprocess.Popen(sleeps, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        process.terminate()
        assert process.stdout.read() == ""  # the program has ended, too
        assert process.wait(60) == 128 + signal.SIGTERM


def test_a_shell_can_read_a_file_wherever_it_was_written(tmp_path: Path) -> None:
    write_private_file(tmp_path / "mock.env", "FOLLOWUP_API_KEY=a\n")
    assert (tmp_path / "mock.env").read_bytes() == b"FOLLOWUP_API_KEY=a\n"


def test_a_file_that_another_program_has_open_is_replaced_or_stays_whole(tmp_path: Path) -> None:
    file = tmp_path / "mock.env"
    file.write_text("before")
    with file.open(), nullcontext() if REPLACES_OPEN_FILES else pytest.raises(PermissionError):
        write_private_file(file, "after")
    expected = "after" if REPLACES_OPEN_FILES else "before"
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("mock.env", expected)]


def test_two_mocks_cannot_share_a_port_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """There, SO_REUSEADDR lets a second process listen on a port that is in use."""
    monkeypatch.setattr(socket, "SO_EXCLUSIVEADDRUSE", socket.SO_KEEPALIVE, raising=False)  # something to look at
    with MockServer() as server:
        assert server._socket.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)


def test_the_lines_to_paste_are_those_of_powershell_where_no_other_shell_is(monkeypatch: pytest.MonkeyPatch) -> None:
    values = {"FOLLOWUP_BASE_URL": "http://127.0.0.1:4210", "FOLLOWUP_API_KEY": "fu_test_mock"}
    monkeypatch.setenv("SHELL", "/bin/sh")
    monkeypatch.setenv("PSModulePath", "")  # Git Bash has it, too
    assert "  export FOLLOWUP_BASE_URL=http://127.0.0.1:4210 FOLLOWUP_API_KEY=fu_test_mock" in serving._hints(values)
    monkeypatch.delenv("SHELL")
    lines = serving._hints(values)
    assert "  $env:FOLLOWUP_BASE_URL = 'http://127.0.0.1:4210'; $env:FOLLOWUP_API_KEY = 'fu_test_mock'" in lines
