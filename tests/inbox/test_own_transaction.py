"""Handlers with a transaction of their own: the mark that an event is done commits with their writes, or not at all."""

import contextlib
import gc
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import psycopg
import pytest
from sqlalchemy import create_engine
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool
from support.connections import Open, each_kind
from support.databases import engine_of
from support.times import ManualTime
from support.webhook_events import SECRET, body_of, headers_of

from followup.inbox import Inbox, InboxStatus, Received

from .conftest import CALENDAR, Desk


def insert(received: Received) -> str:
    return f"INSERT INTO calendar (event_id) VALUES ('{received.event.id}')"


def write_and_commit(received: Received, url: str) -> None:
    with engine_of(url).begin() as connection:
        connection.execute(CALENDAR.insert().values(event_id=received.event.id))
        received.done(connection)


@each_kind
def test_the_mark_commits_and_rolls_back_with_the_handlers_writes(
    inbox: Desk, clock: ManualTime, database_url: str, opened: Open
) -> None:
    @inbox.on("appointment.created", transaction="own")
    def handle(received: Received) -> None:
        with opened(database_url) as (connection, execute, commit):
            if received.attempt == 1:
                execute(insert(received))
            assert received.done(connection) is None
            if received.attempt > 1:  # here the mark is the first statement
                execute(insert(received))
                commit()

    inbox.deliver("whd_1")
    with pytest.raises(RuntimeError, match=r"received.done\(connection\) has not committed"):
        inbox.drain(raise_exceptions=True)
    assert (inbox.status().waiting, inbox.status().done, inbox.written()) == (1, 0, [])
    clock.advance(1)
    assert inbox.drain().done == 1
    assert inbox.status() == InboxStatus(0, 0, 0, 0, 1, None)
    assert inbox.drain().done == 0
    assert inbox.written() == ["whd_1"]


@each_kind
def test_done_twice_is_an_error(inbox: Desk, database_url: str, opened: Open) -> None:
    @inbox.otherwise(transaction="own")
    def handle(received: Received) -> None:
        with opened(database_url) as (connection, _, commit):
            received.done(connection)
            received.done(connection)
            commit()

    inbox.deliver("whd_1")
    with pytest.raises(ValueError, match="marked as done already"):
        inbox.drain(raise_exceptions=True)
    assert inbox.status().waiting == 1


@each_kind
def test_done_after_the_lease_is_an_error(inbox: Desk, clock: ManualTime, database_url: str, opened: Open) -> None:
    """Another worker has handled the event meanwhile, or is about to."""

    @inbox.otherwise(transaction="own")
    def handle(received: Received) -> None:
        if received.attempt < 3:
            clock.advance(30)
            if received.attempt == 2:
                thread = threading.Thread(target=inbox.drain)
                thread.start()
                thread.join()
        with opened(database_url) as (connection, execute, commit):
            execute(insert(received))
            received.done(connection)
            commit()

    inbox.deliver("whd_1")
    with pytest.raises(ValueError, match="took longer than handler_timeout"):
        inbox.drain(raise_exceptions=True)
    assert (inbox.status().waiting, inbox.written()) == (1, [])
    clock.advance(1)
    with pytest.raises(ValueError, match=r"marked as done already, .* or by another worker"):
        inbox.drain(raise_exceptions=True)
    assert (inbox.status().done, inbox.written()) == (1, ["whd_1"])


@pytest.mark.on_all
@pytest.mark.parametrize("has_an_inbox", [False, True])
def test_done_in_another_database_is_an_error(
    inbox: Desk, clock: ManualTime, tmp_path: Path, *, has_an_inbox: bool
) -> None:
    other = Inbox(f"sqlite:///{tmp_path / 'other.db'}", secret=SECRET)
    if has_an_inbox:
        other.create_tables()
        body = body_of("whd_other")
        other.receive(body, headers_of(body))

    @inbox.otherwise(transaction="own")
    def handle(received: Received) -> None:
        with contextlib.closing(sqlite3.connect(tmp_path / "other.db")) as connection, connection:
            received.done(connection)

    inbox.deliver("whd_1")
    with pytest.raises(ValueError, match="connection is not to the database of the inbox"):
        inbox.drain(raise_exceptions=True)
    assert inbox.status().waiting == 1


@pytest.mark.on_all
def test_another_try_of_the_handlers_own_is_right(inbox: Desk, database_url: str) -> None:
    """A handler may repeat a transaction that was rolled back."""

    @inbox.otherwise(transaction="own")
    def handle(received: Received) -> None:
        for is_last in (False, True):
            with engine_of(database_url).connect() as connection:
                connection.execute(CALENDAR.insert().values(event_id=received.event.id))
                received.done(connection)
                if is_last:
                    connection.commit()

    inbox.deliver("whd_1")
    assert inbox.drain(raise_exceptions=True).done == 1
    assert inbox.written() == ["whd_1"]


def test_a_handler_that_forgets_done_is_called_again_and_dies_at_last(inbox: Desk, clock: ManualTime) -> None:
    attempts: list[int] = []
    inbox.otherwise(lambda received: attempts.append(received.attempt), transaction="own")
    inbox.deliver("whd_1")
    for _ in range(3):
        inbox.drain()
        clock.advance(60)
    assert attempts == [1, 2, 3]
    (dead,) = inbox.dead()
    assert dead.error.startswith("the handler has returned, but received.done(connection) has not committed")
    inbox.retry()
    with pytest.raises(RuntimeError, match="has not committed"):
        inbox.drain(raise_exceptions=True)


@pytest.mark.on_all
def test_an_exception_after_the_commit_is_logged_and_the_event_is_done(
    inbox: Desk, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    @inbox.otherwise(transaction="own")
    def handle(received: Received) -> None:
        write_and_commit(received, database_url)
        raise LookupError("Ana Núñez")

    inbox.deliver("whd_1")
    assert inbox.drain().done == 1
    message = caplog.records[0].getMessage()
    assert message.startswith("event whd_1, attempt 1 failed: LookupError at test_own_tr")
    assert "in handle\nLookupError" in message
    assert "Núñez" not in caplog.text
    inbox.deliver("whd_2", minute=1)
    with pytest.raises(LookupError):
        inbox.drain(raise_exceptions=True)
    assert inbox.status().done == 2
    assert inbox.written() == ["whd_1", "whd_2"]


@pytest.mark.on_all
def test_each_kind_of_transaction_has_its_own_ways(inbox: Desk, database_url: str) -> None:
    errors: list[str] = []

    @inbox.on("appointment.created", transaction="own")
    def handle(received: Received) -> None:
        for use in (lambda: received.connection, received.session):
            with pytest.raises(RuntimeError) as caught:
                use()
            errors.append(str(caught.value))
        with engine_of(database_url).begin() as connection:
            received.done(connection)

    @inbox.otherwise
    def handle_others(received: Received) -> None:
        with pytest.raises(RuntimeError, match='is for handlers with transaction="own"'):
            received.done(received.connection)

    inbox.deliver("whd_1")
    inbox.deliver("whd_2", "patient.silent", minute=1)
    assert inbox.drain(raise_exceptions=True).done == 2
    assert errors == [errors[0]] * 2
    assert 'transaction="own" has no received.connection' in errors[0]


def test_an_unknown_kind_of_transaction_is_an_error(sqlite_url: str) -> None:
    with pytest.raises(ValueError, match=r'^transaction must be "inbox" or "own"'):
        Inbox(sqlite_url).on("appointment.created", transaction="mine")(print)  # type: ignore[arg-type]


def test_no_transaction_of_the_inbox_is_open_while_the_handler_runs(inbox: Desk, sqlite_url: str) -> None:
    """In SQLite, it would keep others from writing."""

    @inbox.otherwise(transaction="own")
    def handle(received: Received) -> None:
        for _ in range(2):  # two connections, one after the other
            with contextlib.closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), timeout=0)) as connection:
                connection.execute("BEGIN EXCLUSIVE")
        with contextlib.closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as connection, connection:
            received.done(connection)

    inbox.deliver("whd_1")
    assert inbox.drain(raise_exceptions=True).done == 1


def test_postgresql_ends_an_own_transaction_that_is_left_open(postgresql_url: str) -> None:
    """It holds the lock of the event, for which all claims would wait."""
    inbox = Desk.with_event(postgresql_url, handler_timeout=1, max_attempts=1)
    kept: list[Any] = []

    @inbox.otherwise(transaction="own")
    def handle(received: Received) -> None:
        kept.append(psycopg.connect(postgresql_url))
        received.done(kept[0])

    assert inbox.drain().dead == 1
    kept[0].close()
    inbox.close()


@pytest.fixture
def without_garbage_collection() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("without_garbage_collection")
@pytest.mark.parametrize("raises", [False, True])
@pytest.mark.parametrize("fails", ["itself", "in a session", "in a hidden session"])
@pytest.mark.parametrize("transaction", ["own", "inbox"])
def test_a_failed_attempt_leaves_nothing_alive(
    sqlite_url: str, transaction: Literal["own", "inbox"], fails: str, *, raises: bool
) -> None:
    """Such as a connection with the lock of a row, for which the next attempt would wait."""

    class Connection: ...

    class CannotError(Exception): ...

    kept: list[weakref.ref[object]] = []
    inbox = Desk.with_event(sqlite_url)

    @inbox.otherwise(transaction=transaction)
    def handle(received: Received) -> None:
        connection, error = Connection(), CannotError()
        kept.extend([weakref.ref(connection), weakref.ref(error)])
        try:
            if transaction == "own" or fails == "itself":
                raise error
            with contextlib.suppress(CannotError if "hidden" in fails else ()), received.session():
                raise error
        finally:
            del error

    with contextlib.suppress(CannotError, RuntimeError):
        inbox.drain(raise_exceptions=raises)
    assert inbox.status().waiting == 1
    assert [each() for each in kept] == [None, None]


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("is_forgotten", [True, False])
def test_a_transaction_that_a_failed_handler_leaves_open(
    sqlite_url: str, caplog: pytest.LogCaptureFixture, *, is_forgotten: bool
) -> None:
    """It ends with the attempt; one that is kept elsewhere hides nothing of why the handler failed."""
    inbox = Desk.with_event(create_engine(sqlite_url, poolclass=NullPool, connect_args={"timeout": 0.1}))
    kept: list[sqlite3.Connection] = []

    @inbox.otherwise(transaction="own")
    def handle(_: Received) -> None:
        connection = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))
        connection.execute("UPDATE followup_inbox SET ref = ref")
        if not is_forgotten:
            kept.append(connection)
        raise LookupError("Ana")

    if is_forgotten:
        assert (inbox.drain().failed, inbox.status().waiting) == (1, 1)
    else:
        with pytest.raises(OperationalError, match="locked"):
            inbox.drain()
        assert "event whd_1, attempt 1 failed: LookupError at test_own_transaction.py:" in caplog.text
        assert "; this cannot be recorded now\n" in caplog.text
        kept[0].close()
    assert "Ana" not in caplog.text
