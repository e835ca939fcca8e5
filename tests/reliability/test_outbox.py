"""No event of the outbox is lost, takes effect twice or out of order, whatever is killed when.

``nox -s reliability`` runs these tests at full scale: 10,000 events and 100 kills, and 20 histories of 300
appointments.
"""

import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.databases import engine_of
from support.stores import outbox
from support.systems import HAS_SIGNALS

from followup import inbound
from followup.outbox import Outbox
from followup_mockserver import MockServer

from .conftest import SCALE, Report

__all__ = ["outbox"]

pytestmark = pytest.mark.on_all

RELAY = Path(__file__).with_name("relay.py")
RELAYS = 2 if SCALE == 1 else 4
FAULTS_AFTER_KILLS = 2 if SCALE == 1 else 120
PATIENCE = 600
"""Seconds."""

APPOINTMENTS = 20 if SCALE == 1 else 300
CHANGES = 3 if SCALE == 1 else 7
"""The creation and new times; a relay is killed after each."""

LAST_KILLS = 1 if SCALE == 1 else 4
AT_ONCE = 10
"""Histories that run at the same time."""


@contextmanager
def burning(unavailable: float) -> Iterator[MockServer]:
    """Run a server that drops one response in five after the work is done, and fails in other ways too.

    Args:
        unavailable: the share of calls that fail before the work is done, so that their events wait for a retry.
    """
    with MockServer(rate_limit=0, seed=11) as server:
        add: Any = server.add_fault
        add(operation="events.create", kind="disconnect", when="after", times=None, probability=0.2)
        add(operation="events.create", kind="status", status=500, when="after", times=None, probability=0.04)
        add(operation="events.create", kind="status", status=503, times=None, probability=unavailable)
        add(operation="events.create", kind="delay", seconds=0.3, times=None, probability=0.3)
        add(operation="events.create", kind="status", status=429, retry_after=0.2, times=None, probability=0.04)
        yield server


class Relays:
    """Relay processes, which are killed at random moments and replaced."""

    def __init__(
        self, database_url: str, server: MockServer, *, name: str = "default", rate: int = 60_000, count: int = RELAYS
    ) -> None:
        self._command = [sys.executable, str(RELAY), database_url, server.url, name, str(rate)]
        self._processes = [self._start() for _ in range(count)]
        self.kills = 0

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self._command)

    def kill_one(self, choose: random.Random) -> None:
        """Kill or freeze a relay, and start another one in its place."""
        position = choose.randrange(len(self._processes))
        victim = self._processes[position]
        if choose.random() < 0.2 and HAS_SIGNALS:
            # It wakes up, does what it can, and is killed later.
            victim.send_signal(signal.SIGSTOP)
            threading.Timer(choose.uniform(1, 9), self._wake, (victim,)).start()
        else:
            victim.kill()
            victim.wait()
        self._processes[position] = self._start()
        self.kills += 1

    @staticmethod
    def _wake(victim: subprocess.Popen[bytes]) -> None:
        victim.send_signal(signal.SIGCONT)
        time.sleep(1)
        victim.kill()
        victim.wait()

    def stop(self) -> None:
        """Kill all relays."""
        for each in self._processes:
            each.kill()
            each.wait()


def sending(outbox: Outbox) -> None:
    """Wait until a relay is sending, for a while: a relay that has just started has nothing to lose."""
    ends = time.monotonic() + 30
    while not outbox.status().in_flight and time.monotonic() < ends:
        time.sleep(0.01)


def burn(outbox: Outbox, server: MockServer, relays: Relays, kills: int, choose: random.Random) -> None:
    """Kill relays at random moments, then wait until the outbox is empty. The faults end some time after the kills."""
    for _ in range(kills):
        time.sleep(choose.uniform(0.05, 1))
        sending(outbox)
        relays.kill_one(choose)
    faults_end = time.monotonic() + FAULTS_AFTER_KILLS
    while (found := outbox.status()).waiting or found.in_flight:
        if time.monotonic() > faults_end:
            server.clear_faults()
        assert time.monotonic() < faults_end + PATIENCE, found
        time.sleep(0.2)


def test_exactly_the_committed_events_take_effect_and_each_once(
    outbox: Outbox, database_url: str, report: Report
) -> None:
    choose, began = random.Random(5), time.perf_counter()
    committed: list[str] = []
    number = 160 * SCALE
    engine = engine_of(database_url)

    def record() -> None:
        for start in range(0, number, 4):
            names = [f"t{each}" for each in range(start, start + 4)]
            is_committed = start % 40 != 0
            with engine.connect() as connection:
                for name in names:
                    outbox.record(
                        connection,
                        inbound.treatment_prescribed(patient={"phone": f"+54911{55550000 + start}"}, name=name),
                    )
                if is_committed:
                    connection.commit()
                    committed.extend(names)

    with burning(unavailable=0.1) as server:
        relays = Relays(database_url, server)
        recorder = threading.Thread(target=record)
        recorder.start()
        try:
            burn(outbox, server, relays, kills=2 if SCALE == 1 else 3 * SCALE, choose=choose)
            recorder.join()
            burn(outbox, server, relays, kills=0, choose=choose)
        finally:
            relays.stop()
        server.clear_faults()
        with server.client() as client:
            found = Counter(each.name for each in client.treatments.list(limit=100))
        statuses = Counter(each.status for each in server.requests if each.operation == "events.create")
    assert found == Counter(committed)
    status = outbox.status()
    assert (status.sent, status.dead, status.held) == (len(committed), 0, 0)
    seconds = time.perf_counter() - began
    report(
        f"{number:,} events, {len(committed):,} committed, {relays.kills} kills, {seconds:.0f} s, "
        f"each done once; calls {dict(statuses)}"
    )


def wrong_times(outbox: Outbox, database_url: str, seed: int) -> int:
    """Let relays send appointments that change several times, while they are killed.

    Returns:
        The number of appointments that did not end at their last time.
    """
    choose = random.Random(seed)
    start = datetime(2030, 1, 1, tzinfo=UTC)
    expected: dict[str, datetime] = {}
    engine = engine_of(database_url)
    with burning(unavailable=0.35) as server:
        relays = Relays(database_url, server, name=outbox.name)
        try:
            for change in range(CHANGES):
                with engine.begin() as connection:
                    for number in range(APPOINTMENTS):
                        external_id = f"T-{number}"
                        start_at = start + timedelta(minutes=choose.randrange(500_000))
                        event = (
                            inbound.appointment_rescheduled(external_id=external_id, start_at=start_at)
                            if change
                            else inbound.appointment_created(
                                patient={"phone": f"+54911{55550000 + number}"},
                                external_id=external_id,
                                start_at=start_at,
                            )
                        )
                        outbox.record(connection, event)
                        expected[external_id] = start_at
                sending(outbox)
                relays.kill_one(choose)
            burn(outbox, server, relays, kills=LAST_KILLS, choose=choose)
        finally:
            relays.stop()
        server.clear_faults()
        with server.client() as client:
            found = {each.external_id: each.start_at for each in client.appointments.list(limit=100)}
    wrong = [each for each in expected if found.get(each) != expected[each]]
    return len(wrong) + len(found.keys() - expected.keys())


def histories(database_url: str, seeds: range) -> list[int]:
    """Run histories at the same time, since they mostly wait for leases to end, each in an outbox of its own.

    On SQLite, each has a file of its own too: a frozen relay may hold the only lock of its file.

    Returns:
        The number of appointments at a wrong time, of each history.
    """

    def wrong(seed: int) -> int:
        url = f"{database_url}-{seed}" if database_url.startswith("sqlite") else database_url
        outbox = Outbox(url, name=f"history {seed}")
        outbox.create_tables()
        try:
            return wrong_times(outbox, url, seed)
        finally:
            outbox.close()

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(wrong, seeds))


def test_every_appointment_ends_at_its_last_time(database_url: str, report: Report) -> None:
    began = time.perf_counter()
    found = histories(database_url, range(1 if SCALE == 1 else 20))
    assert not any(found), found
    report(
        f"{len(found)} histories of {APPOINTMENTS} appointments, {CHANGES + LAST_KILLS} kills each, "
        f"{time.perf_counter() - began:.0f} s: every time right"
    )
