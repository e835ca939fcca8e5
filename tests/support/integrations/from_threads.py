"""Integrations with one bug each, of the kinds that public threads report. The catalogue names the threads."""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx

from followup import FollowUp, FollowUpError, WebhookEvent, construct_event
from followup_mockserver.simulation import Booking
from support.integrations.intentions import Intentions

WAITING = "SELECT * FROM calls WHERE NOT is_done ORDER BY seq"

# --- sending -------------------------------------------------------------------------------------------------------


class BindsLate(Intentions):
    """Registers a callback for each change in a loop, and all of them send the last one."""

    def make_calls(self) -> None:
        callbacks: list[Callable[[], None]] = []
        for seq, external_id, kind, arguments, key, _ in self.database.execute(WAITING).fetchall():
            callbacks.append(lambda: self.call(external_id, kind, json.loads(arguments), key))  # noqa: B023
            callbacks.append(lambda seq=seq: self.finish(seq))
        for each in callbacks:
            each()


class TriesThreeTimes(Intentions):
    """Rejects a change after three failures in a row, which an outage of a minute causes."""

    def start(self, client: FollowUp, folder: Path) -> None:
        super().start(client.with_options(max_retries=0), folder)

    def call(self, external_id: str, kind: str, arguments: dict[str, Any], key: str) -> None:
        for _ in range(3):
            try:
                return super().call(external_id, kind, arguments, key)
            except FollowUpError:
                continue
        return None


class FindsByPhone(Intentions):
    """Moves and cancels the first appointment of the patient with this phone, which two patients share."""

    def reschedule(self, booking: Booking) -> None:
        self.commit(booking, booking.start_at, "update", {"phone": booking.phone, "start_at": self.written(booking)})

    def cancel(self, booking: Booking) -> None:
        self.commit(booking, None, "cancel", {"phone": booking.phone})

    def call(self, external_id: str, kind: str, arguments: dict[str, Any], key: str) -> None:
        if kind != "create":
            patient = self.client.patients.list(phone=arguments.pop("phone")).first()
            assert patient is not None
            found = self.client.appointments.list(patient=patient.id).first()
            assert found is not None
            external_id = found.external_id or ""
        super().call(external_id, kind, arguments, key)


class MovesByCancelling(Intentions):
    """Moves an appointment by cancelling it and booking another one under the same external id."""

    def call(self, external_id: str, kind: str, arguments: dict[str, Any], key: str) -> None:
        if kind == "update":
            found = self.client.appointments.list(external_id=external_id).first()
            assert found is not None
            super().call(external_id, "cancel", {}, f"{key}-cancel")
            super().call(external_id, "create", {"patient": found.patient, **arguments}, f"{key}-create")
        else:
            super().call(external_id, kind, arguments, key)


# --- webhooks ------------------------------------------------------------------------------------------------------


class VerifiesWrittenAgain(Intentions):
    """Verifies the signature of the parsed body, written again as JSON, which need not have the same bytes."""

    def verified(self, request: httpx.Request) -> WebhookEvent:
        written = json.dumps(json.loads(request.content), separators=(",", ":")).encode()
        return construct_event(written, request.headers, self.secret)


class SkipsWhatItDoesNotKnow(Intentions):
    """Skips a change of an appointment whose creation it has not seen yet, because webhooks come out of order."""

    def accept(self, event: WebhookEvent) -> None:
        with self.database:
            self.database.execute("CREATE TABLE IF NOT EXISTS seen (appointment TEXT)")
            if event.type == "appointment.created":
                self.database.execute("INSERT INTO seen VALUES (?)", (event.ref,))
            known = self.database.execute("SELECT 1 FROM seen WHERE appointment = ?", (event.ref,)).fetchone()
        if event.type == "appointment.rescheduled" and not known:
            return
        super().accept(event)


class ComparesContents(Intentions):
    """Takes a second event of the same type about the same object for a repetition."""

    def accept(self, event: WebhookEvent) -> None:
        with self.database:
            self.database.execute("CREATE TABLE IF NOT EXISTS contents (type TEXT, ref TEXT, id TEXT)")
            same = "SELECT 1 FROM contents WHERE type = ? AND ref = ? AND id != ?"
            content = (event.type, event.ref, event.id)
            if self.database.execute(same, content).fetchone():
                return
            self.database.execute("INSERT INTO contents VALUES (?, ?, ?)", content)
        super().accept(event)


class ForgetsAfterAMinute(Intentions):
    """Keeps the ids of events for a minute only, but the service repeats an event hours later."""

    def accept(self, event: WebhookEvent) -> None:
        now = self.now()
        with self.database:
            self.database.execute("CREATE TABLE IF NOT EXISTS recent (id TEXT, at TEXT)")
            self.database.execute("DELETE FROM recent WHERE at < ?", ((now - timedelta(minutes=1)).isoformat(),))
            if not self.database.execute("SELECT 1 FROM recent WHERE id = ?", (event.id,)).fetchone():
                self.database.execute("INSERT INTO recent VALUES (?, ?)", (event.id, now.isoformat()))
                self.do_work(event.id)


class IgnoresLateEvents(Intentions):
    """Drops an event that occurred an hour ago, although the service may deliver it only now."""

    def accept(self, event: WebhookEvent) -> None:
        if self.now() - event.occurred_at < timedelta(hours=1):
            super().accept(event)
