"""Integrations with one of the commonest bugs each: webhooks that are hardly verified, and data that is lost."""

import hashlib
import hmac
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

from followup import FollowUp, WebhookEvent, construct_event
from followup.webhooks import sign
from followup_mockserver.simulation import Booking
from support.integrations.intentions import Intentions

# --- verification --------------------------------------------------------------------------------------------------

SIGNATURE, TIMESTAMP = "x-service-signature", "x-service-timestamp"


class TrustsSome(Intentions):
    """Verifies a request unless ``trusts`` says that it need not."""

    def trusts(self, request: httpx.Request) -> bool:
        raise NotImplementedError

    def verified(self, request: httpx.Request) -> WebhookEvent:
        if not self.trusts(request):
            return super().verified(request)
        headers = {TIMESTAMP: "0", SIGNATURE: sign(request.content, self.secret, 0)}
        return construct_event(request.content, headers, self.secret, tolerance=None)


class TrustsWithoutSignature(TrustsSome):
    """Verifies a request only if it has a signature."""

    def trusts(self, request: httpx.Request) -> bool:
        return SIGNATURE not in request.headers


class TrustsAnEmptySignature(TrustsSome):
    """Verifies a request only if its signature is not empty."""

    def trusts(self, request: httpx.Request) -> bool:
        return request.headers.get(SIGNATURE) == ""


class TrustsWithoutTimestamp(TrustsSome):
    """Verifies a request only if it has a timestamp."""

    def trusts(self, request: httpx.Request) -> bool:
        return TIMESTAMP not in request.headers


class ComparesTheBeginning(TrustsSome):
    """Compares as much of the signature as was received."""

    def trusts(self, request: httpx.Request) -> bool:
        signed = request.headers.get(TIMESTAMP, "").encode() + b"." + request.content
        expected = "sha256=" + hmac.new(self.secret.encode(), signed, hashlib.sha256).hexdigest()
        received = request.headers.get(SIGNATURE)
        return received not in (None, expected) and expected.startswith(received)


# --- repeated webhooks ---------------------------------------------------------------------------------------------


class RemembersTwenty(Intentions):
    """Keeps the ids of the last 20 events, but the service may repeat an older one."""

    def accept(self, event: WebhookEvent) -> None:
        super().accept(event)
        with self.database:
            self.database.execute("DELETE FROM events WHERE is_done AND rowid <= (SELECT max(rowid) FROM events) - 20")


class ComparesSeconds(Intentions):
    """Takes a second event of the same type in the same second for a repetition."""

    def start(self, client: FollowUp, folder: Path) -> None:
        super().start(client, folder)
        self.database.execute("CREATE TABLE IF NOT EXISTS times (text TEXT PRIMARY KEY)")

    def accept(self, event: WebhookEvent) -> None:
        with self.database:
            text = f"{event.type} {event.occurred_at:%Y-%m-%d %H:%M:%S}"
            if self.database.execute("INSERT OR IGNORE INTO times VALUES (?)", (text,)).rowcount:
                self.do_work(event.id)


# --- data ----------------------------------------------------------------------------------------------------------


class FindsByName(Intentions):
    """Takes the phone of a patient from the first booking with the same name, which two persons may have."""

    def start(self, client: FollowUp, folder: Path) -> None:
        super().start(client, folder)
        self.database.execute("CREATE TABLE IF NOT EXISTS patients (name TEXT PRIMARY KEY, phone TEXT)")

    def intend(self, booking: Booking, kind: str, arguments: dict[str, Any]) -> None:
        if kind == "create":
            name = booking.full_name
            self.database.execute("INSERT OR IGNORE INTO patients VALUES (?, ?)", (name, booking.phone))
            [phone] = self.database.execute("SELECT phone FROM patients WHERE name = ?", (name,)).fetchone()
            arguments = {**arguments, "patient": {"phone": phone, "full_name": name}}
        super().intend(booking, kind, arguments)


class TakesLocalTimeForUtc(Intentions):
    """Writes the local time of the machine without its offset, and takes it for UTC when it sends it."""

    def written(self, booking: Booking) -> str:
        return datetime.fromtimestamp(booking.start_at.timestamp()).isoformat() + "Z"  # noqa: DTZ006 - the bug


class StoresLocalTime(Intentions):
    """Stores the local time of the machine without its offset, so an hour that occurs twice is the first one."""

    def written(self, booking: Booking) -> str:
        local = datetime.fromtimestamp(booking.start_at.timestamp()).isoformat()  # noqa: DTZ006 - the bug
        return datetime.fromisoformat(local).astimezone(UTC).isoformat()
