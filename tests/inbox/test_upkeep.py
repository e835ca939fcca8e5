"""Status, purge and the end of a run."""

import threading
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import create_engine, event
from sqlalchemy.exc import OperationalError
from support.databases import engine_of
from support.times import ManualTime
from support.webhook_events import SECRET

from followup.inbox import Inbox, InboxStatus, Received

from .conftest import Desk, write


@pytest.mark.on_all
def test_status_counts_events_and_names_the_age_of_the_oldest(inbox: Desk, clock: ManualTime) -> None:
    assert inbox.status() == InboxStatus(0, 0, 0, 0, 0, None)
    seen: list[InboxStatus] = []

    @inbox.on("appointment.created")
    def handle(received: Received) -> None:
        seen.append(inbox.status())

    inbox.deliver(minute=1)
    clock.advance(40)
    inbox.deliver(minute=2)
    clock.advance(2.5)
    assert inbox.status() == InboxStatus(
        waiting=2, in_flight=0, dead=0, unhandled=0, done=0, oldest_waiting_seconds=42.5
    )
    inbox.drain()
    assert seen[0] == InboxStatus(waiting=1, in_flight=1, dead=0, unhandled=0, done=0, oldest_waiting_seconds=42.5)
    assert inbox.status() == InboxStatus(0, 0, 0, 0, 2, None)


@pytest.mark.on_all
def test_purge_removes_the_content_of_done_events_for_good(inbox: Desk, clock: ManualTime, database_url: str) -> None:
    inbox.on("appointment.created")(write)
    inbox.deliver("whd_old", minute=1)
    inbox.drain()
    clock.advance(86_400)
    inbox.deliver("whd_new", minute=2)
    inbox.deliver("whd_unhandled", "patient.silent")
    inbox.drain()
    inbox.deliver("whd_waiting", minute=3)
    assert inbox.purge(older_than=timedelta(days=1)) == 1
    assert inbox.purge(older_than=timedelta(days=1)) == 0
    status = inbox.status()
    assert (status.done, status.unhandled, status.waiting) == (1, 1, 1)
    with engine_of(database_url).connect() as connection:
        body, error = connection.exec_driver_sql(
            "SELECT body, error FROM followup_inbox WHERE event_id = 'whd_old'"
        ).one()
    assert (body, error) == (None, None)
    assert inbox.deliver("whd_old", minute=1) == 204
    inbox.drain()
    assert inbox.written() == ["whd_old", "whd_new", "whd_waiting"], "the purged event is not handled again"


@pytest.mark.on_all
def test_purge_takes_dead_and_unhandled_events_if_it_is_told_so(inbox: Desk, clock: ManualTime) -> None:
    @inbox.on("appointment.created")
    def handle(received: Received) -> None:
        raise LookupError

    inbox.deliver("whd_dead")
    inbox.deliver("whd_unhandled", "patient.silent")
    for _ in range(3):
        inbox.drain()
        clock.advance(60)
    assert inbox.purge(older_than=timedelta()) == 0
    assert inbox.purge(older_than=timedelta(), states=["dead", "unhandled"]) == 2
    assert (inbox.status().dead, inbox.status().unhandled, inbox.dead(), inbox.retry()) == (0, 0, [], 0)


@pytest.mark.on_all
@pytest.mark.usefixtures("clock")
def test_retry_names_the_state_of_an_event_that_it_does_not_take(inbox: Desk) -> None:
    found: dict[str, str] = {}

    def try_again(event_id: str) -> None:
        with pytest.raises(ValueError, match=rf"^no dead or unhandled event has the id '{event_id}'") as caught:
            inbox.retry(event_id)
        found[event_id] = str(caught.value).partition("'")[2].partition("'")[2]

    @inbox.on("appointment.created")
    def handle(received: Received) -> None:
        if received.event.id == "whd_failing":
            raise LookupError

    @inbox.on("patient.silent", transaction="own")
    def handle_slowly(received: Received) -> None:
        try_again(received.event.id)

    inbox.deliver("whd_done")
    inbox.deliver("whd_failing", minute=1)
    inbox.deliver("whd_purged", "visit.completed", minute=2, ref="vis_1")
    inbox.deliver("whd_slow", "patient.silent", minute=3, ref="pat_1")
    inbox.drain()
    inbox.purge(older_than=timedelta(), states=["unhandled"])
    for each in ("whd_done", "whd_failing", "whd_purged", "whd_other"):
        try_again(each)
    assert found == {
        "whd_done": ": its state is done",
        "whd_failing": ": its state is waiting",
        "whd_purged": ": its state is unhandled, but its content was purged",
        "whd_slow": ": its state is in_flight",
        "whd_other": "",
    }


@pytest.mark.parametrize("states", [["waiting"], "done", []])
def test_an_invalid_purge_is_an_error(inbox: Desk, states: Any) -> None:
    with pytest.raises(ValueError, match=r"^states must contain"):
        inbox.purge(older_than=timedelta(), states=states)


@pytest.mark.on_all
def test_a_purge_of_any_age_is_taken(inbox: Desk) -> None:
    assert inbox.purge(older_than=timedelta.max) == 0


@pytest.mark.on_all
def test_two_names_have_their_own_events(inbox: Desk, database_url: str) -> None:
    other = Desk(database_url, name="other", secret=SECRET)
    inbox.deliver()
    assert other.status().waiting == 0
    assert other.drain().remaining == 0
    assert (other.retry(), other.purge(older_than=timedelta())) == (0, 0)
    assert other.deliver() == 204
    assert (inbox.status().waiting, other.status().waiting) == (1, 1)
    other.close()


def test_run_handles_what_arrives_and_waits_meanwhile(inbox: Desk, clock: ManualTime) -> None:
    """An event fails at first, and the clock moves only while the worker waits."""
    stop = threading.Event()

    @inbox.on("appointment.created")
    def handle(received: Received) -> None:
        write(received)
        if received.attempt == 1:
            raise LookupError
        stop.set()

    inbox.deliver("whd_1")
    inbox.deliver("whd_2", minute=1)
    inbox.run(stop)
    assert inbox.written() == ["whd_1"], "the event in flight is finished, no other is begun"
    assert clock.waits == [0.5]


def test_run_goes_on_whatever_settling_raises(inbox: Desk, clock: ManualTime, caplog: pytest.LogCaptureFixture) -> None:
    failures: list[Exception] = [ValueError("Ana"), UnicodeEncodeError("utf-8", "Ana", 0, 1, "no"), MemoryError()]
    stop = threading.Event()

    def fail(_: Any, __: Any, statement: str, *___: Any) -> None:
        if failures and "followup_inbox SET state" in statement:
            raise failures.pop()

    @inbox.otherwise
    def handle(received: Received) -> None:
        if received.event.id == "whd_2":
            stop.set()
        else:
            raise LookupError

    inbox.deliver("whd_1")
    inbox.deliver("whd_2", ref="apt_2", minute=1)
    event.listen(inbox._database.engine, "before_cursor_execute", fail)
    inbox.run(stop)
    assert failures == []
    assert inbox.status().done == 1
    assert "nothing is done for " in caplog.text
    assert "ValueError" in caplog.text
    assert "Ana" not in caplog.text


def test_run_waits_longer_after_each_failure_in_a_row(inbox: Desk, clock: ManualTime) -> None:
    stop = threading.Event()
    fails = [True, True, True, False, True]

    def connect(_: Any) -> None:
        if not fails:
            stop.set()
        elif fails.pop(0):
            raise OSError

    inbox.status()  # finds the tables, so that each round connects once
    event.listen(inbox._database.engine, "engine_connect", connect)
    inbox.run(stop)
    for wait, longest in zip(clock.waits, [0.5, 1.0, 2.0, 0.5, 0.5], strict=True):
        assert 0.75 * longest <= wait <= longest


def test_what_is_no_error_ends_run(inbox: Desk) -> None:
    def interrupt(_: Received) -> None:
        raise KeyboardInterrupt

    inbox.otherwise(interrupt)
    inbox.deliver("whd_1")
    with pytest.raises(KeyboardInterrupt):
        inbox.run()


def test_drain_raises_an_outage(sqlite_url: str) -> None:
    inbox = Inbox(create_engine(f"{sqlite_url}.missing/clinic.db"))
    with pytest.raises(OperationalError):
        inbox.drain()
