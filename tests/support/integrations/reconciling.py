"""A correct integration without any queue: it compares what it wants with what is at the service, asynchronously."""

import asyncio
from datetime import datetime
from typing import Any

import httpx
from fastapi import FastAPI, Request, Response

from followup import Appointment
from support.plain_clinic import PlainClinic


class Reconciling(PlainClinic):
    """The wanted bookings in a JSON file, asynchronous calls, and an ASGI application as the receiver."""

    def send_changes(self) -> None:
        asyncio.run(self.reconcile())

    async def reconcile(self) -> None:
        found = {each.external_id: each for each in await self.appointments()}
        for external_id, start_at in self.bookings().items():
            await self.reconcile_one(external_id, start_at, found.get(external_id))

    async def appointments(self) -> list[Appointment]:
        return [each async for each in self.async_client.appointments.list(limit=3)]

    async def reconcile_one(self, external_id: str, start_at: datetime | None, found: Appointment | None) -> None:
        appointments = self.async_client.appointments
        if start_at is None:
            if found is not None and found.status != "cancelled":
                await appointments.cancel(found.id)
        elif found is None:
            patient = self.state["bookings"][external_id]["patient"]
            await appointments.create(patient=patient, start_at=start_at, external_id=external_id)
        elif found.start_at != start_at:
            await appointments.update(found.id, start_at=start_at)

    def receiver(self) -> Any:
        app = FastAPI()

        @app.post("/webhooks")
        async def receive(request: Request) -> Response:
            received = httpx.Request("POST", "", headers=request.headers.raw, content=await request.body())
            return Response(status_code=self.receive(received).status_code)

        return app
