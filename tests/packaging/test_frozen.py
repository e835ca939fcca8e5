"""Programs that PyInstaller and its like freeze: what they look for is what this package imports."""

import os
import re
import shutil
import subprocess
import sys
from modulefinder import ModuleFinder
from pathlib import Path

import pytest
from support.pages import ROOT, read
from support.webhook_events import SECRET

from followup_mockserver import MockServer

PROGRAM = f"""
import asyncio, pathlib, sqlite3, sys, time
from followup import AsyncFollowUp, FollowUp, WebhookSignatureError, inbound, verify_signature
from followup.inbox import Inbox
from followup.outbox import Outbox
from followup.webhooks import SIGNATURE_HEADER, TIMESTAMP_HEADER, sign

url, key, folder = sys.argv[1:]
database = f"sqlite:///{{pathlib.Path(folder, 'clinic.db').as_posix()}}"
outbox, inbox = Outbox(database), Inbox(database, secret={SECRET!r})
outbox.create_tables()
inbox.create_tables()
seen = []
inbox.otherwise(lambda received: seen.append(received.event.patient))

async def count():
    async with AsyncFollowUp(api_key=key, base_url=url) as client:
        return len([each async for each in client.patients.list()])

with FollowUp(api_key=key, base_url=url) as client:
    with sqlite3.connect(pathlib.Path(folder, "clinic.db")) as connection:
        outbox.record(connection, inbound.patient_upserted(patient={{"phone": "+5491155550000", "full_name": "Ana"}}))
    print(client.account.retrieve().object, outbox.drain(client).sent, asyncio.run(count()))
try:
    verify_signature(b"", {{}}, {SECRET!r})
except WebhookSignatureError as error:
    print(error.reason)
body = (
    b'{{"id":"whd_1","object":"event","type":"webhook.ping","apiVersion":"2026-09-28","livemode":false,'
    b'"occurredAt":"2026-01-01T00:00:00.000Z","ref":"we_1","data":{{}}}}'
)
now = int(time.time())
headers = {{SIGNATURE_HEADER: sign(body, {SECRET!r}, now), TIMESTAMP_HEADER: str(now)}}
print(inbox.receive(body, headers), inbox.drain().done)
"""
PRINTED = "account 1 1\nmissing_header\n204 1\n"

LOADED_BY_COMMANDS = {"followup._for_mockserver", "followup.imports.proposal"}
"""Modules that only the commands and the mock load; a program that freezes these has to name them itself."""


def test_each_module_is_found_by_its_import() -> None:
    finder = ModuleFinder(path=[str(ROOT / "sdk")])
    for name in ("followup", "followup.imports", "followup.inbound", "followup.inbox", "followup.outbox"):
        finder.import_hook(name)
    files = [each.relative_to(ROOT / "sdk").with_suffix("") for each in (ROOT / "sdk" / "followup").rglob("*.py")]
    names = {".".join(each.parts).removesuffix(".__init__") for each in files} - LOADED_BY_COMMANDS
    by_name = ("followup.cli", "followup.django", "followup.fastapi")  # which others find by their names
    assert {name for name in names if not name.startswith(by_name)} - {*finder.modules} == set()


def freeze(options: str, folder: Path) -> None:
    """Run PyInstaller in a folder."""
    command = [sys.executable, "-m", "PyInstaller", "--noconfirm", "--log-level", "ERROR", *options.split()]
    subprocess.run(command, cwd=folder, check=True, timeout=3600)


def run(program: Path, *arguments: str, **environment: str) -> tuple[int, str, str]:
    """Run a program, and return its status, its output and its errors."""
    done = subprocess.run(
        [program, *arguments], cwd=program.parent, env={**os.environ, **environment}, capture_output=True, timeout=300
    )
    return done.returncode, *("\n".join(each.decode().splitlines()) for each in (done.stdout, done.stderr))


@pytest.mark.nightly
def test_a_frozen_program_works(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(PROGRAM, encoding="utf-8")
    freeze("--onedir app.py", tmp_path)
    with MockServer() as server:
        ended = run(tmp_path / "dist" / "app" / "app", server.url, server.api_key, str(tmp_path))
    assert ended == (0, PRINTED, "")


@pytest.mark.nightly
def test_the_import_is_one_file_as_the_page_makes_it(tmp_path: Path) -> None:
    for each in ("followup_import.py", "turnos.csv", "turnos.toml"):
        shutil.copy(ROOT / "examples/import" / each, tmp_path)
    [options] = re.findall(r"\\pyinstaller ((?:.+`\n)*.+)", read("how-to/windows.md"))
    freeze(options.replace("`\n", ""), tmp_path)
    [program] = (tmp_path / "dist").iterdir()  # without its extension on Windows
    exported = [str(tmp_path / each) for each in ("turnos.csv", "turnos.toml")]
    with MockServer(start_time="2030-05-01T12:00:00Z") as server:
        variables = {"FOLLOWUP_BASE_URL": server.url, "FOLLOWUP_API_KEY": server.api_key, "PYTHONTZPATH": ""}
        variables["FOLLOWUP_DATABASE_URL"] = f"sqlite:///{(tmp_path / 'clinic.db').as_posix()}"
        for kind in ("outbox", "inbox"):
            assert run(program, kind, "create-tables", **variables) == (0, "OK: the tables exist.", "")
        status, proposed, errors = run(program, "import", "init", exported[0], **variables)
        assert (status, errors) == (0, "")
        assert 'zone = "America/Argentina/Buenos_Aires"' in proposed
        status, output, errors = run(program, "import", "run", exported[0], "--map", exported[1], "--send", **variables)
        assert (status, output.splitlines()[-1], errors) == (1, "Sent: 46. Rejected: 0. Waiting: 0.", "")
        status, output, errors = run(program, "outbox", "run", "--until-empty", **variables)
        assert (status, output) == (0, "0 sent, 0 duplicates, 0 rejected"), errors
