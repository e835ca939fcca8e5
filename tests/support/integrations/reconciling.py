"""A correct integration without any queue: it compares what it wants with what is at the service, asynchronously."""

import asyncio
import json
from datetime import datetime
from pathlib import Path
from typing import Any

from followup import Appointment, FollowUp, WebhookSignatureError, construct_event
from followup_mockserver.simulation import Booking, Clinic

URL = "https://clinic.example/webhooks"


class Reconciling(Clinic):
    """The wanted bookings in a JSON file, asynchronous calls, and an ASGI application as the receiver."""

    receiver_url = URL

    def start(self, client: FollowUp, folder: Path) -> None:
        self.file = folder / "clinic.json"
        self.state: dict[str, Any] = {"bookings": {}, "arrived": [], "handled": []}
        if self.file.exists():
            self.state = json.loads(self.file.read_text())

    def save(self) -> None:
        """Replace the file as a whole, so that it is never half written."""
        new = self.file.with_suffix(".new")
        new.write_text(json.dumps(self.state))
        new.replace(self.file)

    def book(self, booking: Booking) -> None:
        patient = {"phone": booking.phone, "full_name": booking.full_name}
        self.state["bookings"][booking.external_id] = {"patient": patient, "start_at": booking.start_at.isoformat()}
        self.save()

    def reschedule(self, booking: Booking) -> None:
        self.state["bookings"][booking.external_id]["start_at"] = booking.start_at.isoformat()
        self.save()

    def cancel(self, booking: Booking) -> None:
        self.state["bookings"][booking.external_id]["start_at"] = None
        self.save()

    def bookings(self) -> dict[str, datetime | None]:
        bookings = self.state["bookings"].items()
        return {key: each["start_at"] and datetime.fromisoformat(each["start_at"]) for key, each in bookings}

    def work(self) -> None:
        asyncio.run(self.reconcile())
        for event_id in self.state["arrived"]:
            self.state["handled"].append(event_id)
        self.state["arrived"] = []
        self.save()

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
        return self.receive

    async def receive(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        status = self.accept(body, headers)
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    def accept(self, body: bytes, headers: dict[str, str]) -> int:
        try:
            event = construct_event(body, headers, self.secret)
        except WebhookSignatureError:
            return 400
        if event.id not in self.state["arrived"] and event.id not in self.state["handled"]:
            self.state["arrived"].append(event.id)
            self.save()
        return 204

    def handled(self) -> list[str]:
        return list(self.state["handled"])
