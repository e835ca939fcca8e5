"""``drain`` calls the handler of each event, in a transaction that marks the event as done."""

import asyncio
import concurrent.futures
import contextlib
import functools
import itertools
import logging
import re
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta
from typing import Any, Literal

import pytest
from sqlalchemy import Connection, text
from sqlalchemy import event as sqlalchemy_event
from support.databases import engine_of
from support.times import ManualTime

from followup.inbox import DrainReport, Inbox, Received

from .conftest import CALENDAR, Desk, write, written


@pytest.mark.on_all
def test_work_and_mark_commit_together(inbox: Desk) -> None:
    inbox.on("appointment.created")(write)
    inbox.deliver("whd_1")
    inbox.deliver("whd_1")
    assert inbox.drain() == DrainReport(done=1, failed=0, dead=0, unhandled=0, remaining=0)
    inbox.deliver("whd_1")
    assert inbox.drain().done == 0
    assert inbox.written() == ["whd_1"]


def test_the_handler_gets_the_event(inbox: Desk) -> None:
    seen: list[Received] = []
    inbox.on("appointment.created")(seen.append)
    inbox.deliver("whd_1", minute=5)
    inbox.drain()
    (received,) = seen
    assert (received.event.id, received.event.ref, received.attempt, received.is_stale) == ("whd_1", "apt_1", 1, False)
    assert received.event.data["patient"]["fullName"] == "Ana Núñez"
    assert "Núñez" not in repr(received)


@pytest.mark.on_all
def test_a_handler_that_raises_is_rolled_back_and_tried_again(inbox: Desk, clock: ManualTime) -> None:
    attempts = []

    @inbox.on("appointment.created")
    def handle(received: Received) -> None:
        attempts.append(received.attempt)
        write(received)
        if received.attempt < 3:
            raise LookupError

    inbox.deliver("whd_1")
    assert inbox.drain() == DrainReport(done=0, failed=1, dead=0, unhandled=0, remaining=1)
    assert inbox.drain().failed == 0, "it is not due yet"
    assert inbox.written() == []
    clock.advance(0.5)
    assert inbox.drain().failed == 1
    clock.advance(0.5)
    assert inbox.drain().failed == 0, "the second wait is longer"
    clock.advance(0.5)
    assert inbox.drain().done == 1
    assert attempts == [1, 2, 3]
    assert inbox.written() == ["whd_1"]


@pytest.mark.on_all
def test_after_the_last_attempt_an_event_is_dead_and_retry_starts_again(inbox: Desk, clock: ManualTime) -> None:
    attempts: list[int] = []

    @inbox.on("appointment.created")
    def handle(received: Received) -> None:
        attempts.append(received.attempt)
        if len(attempts) <= 3:
            raise LookupError("Ana Núñez")
        write(received)

    inbox.deliver("whd_1")
    reports = []
    for _ in range(4):
        reports.append(inbox.drain())
        clock.advance(60)
    assert [(each.failed, each.dead, each.remaining) for each in reports] == [
        (1, 0, 1),
        (1, 0, 1),
        (0, 1, 0),
        (0, 0, 0),
    ]
    (dead,) = inbox.dead()
    assert (dead.event.id, dead.attempts) == ("whd_1", 3)
    assert dead.error.startswith("LookupError: Ana Núñez at test_handling.py:")
    assert "Núñez" not in repr(dead)
    assert inbox.deliver("whd_1") == 204
    assert inbox.drain().done == 0, "a repeated delivery does not revive it"
    with pytest.raises(ValueError, match=r"^no dead or unhandled event has the id 'whd_other'"):
        inbox.retry("whd_other")
    assert inbox.retry("whd_1") == 1
    assert inbox.drain().done == 1
    assert attempts == [1, 2, 3, 1]
    assert inbox.dead() == []


@pytest.mark.on_all
def test_events_of_one_ref_are_handled_oldest_first(inbox: Desk) -> None:
    inbox.on("appointment.created")(write)
    for minute in (3, 1, 2, 1.5, 1.50002):
        inbox.deliver(f"whd_{minute}", minute=minute)
    inbox.drain()
    assert inbox.written() == ["whd_1", "whd_1.5", "whd_1.50002", "whd_2", "whd_3"]


@pytest.mark.on_all
def test_a_retried_older_event_holds_the_newer_ones_of_its_ref_only(inbox: Desk, clock: ManualTime) -> None:
    @inbox.on("appointment.created")
    def handle(received: Received) -> None:
        if received.event.id == "whd_old" and received.attempt == 1:
            raise LookupError
        write(received)

    inbox.deliver("whd_old", minute=1)
    inbox.deliver("whd_new", minute=2)
    inbox.deliver("whd_other", ref="apt_2", minute=3)
    inbox.drain()
    assert inbox.written() == ["whd_other"]
    clock.advance(1)
    inbox.drain()
    assert inbox.written() == ["whd_other", "whd_old", "whd_new"]


def test_a_dead_event_no_longer_holds_the_newer_ones(inbox: Desk, clock: ManualTime) -> None:
    stale: dict[str, bool] = {}

    @inbox.on("appointment.created")
    def handle(received: Received) -> None:
        if received.event.id == "whd_old" and not stale:
            raise LookupError
        stale[received.event.id] = received.is_stale

    inbox.deliver("whd_old", minute=1)
    inbox.deliver("whd_new", minute=2)
    for _ in range(3):
        inbox.drain()
        clock.advance(60)
    assert stale == {"whd_new": False}
    inbox.retry()
    inbox.drain()
    assert stale == {"whd_new": False, "whd_old": True}


@pytest.mark.on_all
def test_an_older_event_that_arrives_late_is_stale(inbox: Desk) -> None:
    stale: dict[str, bool] = {}

    @inbox.otherwise
    def handle(received: Received) -> None:
        stale[received.event.id] = received.is_stale

    inbox.deliver("whd_new", minute=2)
    inbox.drain()
    inbox.deliver("whd_old", minute=1)
    inbox.deliver("whd_same", minute=2)
    inbox.deliver("whd_other", ref="apt_2", minute=1)
    inbox.drain()
    inbox.purge(older_than=timedelta())
    inbox.deliver("whd_older", minute=0)
    inbox.drain()
    assert stale == {"whd_new": False, "whd_old": True, "whd_same": False, "whd_other": False, "whd_older": True}


@pytest.mark.on_all
def test_an_event_in_flight_holds_all_others_of_its_ref(inbox: Desk) -> None:
    """A second worker handles other refs meanwhile, but not an older event of this one that arrives now."""

    @inbox.on("appointment.created")
    def handle(received: Received) -> None:
        if received.event.id == "whd_slow":
            inbox.deliver("whd_older", minute=1)
            inbox.deliver("whd_newer", minute=3)
            inbox.deliver("whd_other", ref="apt_2", minute=4)
            thread = threading.Thread(target=lambda: reports.append(inbox.drain()))
            thread.start()
            thread.join()
        write(received)

    reports: list[DrainReport] = []
    inbox.deliver("whd_slow", minute=2)
    inbox.drain()
    assert (reports[0].done, reports[0].remaining) == (1, 3)
    assert inbox.written() == ["whd_other", "whd_slow", "whd_older", "whd_newer"]


@pytest.mark.on_all
def test_a_type_without_a_handler_is_kept_as_unhandled(inbox: Desk, clock: ManualTime) -> None:
    inbox.on("appointment.created")(write)
    inbox.deliver("whd_1", "patient.silent", minute=1)
    inbox.deliver("whd_2", minute=2)
    assert inbox.drain() == DrainReport(done=1, failed=0, dead=0, unhandled=1, remaining=0)
    assert inbox.status().unhandled == 1
    inbox.on("patient.silent")(write)
    assert inbox.drain().done == 0
    assert inbox.retry() == 1
    assert inbox.drain().done == 1
    assert inbox.written() == ["whd_2", "whd_1"]


def test_otherwise_handles_all_other_types_unknown_ones_too(inbox: Desk) -> None:
    types = []
    inbox.on("appointment.created")(lambda received: types.append(f"own: {received.event.type}"))
    inbox.otherwise(lambda received: types.append(f"otherwise: {received.event.type}"))
    inbox.deliver(type="appointment.created", minute=1)
    inbox.deliver(type="webhook.ping", minute=2)
    inbox.deliver(type="patient.moved", minute=3)
    inbox.drain()
    assert types == ["own: appointment.created", "otherwise: webhook.ping", "otherwise: patient.moved"]


@pytest.mark.parametrize(
    ("types", "reason"),
    [
        (("xyz",), "'xyz' is not an event type: it must be one of intake.requested, .*webhook.ping"),
        ((), "needs event types"),
        ((write,), r'such as @inbox.on\("appointment.created"\)'),
    ],
)
def test_a_type_that_does_not_exist_is_an_error(sqlite_url: str, types: tuple[str, ...], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Inbox(sqlite_url).on(*types)  # type: ignore[arg-type]


def test_a_second_handler_is_an_error_that_names_the_first(sqlite_url: str) -> None:
    inbox = Inbox(sqlite_url)
    inbox.on("appointment.created", "appointment.cancelled")(write)
    with pytest.raises(ValueError, match=r"appointment.cancelled has a handler already, write"):
        inbox.on("visit.completed", "appointment.cancelled")(print)
    inbox.on("visit.completed")(print)
    inbox.otherwise(write)
    with pytest.raises(ValueError, match="otherwise has a handler already, write"):
        inbox.otherwise(print)


@pytest.mark.on_all
def test_the_inbox_writes_nothing_before_the_handler_and_its_mark_is_the_last_statement(inbox: Desk) -> None:
    statements: list[str] = []
    inbox.on("appointment.created")(write)
    inbox.deliver()
    engine = inbox._database.engine
    sqlalchemy_event.listen(engine, "before_cursor_execute", lambda *args: statements.append(args[2]))
    sqlalchemy_event.listen(engine, "begin", lambda _: statements.append("BEGIN"))
    sqlalchemy_event.listen(engine, "commit", lambda _: statements.append("COMMIT"))
    inbox.drain()
    place = next(i for i, each in enumerate(statements) if each.startswith("INSERT INTO calendar"))
    begin = max(i for i in range(place) if statements[i] == "BEGIN")
    end = statements.index("COMMIT", place)
    harmless = ("SET ", "SAVEPOINT ", "RELEASE ")
    assert all(each.startswith(harmless) for each in statements[begin + 1 : place])
    *between, mark = statements[place + 1 : end]
    assert all(each.startswith(harmless) for each in between)
    assert re.match(r"UPDATE (\w+\.)?followup_inbox SET state=", mark)


def test_a_handler_may_write_to_the_same_file_over_another_connection(sqlite_url: str) -> None:
    inbox = Desk.with_event(sqlite_url)
    with engine_of(sqlite_url).begin() as connection:
        CALENDAR.create(connection)

    @inbox.otherwise
    def handle(received: Received) -> None:
        with engine_of(sqlite_url).begin() as connection:
            connection.exec_driver_sql("PRAGMA busy_timeout = 0")
            connection.execute(CALENDAR.insert().values(event_id=received.event.id))

    assert inbox.drain().done == 1
    assert written(sqlite_url) == ["whd_1"]


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_a_lost_connection_is_not_taken_for_a_handler_that_commits(inbox: Desk) -> None:
    @inbox.otherwise
    def handle(received: Received) -> None:
        received.connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))

    inbox.deliver()
    assert inbox.drain().failed == 1


async def coroutine(_: Received) -> None: ...


async def asynchronous_generator(_: Received) -> AsyncIterator[None]:
    yield


def generator(_: Received) -> Iterator[None]:
    yield


class WithAsyncCall:
    async def __call__(self, _: Received) -> None: ...


class WithGeneratorCall:
    def __call__(self, _: Received) -> Iterator[None]:
        yield


def future_of_asyncio(_: Received) -> Any:
    with contextlib.closing(asyncio.new_event_loop()) as loop:
        return loop.create_future()


@pytest.mark.parametrize(
    "function",
    [
        coroutine,
        asynchronous_generator,
        generator,
        functools.partial(functools.partial(coroutine)),
        functools.partial(WithGeneratorCall()),
        WithAsyncCall(),
        WithAsyncCall().__call__,
    ],
)
def test_a_function_whose_code_would_not_run_is_no_handler(sqlite_url: str, function: Any) -> None:
    inbox = Inbox(sqlite_url)
    for register in (inbox.otherwise, inbox.on("appointment.created"), inbox.otherwise(transaction="own")):
        with pytest.raises(TypeError, match=r"(coroutine|generator) function"):
            register(function)


@pytest.mark.parametrize("transaction", ["inbox", "own"])
@pytest.mark.parametrize(
    "function",
    [
        coroutine,
        asynchronous_generator,
        generator,
        WithAsyncCall(),
        lambda _: concurrent.futures.Future[None](),
        future_of_asyncio,
        lambda received: map(write, [received]),
        lambda received: itertools.starmap(write, [(received,)]),
    ],
)
def test_a_handler_whose_code_has_not_run_is_never_done(
    inbox: Desk, function: Callable[[Received], Any], transaction: Literal["inbox", "own"]
) -> None:
    inbox.otherwise(lambda received: function(received), transaction=transaction)
    inbox.deliver()
    assert inbox.drain().failed == 1
    assert inbox.status().done == 0


@pytest.mark.on_all
def test_a_handler_may_return_what_its_statement_returned(inbox: Desk) -> None:
    inserting: Any = lambda received: received.connection.execute(CALENDAR.insert().values(event_id="whd_1"))  # noqa: E731
    inbox.otherwise(inserting)
    inbox.deliver("whd_1")
    assert inbox.drain().done == 1
    assert inbox.written() == ["whd_1"]


@pytest.mark.parametrize(
    "end",
    [
        lambda connection: connection.commit(),
        lambda connection: connection.exec_driver_sql("COMMIT"),
        lambda connection: connection.execute(text("/* mine */ commit")),
        lambda connection: connection.exec_driver_sql("ROLLBACK"),
        lambda connection: connection.connection.driver_connection.commit(),
    ],
)
@pytest.mark.parametrize("raises", [False, True])
@pytest.mark.on_all
def test_a_handler_that_ends_its_transaction_is_dead_at_once(
    inbox: Desk, end: Callable[[Connection], object], *, raises: bool
) -> None:
    @inbox.on("appointment.created")
    def handle(received: Received) -> None:
        write(received)
        end(received.connection)
        if raises:
            raise LookupError

    inbox.deliver("whd_1")
    assert inbox.drain().dead == 1
    assert inbox.dead()[0].error.startswith("the handler committed or rolled back received.connection")


@pytest.mark.parametrize("raises", [False, True])
def test_a_script_of_sqlite_that_commits_by_itself_is_noticed(inbox: Desk, *, raises: bool) -> None:
    @inbox.otherwise
    def handle(received: Received) -> None:
        driver: Any = received.connection.connection.driver_connection
        driver.executescript(f"INSERT INTO calendar (event_id) VALUES ('{received.event.id}')")
        if raises:
            raise LookupError

    inbox.deliver("whd_1")
    assert inbox.drain().dead == 1
    assert inbox.dead()[0].error.startswith("the handler committed or rolled back received.connection")


@pytest.mark.on_all
def test_a_savepoint_commits_with_the_mark(inbox: Desk, clock: ManualTime) -> None:
    """In SQLite, a savepoint that is the first statement would commit by itself."""

    @inbox.on("appointment.created")
    def handle(received: Received) -> None:
        with received.connection.begin_nested():
            write(received)
        if received.attempt == 1:
            raise LookupError

    inbox.deliver("whd_1")
    assert inbox.drain().failed == 1
    assert inbox.written() == []
    clock.advance(1)
    assert inbox.drain().done == 1
    assert inbox.written() == ["whd_1"]


def test_logs_show_no_data(inbox: Desk, clock: ManualTime, caplog: pytest.LogCaptureFixture) -> None:
    @inbox.on("appointment.created")
    def handle(received: Received) -> None:
        received.connection.execute(text("SELECT * FROM missing WHERE name = :name"), {"name": "Ana Núñez"})

    inbox.deliver("whd_1")
    with caplog.at_level(logging.DEBUG, "followup"):
        for _ in range(3):
            inbox.drain()
            clock.advance(60)
    messages = [each.getMessage().splitlines()[0] for each in caplog.records]
    assert len(messages) == 3
    assert messages[0].startswith("event whd_1, attempt 1 failed: ")
    assert "Error at test_handling.py:" in messages[0]
    assert messages[0].endswith(" s")
    assert messages[-1].endswith("; it is dead")
    assert "Núñez" not in caplog.text
    assert "Núñez" not in inbox.dead()[0].error
    assert "missing" in inbox.dead()[0].error


def test_the_log_of_a_failure_has_a_traceback_with_its_causes_but_no_text(
    inbox: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    def book(name: str) -> None:
        raise LookupError(name)

    @inbox.otherwise
    def handle(received: Received) -> None:
        try:
            book("Ana Núñez")
        except LookupError as error:
            error.add_note("of Ana Núñez")
            try:
                raise ValueError("Ana Núñez") from error  # noqa: TRY301
            except ValueError:
                raise KeyError("Ana Núñez")  # noqa: B904

    inbox.deliver("whd_1")
    inbox.drain()
    message = caplog.records[0].getMessage()
    lines = [re.sub(r'".*test_handling.py", line \d+', "PLACE", each) for each in message.splitlines()[1:]]
    start = "Traceback (most recent call last):"
    assert lines == [
        *[start, "  File PLACE, in handle", "  File PLACE, in book", "LookupError", ""],
        *["The exception above led to this one:", ""],
        *[start, "  File PLACE, in handle", "ValueError", ""],
        *["The exception above led to this one:", ""],
        *[start, "  File PLACE, in handle", "KeyError"],
    ]
    assert "Núñez" not in caplog.text


def test_the_log_of_a_failure_is_bounded(inbox: Desk, caplog: pytest.LogCaptureFixture) -> None:
    def recurse() -> None:
        recurse()

    @inbox.on("appointment.created")
    def handle(received: Received) -> None:
        error: Exception = LookupError()
        for _ in range(10_000):
            cause, error = error, LookupError()
            error.__cause__ = cause
        error.__cause__.__context__ = error  # a circle
        raise error

    inbox.on("patient.silent")(lambda _: recurse())
    inbox.deliver()
    inbox.deliver(type="patient.silent", ref="pat_1")
    assert inbox.drain().failed == 2
    assert all(len(each.getMessage().splitlines()) < 100 for each in caplog.records)


def test_drain_raises_the_exception_of_a_handler_once_it_is_recorded(inbox: Desk, clock: ManualTime) -> None:
    own = LookupError("Ana Núñez")

    @inbox.on("appointment.created")
    def handle(received: Received) -> None:
        raise own

    inbox.deliver("whd_1")
    inbox.deliver("whd_2", ref="apt_2", minute=1)
    for _ in range(2):
        with pytest.raises(LookupError) as caught:
            inbox.drain(raise_exceptions=True)
        assert caught.value is own
    assert inbox.drain(raise_exceptions=True).remaining == 2, "both wait for their retry"
    assert inbox.status().dead == 0
    for _ in range(2):
        clock.advance(60)
        inbox.drain()
    assert [each.error.partition(" at ")[0] for each in inbox.dead()] == ["LookupError: Ana Núñez"] * 2


@pytest.mark.on_all
def test_an_error_with_any_text_is_stored(inbox: Desk) -> None:
    @inbox.on("appointment.created")
    def handle(received: Received) -> None:
        raise LookupError("\0\ud800" + "a" * 100_000)

    inbox.deliver()
    assert inbox.drain().failed == 1


def test_the_deadline_ends_a_drain_between_events(inbox: Desk, clock: ManualTime) -> None:
    inbox.on("appointment.created")(lambda _: clock.advance(10))
    for minute in range(3):
        inbox.deliver(minute=minute)
    assert inbox.drain(deadline=15) == DrainReport(done=2, failed=0, dead=0, unhandled=0, remaining=1)
    assert inbox.drain(deadline=15).done == 1
