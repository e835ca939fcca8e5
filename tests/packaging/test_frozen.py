"""Programs that PyInstaller and its like freeze: what they look for is what this package imports."""

import subprocess
import sys
from modulefinder import ModuleFinder
from pathlib import Path

import pytest
from support.pages import ROOT
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


@pytest.mark.nightly
def test_a_frozen_program_works(tmp_path: Path) -> None:
    program = tmp_path / "app.py"
    program.write_text(PROGRAM, encoding="utf-8")
    build = [sys.executable, "-m", "PyInstaller", "--onedir", "--noconfirm", "--log-level", "ERROR", "--name", "app"]
    subprocess.run([*build, str(program)], cwd=tmp_path, check=True, timeout=600)
    with MockServer() as server:
        arguments = [server.url, server.api_key, str(tmp_path)]
        done = subprocess.run(
            [tmp_path / "dist" / "app" / "app", *arguments], capture_output=True, text=True, timeout=60, check=False
        )
    assert (done.stdout, done.stderr) == (PRINTED, "")
