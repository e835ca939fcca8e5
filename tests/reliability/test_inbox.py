"""Each genuine webhook's work is done once, although processes are killed, handlers raise, and forged requests come."""

import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from support.databases import engine_of
from support.ports import free_port
from support.webhook_events import SECRET, body_of, headers_of

from followup.inbox import Inbox

from .conftest import SCALE, Report

pytestmark = pytest.mark.on_all

EVENTS = 80 * SCALE
KILLS = 2 * SCALE
REFS = EVENTS // 5
FOLDER = Path(__file__).parents[1]
LATE = 600
"""Seconds by which some requests are old; they are rejected, and sent again with a new signature."""


class Processes:
    """Two processes that receive and handle webhooks, each replaced when it is killed."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.ports = [free_port(), free_port()]
        self._running = [self._start(port) for port in self.ports]

    def kill(self, index: int) -> None:
        """Kill a process, and start another one in its place."""
        self._running[index].kill()
        self._running[index].wait(60)
        self._running[index] = self._start(self.ports[index])

    def end(self) -> None:
        """Kill both."""
        for each in self._running:
            each.kill()
            each.wait(60)

    def _start(self, port: int) -> subprocess.Popen[bytes]:
        arguments = [sys.executable, "-m", "reliability.inbox_process", self._url, str(port)]
        return subprocess.Popen(arguments, cwd=FOLDER, stderr=subprocess.DEVNULL)


@pytest.fixture
def inbox(database_url: str) -> Iterator[Inbox]:
    inbox = Inbox(database_url, secret=SECRET)
    inbox.create_tables()
    engine = engine_of(database_url)
    with engine.begin() as connection:
        key = {"postgresql": "SERIAL", "mysql": "INTEGER AUTO_INCREMENT"}.get(engine.dialect.name, "INTEGER")
        columns = "event_id TEXT, ref TEXT, at BIGINT, stale INTEGER"
        connection.exec_driver_sql(f"CREATE TABLE work (id {key} PRIMARY KEY, {columns})")
    yield inbox
    inbox.close()


def send(ports: list[int], bodies: list[bytes], chance: random.Random) -> int:
    """Send each body until it is accepted, as the service does; return the number of forged ones that were accepted."""
    accepted = 0
    with httpx.Client(timeout=10) as client:
        for body in bodies:
            is_forged = b"whd_forged" in body
            while True:
                secret = "whsec_other" if is_forged else SECRET
                sent = time.time() - (LATE if chance.random() < 0.05 else 0)
                with suppress(httpx.HTTPError):
                    url = f"http://127.0.0.1:{chance.choice(ports)}/webhooks"
                    status = client.post(url, content=body, headers=headers_of(body, secret, sent=sent)).status_code
                    accepted += is_forged and status == 204
                    if status == 204 or is_forged:
                        break
                time.sleep(0.05)
    return accepted


def test_each_webhooks_work_is_done_once(inbox: Inbox, database_url: str, report: Report) -> None:
    chance = random.Random(15)
    began = time.perf_counter()
    genuine = [body_of(f"whd_{n}", ref=f"apt_{n % REFS}", minute=n) for n in range(EVENTS)]
    bodies = [*genuine, *chance.sample(genuine, EVENTS // 3)]
    bodies += [body_of(f"whd_forged_{n}", ref=f"apt_{n}") for n in range(EVENTS // 10)]
    chance.shuffle(bodies)
    processes = Processes(database_url)
    accepted: list[int] = []
    parts = [bodies[index::4] for index in range(4)]
    senders = [
        threading.Thread(
            target=lambda part=part, seed=seed: accepted.append(send(processes.ports, part, random.Random(seed)))
        )
        for seed, part in enumerate(parts)
    ]
    try:
        for sender in senders:
            sender.start()
        for number in range(KILLS):
            wait_until_done(inbox, EVENTS * number // (KILLS + 1))
            time.sleep(chance.random() / 5)
            processes.kill(number % 2)
        for sender in senders:
            sender.join()
        wait_until_done(inbox, EVENTS)
    finally:
        processes.end()
    with inbox._database.transaction() as connection:
        rows = connection.exec_driver_sql("SELECT event_id, ref, at, stale FROM work ORDER BY id").all()
        attempts = connection.exec_driver_sql("SELECT sum(attempts) FROM followup_inbox").scalar_one()
    assert accepted == [0, 0, 0, 0]
    assert sorted(row.event_id for row in rows) == sorted(f"whd_{n}" for n in range(EVENTS))
    newest: dict[str, int] = {}
    for row in rows:
        assert bool(row.stale) == (row.at < newest.get(row.ref, row.at)), "in the order of each ref, unless it says so"
        newest[row.ref] = max(row.at, newest.get(row.ref, row.at))
    report(
        f"{EVENTS:,} events, {len(bodies):,} requests, {KILLS} kills, {attempts:,} attempts, "
        f"{sum(row.stale for row in rows):,} stale; {time.perf_counter() - began:.1f} s"
    )


def wait_until_done(inbox: Inbox, count: int) -> None:
    """Poll until the work of so many events is done."""
    while (status := inbox.status()).done < count:
        assert status.dead == 0
        time.sleep(0.05)
