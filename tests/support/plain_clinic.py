"""A correct clinic with a receiver, which keeps its state in one JSON file; tests plant a bug in one of its methods."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx

from followup import FollowUp, WebhookEvent, WebhookSignatureError, construct_event
from followup_mockserver.simulation import Booking, Clinic


class PlainClinic(Clinic):
    receiver_url = "https://clinic.example/webhooks"

    def start(self, client: FollowUp, folder: Path) -> None:
        self.client = client
        self.path = folder / "state.json"
        empty = {"bookings": {}, "sent": {}, "arrived": [], "done": []}
        self.state: dict[str, Any] = json.loads(self.path.read_text(encoding="utf-8")) if self.path.exists() else empty

    def save(self) -> None:
        self.path.with_suffix(".new").write_text(json.dumps(self.state), encoding="utf-8")
        self.path.with_suffix(".new").replace(self.path)

    def book(self, booking: Booking) -> None:
        self.state["bookings"][booking.external_id] = {
            "patient": {"phone": booking.phone, "full_name": booking.full_name},
            "start_at": booking.start_at.isoformat(),
            "cancelled": False,
        }
        self.save()

    def reschedule(self, booking: Booking) -> None:
        self.state["bookings"][booking.external_id]["start_at"] = booking.start_at.isoformat()
        self.save()

    def cancel(self, booking: Booking) -> None:
        self.state["bookings"][booking.external_id]["cancelled"] = True
        self.save()

    def work(self) -> None:
        self.send_changes()
        while self.state["arrived"]:
            self.do(self.state["arrived"][0])

    def send_changes(self) -> None:
        for external_id, booking in self.state["bookings"].items():
            if self.state["sent"].get(external_id) != booking:
                self.send(external_id, booking)
                self.state["sent"][external_id] = dict(booking)
                self.save()

    def do(self, event_id: str) -> None:
        self.state["arrived"].remove(event_id)
        self.state["done"].append(event_id)
        self.save()

    def send(self, external_id: str, booking: dict[str, Any]) -> None:
        appointment = self.client.appointments.create(
            patient=booking["patient"], start_at=booking["start_at"], external_id=external_id
        )
        if booking["cancelled"]:
            self.client.appointments.cancel(appointment.id)
        else:
            self.client.appointments.update(appointment.id, start_at=booking["start_at"])

    def receiver(self) -> Any:
        return self.receive

    def receive(self, request: httpx.Request) -> httpx.Response:
        try:
            event = self.verified(request)
        except WebhookSignatureError:
            return httpx.Response(400)
        self.arrive(event.id)
        return httpx.Response(204)

    def verified(self, request: httpx.Request) -> WebhookEvent:
        return construct_event(request.content, request.headers, self.secret)

    def arrive(self, event_id: str) -> None:
        if event_id not in self.state["arrived"] and event_id not in self.state["done"]:
            self.state["arrived"].append(event_id)
            self.save()

    def bookings(self) -> dict[str, datetime | None]:
        return {
            external_id: None if booking["cancelled"] else datetime.fromisoformat(booking["start_at"])
            for external_id, booking in self.state["bookings"].items()
        }

    def handled(self) -> list[str] | None:
        return list(self.state["done"])
