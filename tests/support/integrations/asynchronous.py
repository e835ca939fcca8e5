"""Asynchronous integrations: a correct one with asyncio and aiosqlite, and others with one race each."""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import aiosqlite
import httpx

from followup import FollowUp, FollowUpError, WebhookEvent, WebhookSignatureError, construct_event
from followup_mockserver.simulation import Booking, Clinic

URL = "https://clinic.example/webhooks"

SCHEMA = """
CREATE TABLE IF NOT EXISTS bookings (external_id TEXT PRIMARY KEY, start_at TEXT);
CREATE TABLE IF NOT EXISTS calls (
    seq INTEGER PRIMARY KEY, external_id TEXT, kind TEXT, arguments TEXT, key TEXT, is_done INTEGER DEFAULT 0
);
CREATE TABLE IF NOT EXISTS events (id TEXT PRIMARY KEY, external_id TEXT, is_done INTEGER DEFAULT 0);
CREATE TABLE IF NOT EXISTS work (event_id TEXT);
"""

Call = tuple[int, str, str, str, str]


class Awaiting(Clinic):
    """Stores calls and events in SQLite, and has one task that makes the calls and one that does the work."""

    receiver_url = URL

    async def start(self, client: FollowUp, folder: Path) -> None:
        self.database = await aiosqlite.connect(folder / "clinic.db")
        await self.database.executescript(SCHEMA)
        self.writing, self.sending, self.handling = asyncio.Lock(), asyncio.Lock(), asyncio.Lock()
        self.changed = asyncio.Event()
        self.arrived = asyncio.Event()
        self.tasks = {
            asyncio.create_task(self.repeat(self.send_all, self.changed), name="sender"),
            asyncio.create_task(self.repeat(self.handle_all, self.arrived), name="handler"),
        }

    async def repeat(self, job: Any, event: asyncio.Event) -> None:
        while True:
            event.clear()
            await job()
            try:
                async with asyncio.timeout(600):
                    await event.wait()
            except TimeoutError:
                continue

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """One connection has one transaction, so one task at a time writes."""
        async with self.writing:
            try:
                yield
                await self.database.commit()
            except BaseException:
                await self.database.rollback()
                raise

    async def rows(self, sql: str, *values: object) -> list[Any]:
        async with self.database.execute(sql, values) as cursor:
            return list(await cursor.fetchall())

    # --- what a person does ----------------------------------------------------------------------------------------

    async def book(self, booking: Booking) -> None:
        patient = {"phone": booking.phone, "full_name": booking.full_name}
        arguments = {"patient": patient, "start_at": booking.start_at.isoformat()}
        await self.change(booking, booking.start_at, "create", arguments)

    async def reschedule(self, booking: Booking) -> None:
        await self.change(booking, booking.start_at, "update", {"start_at": booking.start_at.isoformat()})

    async def cancel(self, booking: Booking) -> None:
        await self.change(booking, None, "cancel", {})

    async def change(self, booking: Booking, start_at: datetime | None, kind: str, arguments: dict[str, Any]) -> None:
        async with self.transaction():
            await self.believe(booking.external_id, start_at and start_at.isoformat())
            await self.intend(booking.external_id, kind, json.dumps(arguments))
        self.changed.set()

    async def believe(self, external_id: str, start_at: str | None) -> None:
        await self.database.execute("INSERT OR REPLACE INTO bookings VALUES (?, ?)", (external_id, start_at))

    async def intend(self, external_id: str, kind: str, arguments: str) -> None:
        values = (external_id, kind, arguments, str(uuid.uuid4()))
        await self.database.execute("INSERT INTO calls (external_id, kind, arguments, key) VALUES (?, ?, ?, ?)", values)

    async def bookings(self) -> dict[str, datetime | None]:
        rows = await self.rows("SELECT external_id, start_at FROM bookings")
        return {external_id: start_at and datetime.fromisoformat(start_at) for external_id, start_at in rows}

    # --- calls -----------------------------------------------------------------------------------------------------

    async def work(self) -> None:
        await self.send_all()
        await self.handle_all()

    async def waiting_calls(self) -> list[Call]:
        """Return the next call of each booking."""
        sql = "SELECT min(seq), external_id, kind, arguments, key FROM calls WHERE NOT is_done GROUP BY external_id"
        return await self.rows(sql)

    async def send_all(self) -> None:
        async with self.sending:
            while True:
                results = [await self.send(call) for call in await self.waiting_calls()]
                if not any(results):
                    return

    async def send(self, call: Call) -> bool:
        """Make a call, and return whether it is done."""
        try:
            await self.make(call)
        except FollowUpError:
            return False
        await self.finish(call)
        return True

    async def make(self, call: Call) -> None:
        _, external_id, kind, text, key = call
        arguments = json.loads(text)
        if kind == "create":
            await self.async_client.appointments.create(external_id=external_id, idempotency_key=key, **arguments)
            return
        [appointment] = [each async for each in self.async_client.appointments.list(external_id=external_id)]
        if kind == "cancel":
            await self.async_client.appointments.cancel(appointment.id, idempotency_key=key)
        else:
            await self.async_client.appointments.update(appointment.id, **arguments)

    async def finish(self, call: Call) -> None:
        async with self.transaction():
            await self.database.execute("UPDATE calls SET is_done = 1 WHERE seq = ?", (call[0],))

    # --- webhooks --------------------------------------------------------------------------------------------------

    async def receiver(self) -> Any:
        return self.receive

    async def receive(self, request: httpx.Request) -> httpx.Response:
        try:
            event = construct_event(request.content, request.headers, self.secret)
        except WebhookSignatureError:
            return httpx.Response(400)
        await self.accept(event)
        return httpx.Response(204)

    async def accept(self, event: WebhookEvent) -> None:
        appointment = event.appointment
        async with self.transaction():
            values = (event.id, appointment and appointment.external_id)
            await self.database.execute("INSERT OR IGNORE INTO events (id, external_id) VALUES (?, ?)", values)
        self.arrived.set()

    async def handle_all(self) -> None:
        async with self.handling:
            for event_id, external_id in await self.rows("SELECT id, external_id FROM events WHERE NOT is_done"):
                await self.handle(event_id, external_id)

    async def handle(self, event_id: str, external_id: str | None) -> None:
        async with self.transaction():
            await self.database.execute("INSERT INTO work VALUES (?)", (event_id,))
            await self.database.execute("UPDATE events SET is_done = 1 WHERE id = ?", (event_id,))

    async def handled(self) -> list[str]:
        return [event_id for (event_id,) in await self.rows("SELECT event_id FROM work")]


# --- races -----------------------------------------------------------------------------------------------------------


class DrainsTwice(Awaiting):
    """Two workers drain one list: the slower one repeats a call after a later one of the same booking."""

    async def send_all(self) -> None:
        while any([await self.send(call) for call in await self.waiting_calls()]):
            pass


class SendsAtTheSameTime(Awaiting):
    """Makes all waiting calls at the same time: a later one overtakes an earlier one of the same booking."""

    async def waiting_calls(self) -> list[Call]:
        return await self.rows("SELECT seq, external_id, kind, arguments, key FROM calls WHERE NOT is_done")

    async def send_all(self) -> None:
        async with self.sending:
            await asyncio.gather(*[self.send(call) for call in await self.waiting_calls()], return_exceptions=True)


class ForgetsThatItWasCancelled(Awaiting):
    """Notes that a call is under way, so that nobody else makes it; after a timeout, it is so for ever."""

    async def start(self, client: FollowUp, folder: Path) -> None:
        self.under_way: set[int] = set()
        await super().start(client, folder)

    async def send(self, call: Call) -> bool:
        if call[0] in self.under_way:
            return False
        self.under_way.add(call[0])
        try:
            async with asyncio.timeout(1):
                is_done = await super().send(call)
        except TimeoutError:
            return False
        self.under_way.remove(call[0])
        return is_done


class FiresAndForgets(Awaiting):
    """Makes each call in a task that nobody waits for."""

    async def intend(self, external_id: str, kind: str, arguments: str) -> None:
        call = (0, external_id, kind, arguments, str(uuid.uuid4()))
        self.tasks.add(asyncio.create_task(self.make(call)))


class HandlesAfterLooking(Awaiting):
    """Looks whether the work was done, asks the service, and does it, in a task for each delivery."""

    async def accept(self, event: WebhookEvent) -> None:
        await super().accept(event)
        self.tasks.add(asyncio.create_task(self.handle(event.id, None)))

    async def handle(self, event_id: str, external_id: str | None) -> None:
        if not await self.rows("SELECT 1 FROM events WHERE id = ? AND is_done", event_id):
            await self.async_client.account.retrieve()
            await super().handle(event_id, external_id)


class LosesUpdates(Awaiting):
    """Keeps the bookings in one document, which two tasks read, change and write without a lock."""

    async def handle(self, event_id: str, external_id: str | None) -> None:
        rows = await self.rows("SELECT external_id, start_at FROM bookings")
        await self.async_client.account.retrieve()
        async with self.transaction():
            for each, start_at in rows:
                await self.believe(each, start_at)
        await super().handle(event_id, external_id)


class WaitsForItself(Awaiting):
    """Takes two locks in different orders, so two tasks can wait for each other for ever."""

    async def send_all(self) -> None:
        async with self.sending, self.handling:
            for call in await self.waiting_calls():
                await self.send(call)

    async def handle_all(self) -> None:
        async with self.handling, self.sending:
            for event_id, external_id in await self.rows("SELECT id, external_id FROM events WHERE NOT is_done"):
                await self.handle(event_id, external_id)
