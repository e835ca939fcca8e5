"""What happens to an event whose worker is killed, frozen, or too slow: its work commits once."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.systems import KILLED, needs_signals
from support.times import ManualTime

from followup._store.leases import StoreTime
from followup.inbox import Received

from .conftest import Desk, write

pytestmark = pytest.mark.on_all

FOLDER = Path(__file__).parents[1]
LATER = 60
"""Seconds after which the lease of a worker that uses the real time has ended."""

Start = Callable[[str, str, str], subprocess.Popen[str]]


@pytest.fixture
def later(inbox: Desk) -> None:
    """Let the clock of this process be ahead of that of the workers."""
    inbox._clock = ManualTime(time.time() + LATER)


@pytest.fixture
def start() -> Iterator[Start]:
    """Return a function that starts a worker whose handler stops its own process."""
    processes: list[subprocess.Popen[str]] = []

    def start_one(url: str, name: str, moment: str) -> subprocess.Popen[str]:
        arguments = [sys.executable, "-m", "inbox.killed_worker", url, name, moment]
        processes.append(subprocess.Popen(arguments, cwd=FOLDER, stdout=subprocess.PIPE, text=True))
        return processes[-1]

    yield start_one
    for process in processes:
        process.kill()
        process.communicate(timeout=60)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_killed_worker_has_done_nothing_and_the_event_is_handled_again(
    inbox: Desk, database_url: str, start: Start, moment: str
) -> None:
    attempts: list[int] = []

    @inbox.otherwise
    def handle(received: Received) -> None:
        attempts.append(received.attempt)
        write(received)

    clock = inbox._clock = ManualTime(time.time())
    inbox.deliver("whd_1")
    assert start(database_url, "SIGKILL", moment).wait(60) == KILLED
    assert inbox.status().in_flight == 1
    assert inbox.drain().remaining == 1, "its lease has not ended"
    assert inbox.written() == []
    clock.advance(LATER)
    assert inbox.drain().done == 1
    assert attempts == [2]
    assert inbox.written() == ["whd_1"]


def test_an_event_that_kills_every_worker_dies(inbox: Desk, database_url: str, start: Start) -> None:
    inbox.deliver("whd_1")
    with inbox._database.transaction() as connection:
        connection.exec_driver_sql("UPDATE followup_inbox SET attempts = 2")
    assert start(database_url, "SIGKILL", "after").wait(60) == KILLED
    with inbox._database.transaction() as connection:
        # The workers use the clock of the database, which cannot be advanced.
        connection.exec_driver_sql("UPDATE followup_inbox SET lease_ends_at = 0")
    assert inbox.drain().dead == 1
    (dead,) = inbox.dead()
    assert dead.error.startswith("the attempt did not end in time: its process was killed")
    assert inbox.written() == []


@needs_signals
@pytest.mark.usefixtures("later")
def test_a_frozen_worker_that_wakes_after_its_lease_is_rolled_back(
    inbox: Desk, database_url: str, start: Start
) -> None:
    """In SQLite a worker that froze after it wrote would hold the lock of the file, so this one froze before."""
    inbox.otherwise(write)
    inbox.deliver("whd_1")
    moment = "before" if database_url.startswith("sqlite") else "after"
    worker = start(database_url, "SIGSTOP", moment)
    os.waitpid(worker.pid, os.WUNTRACED)
    assert inbox.drain().done == 1
    worker.send_signal(signal.SIGCONT)
    output, _ = worker.communicate(timeout=60)
    assert output == "0\n"
    assert inbox.written() == ["whd_1"]
    assert inbox.status().done == 1


def test_a_handler_that_outlives_its_lease_is_rolled_back(inbox: Desk, clock: ManualTime) -> None:
    @inbox.otherwise
    def handle(received: Received) -> None:
        write(received)
        if received.attempt == 1:
            clock.advance(30)

    inbox.deliver("whd_1")
    assert inbox.drain().failed == 1
    assert inbox.written() == []
    clock.advance(1)
    assert inbox.drain().done == 1
    assert inbox.written() == ["whd_1"]


def test_a_handler_that_ends_just_in_time_commits(inbox: Desk, clock: ManualTime) -> None:
    @inbox.otherwise
    def handle(received: Received) -> None:
        write(received)
        clock.advance(29.9)

    inbox.deliver("whd_1")
    assert inbox.drain().done == 1
    assert inbox.written() == ["whd_1"]


def test_of_two_workers_with_one_event_only_the_holder_of_the_lease_commits(inbox: Desk, clock: ManualTime) -> None:
    """The lease ends within the first handler; a second worker handles the event before the first one returns."""

    @inbox.otherwise
    def handle(received: Received) -> None:
        if received.attempt == 1:
            clock.advance(30)
            second = threading.Thread(target=inbox.drain)
            second.start()
            second.join()
        write(received)

    inbox.deliver("whd_1")
    report = inbox.drain()
    assert (report.done, report.failed, report.remaining) == (0, 1, 0)
    assert inbox.written() == ["whd_1"]
    assert inbox.status().done == 1


def test_postgresql_ends_the_transaction_of_a_handler_that_is_idle_for_too_long(
    postgresql_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A frozen worker would hold the locks of its handler's writes otherwise."""
    inbox = Desk.with_event(postgresql_url, handler_timeout=1)
    inbox._clock = StoreTime()

    @inbox.otherwise
    def handle(received: Received) -> None:
        received.connection.exec_driver_sql("CREATE TABLE mine (id INTEGER)")
        with inbox._database.transaction() as other:
            # Waits until the server has ended the other transaction, which would have the name otherwise.
            other.exec_driver_sql("CREATE TABLE mine (id TEXT)")

    assert inbox.drain().failed >= 1
    with inbox._database.transaction() as connection:
        error = connection.exec_driver_sql("SELECT error FROM followup_inbox").scalar_one()
    assert error.endswith("or its handler took longer than handler_timeout")
    inbox.close()
