"""What is planted in a store with a cipher is nowhere in its database; a key changes while relays send."""

import itertools
import json
import socket
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from cryptography.fernet import Fernet, MultiFernet
from sqlalchemy import Connection, Engine
from support.databases import content_of, execute
from support.responses import error
from support.server import Received as Request
from support.server import ScriptedServer, reply
from support.stores import record
from support.webhook_events import SECRET, body_of, headers_of

from followup import FollowUp, inbound
from followup.inbox import Inbox, Received
from followup.outbox import Outbox

pytestmark = pytest.mark.on_all

OLD, NEW = Fernet(Fernet.generate_key()), Fernet(Fernet.generate_key())
BOTH = MultiFernet([NEW, OLD])

PER_STATE = 40


class Planted:
    """Makes values that are found nowhere else."""

    def __init__(self) -> None:
        self.marks: list[str] = []
        self._numbers = itertools.count(73_000_001, 7)

    def mark(self, shape: str = "{}") -> str:
        """Return a new value of this shape."""
        self.marks.append(str(next(self._numbers)))
        return shape.format(self.marks[-1])

    def patient(self) -> dict[str, Any]:
        """Return the data of a patient."""
        return {
            "phone": self.mark("+54 9 11 {}"),
            "fullName": self.mark("Zoë {}"),
            "dni": self.mark(),
            "email": self.mark("z{}@example.org"),
            "externalId": self.mark("HC-{}"),
        }


def results_of(planted: Planted) -> ScriptedServer:
    """Return a service that rejects events whose ids begin so, and quotes the patient."""

    def respond(connection: socket.socket, received: Request) -> bool:
        results = []
        for each in json.loads(received.body):
            status = {"dead": "invalid", "fail": "failed"}.get(each["id"][:4], "processed")
            problem = None if status == "processed" else planted.mark("dni {} is unknown")
            accepted = {"accepted": status == "processed", "event": None, "result": None}
            results.append({"id": each["id"], "status": status, "error": problem, **accepted})
        return reply(200, {**error(), "object": "event_batch", "results": results})(connection, received)

    return ScriptedServer([respond])


def live_through(url: str, engine: Engine, planted: Planted, cipher: Fernet | None) -> Iterator[str]:
    """Let events be in each state of both stores, and yield after each step."""
    outbox, inbox = Outbox(url, cipher=cipher), Inbox(url, secret=SECRET, cipher=cipher, max_attempts=2)
    outbox.create_tables()
    inbox.create_tables()

    @inbox.otherwise
    def work(received: Received) -> None:
        if received.event.id[:4] in ("dead", "fail"):
            raise ValueError(f"no room for {planted.mark()}")

    with engine.begin() as connection:
        for state, number in itertools.product(("sent", "fail", "dead", "held"), range(PER_STATE)):
            data = {"patient": planted.patient(), "visit": {"diagnosis": planted.mark("I{}")}}
            subject = planted.mark("clinic {}") if number % 2 else None
            outbox.record(connection, {"id": f"{state}{number}", "type": "visit.completed", "data": data}, subject)
    yield "record"
    with results_of(planted) as service, FollowUp(api_key="fu_test", base_url=service.url) as client:
        outbox.drain(client)
    yield "send"
    for state, number in itertools.product(("done", "fail"), range(PER_STATE // 2)):
        body = body_of(f"{state}{number}", ref=f"apt_{state}{number}", data={"patient": planted.patient()})
        assert inbox.receive(body, headers_of(body)) == 204
    yield "receive"
    inbox.drain()
    yield "handle"
    execute(engine, "UPDATE followup_inbox SET due_at = 0")
    inbox.drain()
    yield "die"
    assert inbox.status().dead == PER_STATE // 2
    assert (outbox.status().sent, outbox.status().dead) == (2 * PER_STATE, PER_STATE)
    if cipher is not None:
        outbox.reencrypt()
        inbox.reencrypt()
    yield "reencrypt"
    outbox.close()
    inbox.close()


def keep_log(connection: Connection) -> None:
    """Let SQLite have a log, which it keeps as long as a connection that has read it is open."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("PRAGMA journal_mode = WAL")
        connection.exec_driver_sql("SELECT count(*) FROM sqlite_master").all()
        connection.rollback()


@pytest.mark.parametrize("cipher", [OLD, None], ids=["cipher", "plain"])
def test_nothing_that_is_planted_is_in_the_file_or_the_dump(
    database_url: str, engine: Engine, cipher: Fernet | None
) -> None:
    planted = Planted()
    with engine.connect() as kept:
        keep_log(kept)
        for step in live_through(database_url, engine, planted, cipher):
            content = content_of(database_url)
            found = [each for each in planted.marks if each.encode() in content]
            # In clear, only the errors of earlier attempts may be overwritten.
            assert (found == []) if cipher else (len(found) > 0.9 * len(planted.marks)), step
    assert len(planted.marks) > 1000


def test_reencrypt_leaves_nothing_of_what_was_stored_in_clear(
    outbox: Outbox, database_url: str, engine: Engine
) -> None:
    planted = Planted()
    with engine.connect() as kept:
        keep_log(kept)
        for _ in range(20):
            record(outbox, engine, {"type": "patient.upserted", "data": {"patient": planted.patient()}})
        assert all(each.encode() in content_of(database_url) for each in planted.marks)
        encrypted = Outbox(database_url, cipher=OLD)
        assert encrypted.reencrypt() == 20
        encrypted.close()
        content = content_of(database_url)
    assert [each for each in planted.marks if each.encode() in content] == []


@pytest.mark.parametrize("number", [240, pytest.param(10_000, marks=pytest.mark.nightly)])
def test_the_key_changes_while_relays_send(
    database_url: str, engine: Engine, number: int, caplog: pytest.LogCaptureFixture
) -> None:
    old = Outbox(database_url, cipher=OLD)
    old.create_tables()
    stores = [Outbox(database_url, cipher=BOTH, requests_per_minute=60_000) for _ in range(5)]
    sent: list[str] = []

    def accept(connection: socket.socket, received: Request) -> bool:
        ids = [each["id"] for each in json.loads(received.body)]
        sent.extend(ids)
        results = [{"id": each, "accepted": True, "status": "processed", "event": None} for each in ids]
        return reply(200, {"object": "event_batch", "results": results})(connection, received)

    def record_all(outbox: Outbox, numbers: range) -> None:
        for start in numbers[::10]:
            with engine.begin() as connection:
                for each in range(start, start + 10):
                    event = inbound.order_issued(id=f"e{each}", patient={"phone": f"1150{each % 40:04}"}, order={})
                    outbox.record(connection, event)

    stop = threading.Event()
    record_all(old, range(number // 2))
    with (
        ScriptedServer([accept]) as service,
        FollowUp(api_key="fu_test", base_url=service.url) as client,
        ThreadPoolExecutor(6) as pool,
    ):
        relays = [pool.submit(each.run, client, stop) for each in stores[1:]]
        recording = pool.submit(record_all, stores[0], range(number // 2, number))
        try:
            while True:
                is_last = recording.done()
                assert stores[0].reencrypt() >= number // 2
                if is_last:
                    break
            recording.result()
            while stores[0].drain(client).remaining:
                pass
        finally:
            stop.set()
        for each in relays:
            each.result()
    by_subject = defaultdict(list)
    for name in dict.fromkeys(sent):
        by_subject[int(name[1:]) % 40].append(int(name[1:]))
    assert sorted(itertools.chain(*by_subject.values())) == [*range(number)]
    assert all(each == sorted(each) for each in by_subject.values())
    assert "lease ended" in caplog.text or max(Counter(sent).values()) == 1
    new = Outbox(database_url, cipher=NEW)
    assert (new.status().sent, new.reencrypt()) == (number, number)
    for each in (old, new, *stores):
        each.close()
