"""A day on a clinic's computer: in processes of their own, in a folder whose name has what shells trip over.

Nothing here is about one system, and all of it has failed on Windows, or could: encodings of pipes and files, ends of
lines, zones without a database of the system, long paths, and characters that ``cmd`` gives a meaning.
"""

import asyncio
import json
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest
import sqlalchemy
from support.shell import COMMAND_OF_MOCK, Shell, run_here
from support.waiting import wait_for

from followup import AsyncFollowUp, FollowUp, inbound
from followup.imports import Import
from followup.outbox import Outbox
from followup_mockserver import MockServer

FILE, MAP = "turnos año 2026.csv", "mapa ñ.toml"
RECEIVER = "http://127.0.0.1:9/webhooks?clinic=50%25&name=%C3%B1"
WINDOWS = sys.platform == "win32"
NO_SUCH_KEY = 77


def test_a_night_of_imports(shell: Shell, folder: Path, server: MockServer) -> None:
    proposed = shell.run("import", "init", FILE)
    assert (proposed.returncode, proposed.stderr) == (0, "")
    (folder / "proposal.toml").write_bytes(proposed.stdout.encode())
    assert Import.load(folder / "proposal.toml").map.kind == "appointments"
    here = Shell(server.url, server.api_key, folder)
    here.environment = shell.environment
    assert here.run("outbox", "create-tables").returncode == 0
    checked = here.run("import", "check", FILE, "--map", MAP, "--html", "dudas ñ.html", "--show-personal-data")
    assert (checked.returncode, checked.stderr) == (1, "")  # two rows share a phone
    assert "Ana María Pérez" in (folder / "dudas ñ.html").read_text(encoding="utf-8")
    result = shell.run("import", "run", FILE, "--map", MAP, "--send", "--show-personal-data")
    assert (result.returncode, result.stderr) == (1, "")
    assert "Sent: 46. Rejected: 0. Waiting: 0." in result.stdout
    assert "año 2026" in result.stdout
    verified = shell.run("import", "verify", FILE, "--map", MAP)
    assert (verified.returncode, verified.stderr, verified.stdout.count(" rejected: ")) == (1, "", 2)
    with server.client() as client:
        names = {each.full_name for each in client.patients.list(limit=100)}
    assert {"Ana María Pérez", "Sofía Núñez"} <= names


@contextmanager
def ended_by(key: str, module: str, *arguments: str, shell: Shell) -> Iterator[list[object]]:
    """Run a command, press a key at the end of the block, and wait; yield what then gets its status and its output.

    Only Windows has Ctrl-Break, which process managers press. Elsewhere, another signal stands for it.
    """
    simulated = "" if WINDOWS else "import signal; signal.SIGBREAK = signal.SIGUSR1; "
    command = [sys.executable, "-c", f"{simulated}from {module} import main; main()", *arguments]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    if WINDOWS:
        command = [sys.executable, str(Path(__file__).with_name("press.py")), key, *command]
        pipes["creationflags"] = subprocess.CREATE_NEW_CONSOLE
    ended: list[object] = []
    with subprocess.Popen(command, cwd=shell.directory, env=shell.environment, **pipes) as process:
        try:
            yield ended
            if not WINDOWS:
                process.send_signal(signal.SIGINT if key == "Ctrl-C" else signal.SIGUSR1)
            output, _ = process.communicate(b"\n", timeout=120)
            if WINDOWS and process.returncode == NO_SUCH_KEY:
                pytest.skip(f"this Windows has no {key}")
            ended += [process.returncode, "\n".join(output.decode().splitlines())]
        finally:
            process.kill()


@pytest.mark.parametrize("key", ["Ctrl-C", "Ctrl-Break"])
def test_serve_writes_its_variables_for_a_client_and_ends(key: str, folder: Path, shell: Shell) -> None:
    arguments = ("serve", "--port", "0", "--quiet", "--env-file", "claves ñ.env")
    with ended_by(key, "followup_mockserver.cli", *arguments, shell=shell) as ended:
        waited = run_here("followup-mock", "wait", "--env-file", "claves ñ.env", "--timeout", "60", directory=folder)
        assert waited.returncode == 0, waited.stderr
        content = (folder / "claves ñ.env").read_bytes()
        assert b"\r" not in content
        variables = dict(line.split("=", 1) for line in content.decode().splitlines())
        key, url = variables["FOLLOWUP_API_KEY"], variables["FOLLOWUP_BASE_URL"]
        with FollowUp(api_key=key, base_url=url) as client:
            assert client.patients.create(phone="+5491155550000", full_name="Iñaki Łuç").full_name == "Iñaki Łuç"
    assert ended == [0, ended[1]]


def test_a_relay_ends_at_ctrl_break_and_says_what_it_has_done(folder: Path, shell: Shell) -> None:
    outbox = Outbox(shell.environment["FOLLOWUP_DATABASE_URL"])
    outbox.create_tables()
    with sqlite3.connect(folder / "clínica.db") as connection:
        outbox.record(connection, inbound.patient_upserted(patient={"phone": "+5491155550000", "full_name": "Iñaki"}))
    connection.close()
    with ended_by("Ctrl-Break", "followup.cli", "outbox", "run", shell=shell) as ended:
        wait_for(lambda: outbox.status().sent)
    outbox.close()
    assert ended == [0, "1 sent, 0 duplicates, 0 rejected"]


def test_a_relay_whose_database_is_away_looks_for_signals_twice_a_second(server: MockServer) -> None:
    """On Windows, before Python 3.14, the handler of a signal runs only when a wait has ended."""
    waits = []

    class Stop(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waits.append(timeout)
            if len(waits) == 9:
                self.set()
            return self.is_set()

    def connect() -> NoReturn:
        raise sqlite3.OperationalError("unable to open database file")

    with server.client() as client:
        Outbox(sqlalchemy.create_engine("sqlite://", creator=connect)).run(client, Stop())
    assert len(waits) == 9
    assert all(0 < each <= 0.5 for each in waits if each is not None)


def test_dev_runs_a_program_with_the_variables_and_has_its_status(folder: Path, shell: Shell) -> None:
    program = """
import sys
from followup import FollowUp

with FollowUp() as client:
    [endpoint] = client.webhook_endpoints.list()
sys.stdout.buffer.write(endpoint.url.encode())
sys.exit(9)
"""
    (folder / "programa ñ & 50%.py").write_text(program, encoding="utf-8")
    command = [*COMMAND_OF_MOCK, "dev", "--port", "0", "--quiet", "--receiver", RECEIVER]
    command += ["--", sys.executable, "programa ñ & 50%.py"]
    done = subprocess.run(command, cwd=folder, env=shell.environment, capture_output=True, timeout=120, check=False)
    assert (done.stdout.decode(), done.stderr, done.returncode) == (RECEIVER, b"", 9)


def test_an_url_passes_through_the_command_line_and_a_pipe_as_it_is(shell: Shell) -> None:
    [created] = shell.json("webhook-endpoints", "create", "--url", RECEIVER, "--enabled-events", "*")
    assert created["url"] == RECEIVER
    listed = shell.run("webhook-endpoints", "list", "--json")
    assert [json.loads(line)["url"] for line in listed.stdout.splitlines()] == [RECEIVER]


def test_many_calls_at_once_in_the_event_loop_of_the_system(server: MockServer) -> None:
    server.reset()

    async def main() -> tuple[str, int]:
        async with AsyncFollowUp(api_key=server.api_key, base_url=server.url) as client:
            creating = [client.patients.create(phone=f"+5491155550{each:03}") for each in range(40)]
            lost = asyncio.ensure_future(client.patients.list())
            made = await asyncio.gather(*creating)
            lost.cancel()
            found = {each.id async for each in client.patients.list(limit=7)}
            assert found == {each.id for each in made}
            return type(asyncio.get_running_loop()).__name__, len(found)

    name, count = asyncio.run(main())
    assert count == 40
    assert name == ("ProactorEventLoop" if WINDOWS else name)


def test_paths_that_are_longer_than_windows_once_allowed(tmp_path: Path, folder: Path) -> None:
    """Windows has long paths for programs that know them, as Python does, once its registry allows them."""
    deep = tmp_path.joinpath(*("Consultorio de Clínica Médica y Pediatría",) * 7)
    assert len(str(deep)) > 260
    try:
        deep.mkdir(parents=True)
        (deep / FILE).write_bytes((folder / FILE).read_bytes())
    except OSError:
        if not WINDOWS:
            raise
        pytest.skip("long paths are switched off on this Windows (LongPathsEnabled)")
    (deep / MAP).write_bytes((folder / MAP).read_bytes())
    outbox = Outbox(f"sqlite:///{deep / 'clínica.db'}")
    outbox.create_tables()
    assert len(Import.load(deep / MAP).run(deep / FILE, outbox).events) == 46
    outbox.close()
