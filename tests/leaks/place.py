"""Where scenarios run: calls that fail, with personal data, keys and passwords in what they send, get and store."""

import asyncio
import re
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from sqlalchemy import Engine
from support.databases import engine_of
from support.responses import patient
from support.server import ScriptedServer, reply
from support.webhook_events import body_of, headers_of
from telemetry.planting import DOCUMENT, ECHO, KEY, MARK, MARKS, PHONE

from followup import AsyncFollowUp, FollowUp
from followup.inbox import Inbox
from followup.outbox import Outbox

PASSWORD = "hunter2"
PLANTED = re.compile(rf"{MARKS.pattern}|{PASSWORD}", re.IGNORECASE)
SECRET = f"whsec_{MARK}"
EVENT: Any = {"id": "e1", "type": "patient.upserted", "data": {"patient": {"phone": PHONE, "fullName": ECHO}}}
DONE = reply(200, patient(fullName=ECHO, phone=PHONE))


class Place:
    """A folder with a SQLite file, an empty schema of PostgreSQL, and a server that follows a script.

    The file is that of another place, with tables and events; without one it is made.
    """

    def __init__(self, folder: Path, server: ScriptedServer, postgresql: str, other: "Place | None" = None) -> None:
        self.folder = folder
        self.server = server
        self.postgresql = postgresql
        self.url = f"sqlite:///{folder}/clinic.db"
        self.stack = ExitStack()
        folder.mkdir()
        self._has_tables = other is not None
        if other is not None:
            shutil.copy(other.folder / "clinic.db", folder)

    def client(self, *script: Any, **options: Any) -> FollowUp:
        """Return a client of the server, which is closed at the end."""
        self.server.script = list(script)
        client = FollowUp(**{"api_key": KEY, "base_url": self.server.url, "max_retries": 0, **options})
        self.stack.callback(client.close)
        return client

    def create(self, *script: Any, **options: Any) -> None:
        """Make one call."""
        self.client(*script, **options).patients.create(phone=PHONE, full_name=ECHO, dni=DOCUMENT)

    def create_async(self, *script: Any, within: float, **options: Any) -> None:
        """Make one call that the user ends."""
        self.server.script = list(script)

        async def run() -> None:
            async with AsyncFollowUp(api_key=KEY, base_url=self.server.url, max_retries=0, **options) as client:
                async with asyncio.timeout(within):
                    await client.patients.create(phone=PHONE, full_name=ECHO)

        asyncio.run(run())

    def engine(self) -> Engine:
        """Return an Engine of the user, for the SQLite file."""
        return engine_of(self.url)

    def outbox(self, url: str | None = None, **options: Any) -> Outbox:
        """Return an outbox with its tables and an event."""
        outbox = Outbox(url or self.url, **options)
        self.stack.callback(outbox.close)
        if url or options or not self._has_tables:
            outbox.create_tables()
            with engine_of(url or self.url).begin() as connection:
                outbox.record(connection, EVENT)
        return outbox

    def inbox(self, **options: Any) -> Inbox:
        """Return an inbox with its tables and an event."""
        inbox = Inbox(self.url, secret=SECRET, **options)
        if not self._has_tables:
            inbox.create_tables()
            assert self.deliver(inbox) == 204
        return inbox

    def deliver(self, inbox: Inbox, id: str = "whd_1", **fields: Any) -> int:
        """Let an inbox receive an event, and return the status."""
        body = body_of(id, data={"patient": {"fullName": ECHO, "phone": PHONE}}, **fields)
        return inbox.receive(body, headers_of(body, SECRET))

    def file(self, name: str, content: bytes) -> Path:
        """Write a file."""
        path = self.folder / name
        path.write_bytes(content)
        return path


Scenario = Callable[[Place], object]
