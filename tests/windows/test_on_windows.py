"""What only Windows has: consoles with Ctrl-C for all of their programs, files that nobody else may open, ``cmd``."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.pages import read
from support.shell import COMMAND, COMMAND_OF_MOCK, Shell

from followup.outbox import Outbox

PRESS = Path(__file__).with_name("press.py")
FILE, MAP = "turnos año 2026.csv", "mapa ñ.toml"

WAITS = """
import time
print("ready", flush=True)
try:
    time.sleep(60)
except KeyboardInterrupt:
    raise SystemExit(9)
"""


@pytest.mark.parametrize(
    ("command", "ready", "status"),
    [
        ([*COMMAND, "outbox", "run"], "working in", 130),
        ([*COMMAND_OF_MOCK, "serve", "--port", "0"], "Ctrl-C stops it", 0),
        ([*COMMAND_OF_MOCK, "dev", "--port", "0", "--", sys.executable, "-c", WAITS], "ready", 9),
        ([*COMMAND_OF_MOCK, "requests", "--follow"], "GET", 0),
    ],
    ids=["outbox run", "serve", "dev", "requests"],
)
def test_ctrl_c_ends_a_command(command: list[str], ready: str, status: int, shell: Shell) -> None:
    Outbox(shell.environment["FOLLOWUP_DATABASE_URL"]).create_tables()
    assert shell.run("account", "retrieve").returncode == 0
    with subprocess.Popen(
        [sys.executable, str(PRESS), "Ctrl-C", *command],
        cwd=shell.directory,
        env=shell.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        creationflags=subprocess.CREATE_NEW_CONSOLE,
    ) as process:
        assert process.stdout is not None
        while ready not in (line := process.stdout.readline().decode()):
            assert line, "it has ended"
        output, _ = process.communicate(b"\n", timeout=120)
    assert process.returncode == status, output
    assert b"Traceback" not in output


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Open a file as antivirus programs and backups do: nobody else may open it."""
    import _winapi

    everything, nobody = _winapi.GENERIC_READ | _winapi.GENERIC_WRITE, 0
    handle = _winapi.CreateFile(str(file), everything, nobody, 0, _winapi.OPEN_EXISTING, 0, 0)
    try:
        yield
    finally:
        _winapi.CloseHandle(handle)


def test_files_that_another_program_has_locked_are_one_line_and_stay_as_they_are(shell: Shell, folder: Path) -> None:
    check = ("import", "check", FILE, "--map", MAP, "--html", "dudas.html")
    (folder / "dudas.html").write_text("before", encoding="utf-8")
    with locked(folder / "dudas.html"):
        assert re.search("^followup: cannot write dudas.html: .+\n$", shell.error(*check))
    assert (folder / "dudas.html").read_text(encoding="utf-8") == "before"
    with locked(folder / FILE):
        assert re.search(f"^followup: cannot read {FILE}: .+\n$", shell.error(*check))
    with locked(folder / MAP):
        assert re.search(f"^followup: cannot read {MAP}: .+\n$", shell.error(*check))
    outbox = Outbox(shell.environment["FOLLOWUP_DATABASE_URL"])
    outbox.create_tables()
    outbox.close()
    with locked(folder / "clínica.db"):
        error = shell.error("import", "run", FILE, "--map", MAP)
    assert re.search("^followup: the database .*clínica.db failed: .+\n$", error), error
    assert outbox.status().waiting == 0
    outbox.close()


def test_the_files_of_commands_on_the_page_work(shell: Shell, folder: Path, tmp_path: Path) -> None:
    settings, run, _, _ = re.findall("^```bat\n(.*?)^```$", read("how-to/windows.md"), re.MULTILINE | re.DOTALL)
    base = tmp_path / "50% & more"  # the cmd of Wine does not know UTF-8
    base.mkdir()
    database = (base / "clinic.db").as_posix().replace("%", "%%")
    for name, value in {
        "BASE_URL": shell.environment["FOLLOWUP_BASE_URL"],
        "API_KEY": shell.environment["FOLLOWUP_API_KEY"],
        "DATABASE_URL": f"sqlite:///{database}",
    }.items():
        settings, count = re.subn(f'"FOLLOWUP_{name}=.*"', f'"FOLLOWUP_{name}={value}"', settings)
        assert count == 1
    run = run.replace(r".venv\Scripts\followup", subprocess.list2cmdline(COMMAND))
    clinic = tmp_path / "Clínica ñ"  # the cmd of Wine takes a % in the name of its own folder for a variable
    (clinic / "export").mkdir(parents=True)
    for name, text in {"settings.cmd": settings, "import.cmd": run}.items():
        (clinic / name).write_text(text, encoding="utf-8", newline="\r\n")
    (folder / FILE).rename(clinic / "export" / "turnos.csv")
    (folder / MAP).rename(clinic / "turnos.toml")
    Outbox(f"sqlite:///{base / 'clinic.db'}").create_tables()
    kept = {name: value for name, value in shell.environment.items() if not name.startswith("FOLLOWUP_")}
    done = subprocess.run([str(clinic / "import.cmd")], env=kept, capture_output=True, timeout=300, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, b"", b"")
    assert "Sent: 46." in (clinic / "import.log").read_text(encoding="utf-8")
