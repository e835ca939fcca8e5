"""A correct integration with FastAPI and SQLAlchemy's asynchronous engine, with the outbox and the inbox."""

import asyncio
from datetime import datetime
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from followup import FollowUp
from followup.inbox import Inbox, Received
from followup.outbox import Outbox
from followup_mockserver.simulation import Booking
from support.integrations.stores import Recording


class FastAPIStores(Recording):
    """A task sends the events of the outbox, and another one does the work of the inbox."""

    async def start(self, client: FollowUp, folder: Path) -> None:
        self.client = client
        path = folder / "clinic.db"
        self.engine = create_async_engine(f"sqlite+aiosqlite:///{path}")
        self.outbox = Outbox(f"sqlite:///{path}")
        self.inbox = Inbox(f"sqlite:///{path}", secret=self.secret)
        self.inbox.otherwise(self.handle)
        self.outbox.create_tables()
        self.inbox.create_tables()
        async with self.engine.begin() as connection:
            columns = "external_id TEXT PRIMARY KEY, start_at TEXT"
            await connection.execute(text(f"CREATE TABLE IF NOT EXISTS bookings ({columns})"))
            await connection.execute(text("CREATE TABLE IF NOT EXISTS work (event_id TEXT)"))
        self.changed = asyncio.Event()
        self.relay = asyncio.create_task(self.send())

    async def send(self) -> None:
        while True:
            await self.changed.wait()
            self.changed.clear()
            await asyncio.to_thread(self.outbox.drain, self.client)

    def receiver(self) -> Any:
        app = FastAPI()
        app.add_route("/webhooks", self.inbox.asgi_app, methods=["POST"])
        return app

    def handle(self, received: Received) -> None:
        received.connection.execute(text("INSERT INTO work VALUES (:id)"), {"id": received.event.id})

    async def commit(self, booking: Booking, start_at: datetime | None, event: Any) -> None:
        async with self.engine.begin() as connection:
            values = {"id": booking.external_id, "start_at": start_at and start_at.isoformat()}
            await connection.execute(text("INSERT OR REPLACE INTO bookings VALUES (:id, :start_at)"), values)
            await self.outbox.record_async(connection, event)
        self.changed.set()

    async def work(self) -> None:
        await asyncio.to_thread(self.outbox.drain, self.client)
        await asyncio.to_thread(self.inbox.drain)

    async def bookings(self) -> dict[str, datetime | None]:
        async with self.engine.connect() as connection:
            rows = await connection.execute(text("SELECT external_id, start_at FROM bookings"))
            return {external_id: start_at and datetime.fromisoformat(start_at) for external_id, start_at in rows}

    async def handled(self) -> list[str]:
        async with self.engine.connect() as connection:
            return list(await connection.scalars(text("SELECT event_id FROM work")))
