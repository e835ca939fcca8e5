"""What nobody closes ends with the process, without a word: clients, iterations, stores and mocks in modules."""

import subprocess
import sys
from pathlib import Path

APPLICATION = """
import asyncio, sqlite3, sys

# What C code holds outlives the collection at the end of the process. Modules are cleared in the reverse order of their
# imports: those of followup before this one, and only then what is kept here ends.
connection = sqlite3.connect(":memory:")
connection.create_function("keep", 0, lambda this=sys.modules[__name__]: this)
kept, loop = [], asyncio.new_event_loop()
DATA = {"patient": {"phone": "+54 9 11 5555-0000"}}
EVENTS = [{"id": each, "type": "patient.upserted", "data": DATA} for each in ("one", "two")]


async def use_async(client):
    await client.with_options(timeout=30).patients.list()
    results = client.events.send_all(EVENTS)
    kept.append((results, await anext(results)))


def use(database):
    import followup, followup.inbox, followup.outbox, followup_mockserver

    server = followup_mockserver.MockServer()
    server.start()
    options = {"base_url": server.url, "api_key": server.api_key}
    client, derived_only, asynchronous = (
        followup.FollowUp(**options), followup.FollowUp(**options), followup.AsyncFollowUp(**options)
    )
    derived_only.with_options(timeout=30).patients.list()
    loop.run_until_complete(use_async(asynchronous))
    results, items = client.events.send_all(EVENTS), iter(client.doctors.list(limit=1))
    outbox, inbox = followup.outbox.Outbox(database), followup.inbox.Inbox(database, secret="whsec_of_a_test")
    outbox.create_tables(), inbox.create_tables()
    service = followup_mockserver.MockService()
    kept.extend([followup, followup_mockserver, server, service, client, derived_only, asynchronous, outbox, inbox])
    kept.extend([results, next(results), items, next(items), outbox.drain(client), inbox.drain(), service.client()])
    kept[-1].patients.list()
"""


def test_what_nobody_closes_ends_silently(tmp_path: Path) -> None:
    tmp_path.joinpath("application.py").write_text(APPLICATION, encoding="utf-8")
    program = f"import application; application.use('sqlite:///{tmp_path.as_posix()}/clinic.db'); print('done')"
    command = [sys.executable, "-W", "default", "-c", program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
