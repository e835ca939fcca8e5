"""What Windows and macOS lack or do otherwise, simulated: there are no forks, no polls, and other ends of lines."""

import _pyio
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

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


def test_dev_ends_with_its_program_and_ends_it(tmp_path: Path) -> None:
    code = "import os; del os.killpg; from followup_mockserver.cli import main; main()"
    command = [sys.executable, "-c", code, "dev"]
    ends = [*command, "--port", "0", "--quiet", "--", sys.executable, "-c", "raise SystemExit(5)"]
    assert subprocess.run(ends, check=False, timeout=60, env={**os.environ, "HOME": str(tmp_path)}).returncode == 5
    sleeps = [*ends[:-1], "import time; print('ready', flush=True); time.sleep(600)"]
    with subprocess.Popen(sleeps, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        process.terminate()
        assert process.stdout.read() == ""  # the program has ended, too
        assert process.wait(60) == 128 + signal.SIGTERM


def test_a_shell_can_read_a_file_that_was_written_on_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "linesep", "\r\n")
    monkeypatch.setattr(os, "fdopen", _pyio.open)  # which reads os.linesep, where the one in C is compiled with it
    write_private_file(tmp_path / "mock.env", "FOLLOWUP_API_KEY=a\n")
    monkeypatch.undo()
    assert (tmp_path / "mock.env").read_bytes() == b"FOLLOWUP_API_KEY=a\n"


def test_a_file_that_another_program_has_open_on_windows_stays_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def replace(*_: object) -> None:
        raise PermissionError(13, "The process cannot access the file because it is being used by another process")

    file = tmp_path / "mock.env"
    file.write_text("before")
    monkeypatch.setattr(Path, "replace", replace)
    with pytest.raises(PermissionError):
        write_private_file(file, "after")
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("mock.env", "before")]


def test_two_mocks_cannot_share_a_port_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """There, SO_REUSEADDR lets a second process listen on a port that is in use."""
    monkeypatch.setattr(socket, "SO_EXCLUSIVEADDRUSE", socket.SO_KEEPALIVE, raising=False)  # something to look at
    with MockServer() as server:
        assert server._socket.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)


def test_the_lines_to_paste_are_those_of_powershell_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    values = {"FOLLOWUP_BASE_URL": "http://127.0.0.1:4210", "FOLLOWUP_API_KEY": "fu_test_mock"}
    assert "  export FOLLOWUP_BASE_URL=http://127.0.0.1:4210 FOLLOWUP_API_KEY=fu_test_mock" in serving._hints(values)
    monkeypatch.setattr(sys, "platform", "win32")
    lines = serving._hints(values)
    monkeypatch.undo()
    assert "  $env:FOLLOWUP_BASE_URL = 'http://127.0.0.1:4210'; $env:FOLLOWUP_API_KEY = 'fu_test_mock'" in lines
