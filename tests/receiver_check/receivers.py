"""A receiver that is written by hand, without the SDK, and receivers with one planted fault each."""

import hashlib
import hmac
import json
import sqlite3
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from contract import specification as spec
from support import receivers

SECRET = "whsec_check"


class Receiver:
    """A correct receiver with a database of its own."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.released = threading.Event()
        self.requests = 0
        with closing(self.connect()) as database, database:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("CREATE TABLE IF NOT EXISTS events (id TEXT PRIMARY KEY, ref TEXT, occurred_at TEXT)")
            database.execute("CREATE TABLE IF NOT EXISTS work (id TEXT, name TEXT)")

    def connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.file, timeout=10)

    def receive(self, body: bytes, headers: Mapping[str, str]) -> int:
        """Return the status of the response."""
        self.requests += 1
        if not self.is_genuine(body, headers):
            return 401
        event = self.parsed(body)
        if event is None:
            return 400
        return self.process(event)

    def process(self, event: Any) -> int:
        with closing(self.connect()) as database, database:
            if self.is_new(database, event):
                self.work(database, event)
        return 204

    def is_genuine(self, body: bytes, headers: Mapping[str, str]) -> bool:
        signature, timestamp = headers.get("x-service-signature", ""), headers.get("x-service-timestamp", "")
        return self.is_signed(body, timestamp, signature) and self.is_recent(time.time() - int(timestamp))

    def is_signed(self, body: bytes, timestamp: str, signature: str) -> bool:
        digest = hmac.new(SECRET.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
        return hmac.compare_digest(f"sha256={digest}", signature)

    def is_recent(self, age: float) -> bool:
        return abs(age) <= 300

    def parsed(self, body: bytes) -> Any:
        return json.loads(body)

    def is_new(self, database: sqlite3.Connection, event: Any) -> bool:
        row = (event["id"], event["ref"], event["occurredAt"])
        return database.execute("INSERT INTO events VALUES (?, ?, ?) ON CONFLICT DO NOTHING", row).rowcount == 1

    def work(self, database: sqlite3.Connection, event: Any) -> None:
        name = event["data"]["patient"]["fullName"]
        database.execute("INSERT INTO work VALUES (?, ?)", (event["id"], name))

    def handled(self) -> dict[str, int]:
        with closing(self.connect()) as database:
            return dict(database.execute("SELECT id, count(*) FROM work GROUP BY id").fetchall())

    def probed(self) -> tuple[int, bytes]:
        """Return status and body of the probe's response."""
        return 200, json.dumps({"handled": self.handled()}).encode()


class AcceptsEverything(Receiver):
    def is_genuine(self, body: bytes, headers: Mapping[str, str]) -> bool:
        return True


class WorksBeforeItVerifies(Receiver):
    def receive(self, body: bytes, headers: Mapping[str, str]) -> int:
        self.process(json.loads(body))
        return 204 if self.is_genuine(body, headers) else 401


class VerifiesSerializedAgain(Receiver):
    def is_signed(self, body: bytes, timestamp: str, signature: str) -> bool:
        again = json.dumps(json.loads(body), ensure_ascii=False, separators=(",", ":"))
        return super().is_signed(again.encode(), timestamp, signature)


class AcceptsTheFuture(Receiver):
    def is_recent(self, age: float) -> bool:
        return age <= 300


class AcceptsThePast(Receiver):
    def is_recent(self, age: float) -> bool:
        return age >= -300


class IgnoresCase(Receiver):
    def is_signed(self, body: bytes, timestamp: str, signature: str) -> bool:
        return super().is_signed(body, timestamp, signature.lower())


class CrashesWithoutSignature(Receiver):
    def receive(self, body: bytes, headers: Mapping[str, str]) -> int:
        return super().receive(body, headers) if "x-service-signature" in headers else 500


class RedirectsForged(Receiver):
    def receive(self, body: bytes, headers: Mapping[str, str]) -> int:
        return 204 if super().receive(body, headers) == 204 else 302


class NeverDeduplicates(Receiver):
    def is_new(self, database: sqlite3.Connection, event: Any) -> bool:
        return True


class LooksBeforeItInserts(Receiver):
    def is_new(self, database: sqlite3.Connection, event: Any) -> bool:
        row = (event["id"], event["ref"], event["occurredAt"])
        if database.execute("SELECT 1 FROM events WHERE id = ?", row[:1]).fetchone():
            return False
        time.sleep(0.05)  # another request looks meanwhile
        database.execute("INSERT OR REPLACE INTO events VALUES (?, ?, ?)", row)
        return True


class ConflictsWithRepetitions(Receiver):
    def process(self, event: Any) -> int:
        with closing(self.connect()) as database, database:
            if not self.is_new(database, event):
                return 409
            self.work(database, event)
        return 204


class DropsTheOlder(Receiver):
    def process(self, event: Any) -> int:
        with closing(self.connect()) as database, database:
            (newest,) = database.execute("SELECT max(occurred_at) FROM events WHERE ref = ?", [event["ref"]]).fetchone()
            if self.is_new(database, event) and (newest is None or newest < event["occurredAt"]):
                self.work(database, event)
        return 204


class WorksLater(Receiver):
    """Does its work some time after the response."""

    def process(self, event: Any) -> int:
        threading.Timer(0.4, super().process, [event]).start()
        return 204


class WorksAgainLater(Receiver):
    """Does the work of a repetition some time after the response."""

    def process(self, event: Any) -> int:
        with closing(self.connect()) as database, database:
            if self.is_new(database, event):
                self.work(database, event)
            else:
                threading.Timer(0.4, self.work_again, [event]).start()
        return 204

    def work_again(self, event: Any) -> None:
        with closing(self.connect()) as database, database:
            self.work(database, event)


class RejectsUnknownTypes(Receiver):
    def parsed(self, body: bytes) -> Any:
        event = json.loads(body)
        return event if event["type"] in spec.OUTBOUND_TYPES else None


class RejectsUnknownFields(Receiver):
    FIELDS = frozenset({"id", "object", "type", "apiVersion", "livemode", "occurredAt", "ref", "data"})

    def parsed(self, body: bytes) -> Any:
        event = json.loads(body)
        return event if event.keys() <= self.FIELDS else None


class LimitsBodies(Receiver):
    def receive(self, body: bytes, headers: Mapping[str, str]) -> int:
        return 413 if len(body) > 65_536 else super().receive(body, headers)


class ReadsAscii(Receiver):
    def parsed(self, body: bytes) -> Any:
        return json.loads(body) if body.isascii() else None


class WorksTooLong(Receiver):
    def process(self, event: Any) -> int:
        self.released.wait(30)
        return super().process(event)


class NeverWorks(Receiver):
    def work(self, database: sqlite3.Connection, event: Any) -> None:
        """Forget the event."""


class IgnoresForged(Receiver):
    """Responds to forged requests much later."""

    def receive(self, body: bytes, headers: Mapping[str, str]) -> int:
        status = super().receive(body, headers)
        if status == 401:
            self.released.wait(30)
        return status


class UniqueAppointments(Receiver):
    """Keeps appointments under the clinic's own ids, and patients under their phones."""

    def work(self, database: sqlite3.Connection, event: Any) -> None:
        super().work(database, event)
        for table, key in (("patient", "phone"), ("appointment", "externalId")):
            database.execute(f"CREATE TABLE IF NOT EXISTS {table} (id TEXT PRIMARY KEY, key TEXT UNIQUE)")
            values = (event["data"][table]["id"], event["data"][table][key])
            database.execute(f"INSERT INTO {table} VALUES (?, ?) ON CONFLICT (id) DO NOTHING", values)


class LimitsTheRate(Receiver):
    """Responds with 429 after the first request."""

    def receive(self, body: bytes, headers: Mapping[str, str]) -> int:
        return super().receive(body, headers) if self.requests == 0 else 429


@contextmanager
def served(receiver: Receiver, certificate: Path | None = None, **options: Any) -> Iterator[str]:
    """Serve a receiver at ``/webhooks`` and its probe at ``/handled``, and yield the base URL."""

    def respond(request: BaseHTTPRequestHandler, body: bytes) -> receivers.Reply:
        headers = {name.lower(): value for name, value in request.headers.items()}
        status, content = receiver.probed() if request.command == "GET" else (receiver.receive(body, headers), b"")
        return status, "/webhooks" if status == 302 else "", content

    tls = None
    if certificate is not None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate)
    with receivers.served(respond, tls=tls, **options) as url:
        try:
            yield url
        finally:
            receiver.released.set()
