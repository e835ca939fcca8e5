"""Every event reaches a receiver that fails, hangs, and is killed and restarted; after deduplication, exactly once."""

import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from support.ports import free_port

from followup_mockserver import MockServer

from .conftest import SCALE, Report

EVENTS = 80 * SCALE
HANGS = SCALE // 5
RECEIVER = Path(__file__).with_name("receiver.py")

Start = Callable[[], subprocess.Popen[bytes]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Return a function that starts the receiver, each time with the same port and the same database."""
    (tmp_path / "port").write_text(str(free_port()), encoding="utf-8")
    processes: list[subprocess.Popen[bytes]] = []

    def start_one() -> subprocess.Popen[bytes]:
        port = (tmp_path / "port").read_text(encoding="utf-8")
        arguments = [port, str(tmp_path / "arrived.db"), str(tmp_path / "secret"), str(HANGS)]
        processes.append(subprocess.Popen([sys.executable, str(RECEIVER), *arguments]))
        wait_until(lambda: listens(int(port)) or processes[-1].poll() is not None)
        return processes[-1]

    yield start_one
    for process in processes:
        process.kill()
        process.wait(60)


def wait_until(condition: Callable[[], bool]) -> None:
    """Poll until another process has made the condition true."""
    while not condition():
        time.sleep(0.02)


def listens(port: int) -> bool:
    """Return whether a server listens on this port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def arrived(folder: Path) -> list[tuple[str, int]]:
    """Return the id of each event and how often it arrived; an event whose body changed is listed twice."""
    with closing(sqlite3.connect(folder / "arrived.db")) as connection:
        try:
            return connection.execute("SELECT id, times FROM arrived").fetchall()
        except sqlite3.OperationalError:  # the receiver has not started yet
            return []


def test_every_webhook_arrives_and_once_after_deduplication(start: Start, tmp_path: Path, report: Report) -> None:
    began = time.perf_counter()
    with (
        MockServer(start_time="2026-09-28T12:00:00Z", rate_limit=0, allow_http_webhooks=True) as server,
        server.client() as client,
    ):
        first = start()
        endpoint = client.webhook_endpoints.create(
            url=f"http://127.0.0.1:{(tmp_path / 'port').read_text(encoding='utf-8')}/",
            enabled_events=["patient.upserted"],
        )
        (tmp_path / "secret").write_text(endpoint.secret or "", encoding="utf-8")

        def restart_once() -> None:
            wait_until(lambda: len(arrived(tmp_path)) >= EVENTS / 3)
            first.kill()
            first.wait(60)
            start()

        restarting = threading.Thread(target=restart_once, daemon=True)
        restarting.start()
        for number in range(EVENTS):
            client.patients.create(phone=f"+54911{number:08}")
        restarting.join(60)
        assert not restarting.is_alive()
        # Only after the restart: with an advanced clock, all nine attempts could fail while the receiver is down.
        server.advance(days=3)
        deliveries = [*client.webhook_deliveries.list(limit=100)]
    times = arrived(tmp_path)
    assert len(deliveries) == EVENTS
    assert {each.status for each in deliveries} == {"succeeded"}
    assert sorted(each for each, _ in times) == sorted(each.id for each in deliveries)
    arrivals = sum(often for _, often in times)
    assert arrivals > EVENTS
    report(
        f"{EVENTS:,} events, {sum(each.attempts for each in deliveries):,} attempts, {arrivals:,} arrivals, "
        f"{len(times):,} after deduplication, {HANGS} hung, one restart; {time.perf_counter() - began:.1f} s"
    )
