"""``followup-mock dev``: a mock and a program that start and end together."""

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from support.shell import COMMAND_OF_MOCK, clean_environment
from support.systems import needs_signals, stop
from support.terminal import Terminal
from support.waiting import wait_for

PROGRAM = """
import http.server, os, sys, urllib.request
from followup import FollowUp, construct_event

class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        event = construct_event(body, dict(self.headers), os.environ["FOLLOWUP_WEBHOOK_SECRET"])
        self.send_response(204)
        self.end_headers()
        print("received", event.type, flush=True)

server = http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver)
url, key = os.environ["FOLLOWUP_BASE_URL"], os.environ["FOLLOWUP_API_KEY"]
for headers in ({}, {"Authorization": "Bearer " + key}, {}):
    FollowUp().patients.create(phone="+5491155550000")
    server.handle_request()
    urllib.request.urlopen(urllib.request.Request(url + "/_mock/reset", method="POST", headers=headers)).read()
sys.exit(7)
"""
"""A receiver of webhooks, which calls the API, receives a webhook and resets the mock, three times."""

PATIENT = """
import signal, subprocess, sys, time
inner = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); print('ready', flush=True); time.sleep(600)"
child = subprocess.Popen([sys.executable, "-c", inner], stdout=subprocess.PIPE)
def end(number, _):
    print("received", number, flush=True)
    sys.exit(3)
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, end)
child.stdout.readline()
print("child", child.pid, flush=True)
time.sleep(600)
"""
"""A program with a child process, which ends with status 3 after a signal and forgets its child."""


def command(*arguments: str) -> list[str]:
    return [*COMMAND_OF_MOCK, "dev", *arguments]


@pytest.fixture
def port() -> Iterator[int]:
    """A port that is in use."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def values_of(lines: list[str]) -> dict[str, str]:
    return dict(line.strip().partition("=")[::2] for line in lines)


def exists(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_a_program_has_the_variables_and_receives_the_webhooks() -> None:
    with socket.create_server(("127.0.0.1", 0)) as chosen:
        port = chosen.getsockname()[1]
    receiver = f"http://127.0.0.1:{port}/hooks"
    arguments = command("--port", "0", "--receiver", receiver, "--", sys.executable, "-c", PROGRAM, str(port))
    ended = subprocess.run(
        arguments, capture_output=True, text=True, check=False, timeout=120, stdin=subprocess.DEVNULL
    )
    lines = ended.stdout.splitlines()
    assert (ended.returncode, lines[-3:]) == (7, ["received patient.upserted"] * 3), ended.stderr
    values = values_of(lines[:3])
    assert values.keys() == {"FOLLOWUP_BASE_URL", "FOLLOWUP_API_KEY", "FOLLOWUP_WEBHOOK_SECRET"}
    assert "POST /v1/patients" in ended.stderr
    with pytest.raises(httpx.ConnectError):
        httpx.get(values["FOLLOWUP_BASE_URL"], trust_env=False)


@needs_signals
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="this system has no /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_reaches_the_program_and_nothing_is_left_running(number: signal.Signals) -> None:
    arguments = command("--port", "0", "--quiet", "--", sys.executable, "-c", PATIENT)
    with subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        child = int(process.stdout.readline().split()[-1])
        process.send_signal(number)
        assert process.stdout.readline() == f"received {int(number)}\n"
        assert process.wait(60) == 3
    wait_for(lambda: not exists(child))


def test_a_program_on_a_terminal_reads_from_it_and_ctrl_c_reaches_it_once(tmp_path: Path) -> None:
    code = (
        "import signal; count = []; signal.signal(signal.SIGINT, lambda *_: count.append(1)); print('name?')\n"
        "print('hello', input()); input(); print('interrupted', len(count))"
    )
    takes_terminal = (
        "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
    )
    arguments = command("--port", "0", "--quiet", sys.executable, "-c", code)
    with Terminal(
        [sys.executable, "-c", takes_terminal, *arguments], clean_environment() | {"HOME": str(tmp_path)}
    ) as terminal:
        terminal.wait_for(lambda output: "name?" in output)
        terminal.type("Ana\n")
        terminal.wait_for(lambda output: "hello Ana" in output)
        terminal.type("\x03")
        terminal.wait_for(lambda output: "^C" in output)
        terminal.type("\n")
        terminal.wait_for(lambda output: "interrupted 1" in output)
        assert terminal.end() == 0


def test_without_a_program_it_serves_until_ctrl_c() -> None:
    with subprocess.Popen(command("--port", "0"), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        values = values_of([process.stdout.readline() for _ in range(3)])
        url, key = values["FOLLOWUP_BASE_URL"], values["FOLLOWUP_API_KEY"]
        assert httpx.get(f"{url}/v1/account", headers={"Authorization": f"Bearer {key}"}, trust_env=False).is_success
        stop(process, signal.SIGINT)


@pytest.mark.parametrize(
    ("arguments", "status", "problem"),
    [
        (["--receiver", "http://clinic.example"], 2, "--receiver must be an https URL, or an http URL of a loopback "),
        (["--port", "0", "--", "/nowhere/program"], 127, "cannot start /nowhere/program: "),
        (["--port", "0", "--", __file__], 126, f"cannot start {__file__}: "),
        (["--port", "TAKEN"], 1, "cannot listen on 127.0.0.1:TAKEN: --port 0 picks a free port\n"),
    ],
)
def test_what_goes_wrong_is_one_clear_line(port: int, arguments: list[str], status: int, problem: str) -> None:
    words = [each.replace("TAKEN", str(port)) for each in command("--quiet", *arguments)]
    ended = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (status, "", 1)
    assert ended.stderr.startswith("followup-mock: " + problem.replace("TAKEN", str(port)))


def test_two_programs_have_two_mocks() -> None:
    with subprocess.Popen(command(), stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout
        url = first.stdout.readline().strip().partition("=")[2]
        code = "import os; print(os.environ['FOLLOWUP_BASE_URL'])"
        second = subprocess.check_output(command("--quiet", "--", sys.executable, "-c", code), text=True, timeout=60)
        stop(first)
    assert url.startswith("http://127.0.0.1:")
    assert second.strip() not in ("", url)
