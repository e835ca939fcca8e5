"""ORM sessions in a handler: what they were given is written, or the event is not done."""

import contextlib
import gc
import itertools
from collections.abc import Callable
from operator import methodcaller

import pytest
from sqlalchemy import create_engine, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, sessionmaker
from support.databases import engine_of
from support.times import ManualTime

from followup.inbox import Received

from .conftest import CALENDAR, Desk, write


class Base(DeclarativeBase):
    pass


class Visit(Base):
    """A row of the user's table, as an object."""

    __tablename__ = CALENDAR.name
    id: Mapped[int] = mapped_column(primary_key=True)
    event_id: Mapped[str]
    note: Mapped[str | None]


class Note(Base):
    """A table of which nobody writes anything."""

    __tablename__ = "notes"
    id: Mapped[int] = mapped_column(primary_key=True)


@pytest.fixture(autouse=True)
def existing(inbox: Desk, database_url: str) -> None:
    """A row that handlers change."""
    with engine_of(database_url).begin() as connection:
        connection.execute(CALENDAR.insert().values(event_id="whd_0", note="old"))


def rows(url: str) -> list[tuple[str, str]]:
    with engine_of(url).connect() as connection:
        return [tuple(row) for row in connection.execute(select(CALENDAR.c.event_id, CALENDAR.c.note))]


def changes(session: Session, received: Received) -> None:
    session.add(Visit(event_id=received.event.id, note="new"))
    session.scalars(select(Visit).where(Visit.event_id == "whd_0")).one().note = "changed"


@pytest.mark.on_all
def test_what_was_added_to_a_session_commits_with_the_mark(inbox: Desk, clock: ManualTime, database_url: str) -> None:
    @inbox.on("appointment.created")
    def handle(received: Received) -> None:
        with received.session() as session:
            changes(session, received)
        if received.attempt == 1:
            raise LookupError

    inbox.deliver("whd_1")
    assert inbox.drain().failed == 1
    assert rows(database_url) == [("whd_0", "old")]
    clock.advance(1)
    assert inbox.drain().done == 1
    assert sorted(rows(database_url)) == [("whd_0", "changed"), ("whd_1", "new")]


@pytest.mark.on_all
@pytest.mark.parametrize("hides_it", [False, True])
def test_an_exception_that_leaves_the_block_rolls_all_back(
    inbox: Desk, clock: ManualTime, database_url: str, *, hides_it: bool
) -> None:
    @inbox.on("appointment.created")
    def handle(received: Received) -> None:
        write(received)
        try:
            with received.session() as session:
                changes(session, received)
                session.flush()
                if received.attempt == 1:
                    raise LookupError  # noqa: TRY301
        except LookupError:
            if not hides_it:
                raise

    inbox.deliver("whd_1")
    assert inbox.drain().failed == 1
    assert rows(database_url) == [("whd_0", "old")]
    clock.advance(1)
    assert inbox.drain().done == 1
    assert len(rows(database_url)) == 3


@pytest.mark.on_all
@pytest.mark.parametrize("hides_it", [False, True])
@pytest.mark.parametrize("by_block", [False, True])
def test_a_commit_in_the_session_is_an_error_and_commits_nothing(
    inbox: Desk, database_url: str, *, by_block: bool, hides_it: bool
) -> None:
    @inbox.on("appointment.created")
    def handle(received: Received) -> None:
        try:
            with received.session() as session:
                if by_block:
                    with session.begin():
                        changes(session, received)
                else:
                    changes(session, received)
                    session.commit()
        except RuntimeError:
            if not hides_it:
                raise

    inbox.deliver("whd_1")
    assert inbox.drain().dead == 1
    assert inbox.dead()[0].error.startswith("the handler called commit() in received.session()")
    assert rows(database_url) == [("whd_0", "old")]


@pytest.mark.on_all
def test_a_rollback_in_the_session_is_an_error(inbox: Desk) -> None:
    @inbox.on("appointment.created")
    def handle(received: Received) -> None:
        with received.session() as session:
            session.add(Visit(event_id=received.event.id))
            session.flush()
            session.rollback()

    inbox.deliver("whd_1")
    with pytest.raises(RuntimeError, match=r"^the handler committed or rolled back received.connection"):
        inbox.drain(raise_exceptions=True)
    assert inbox.status().waiting == 1


@pytest.mark.on_all
@pytest.mark.parametrize("is_own", [False, True])
def test_a_flush_that_fails_is_tried_again(inbox: Desk, clock: ManualTime, *, is_own: bool) -> None:
    """The session then rolls its transaction back, and so that of the handler."""

    @inbox.on("appointment.created")
    def handle(received: Received) -> None:
        with Session(received.connection) if is_own else received.session() as session:
            session.add(Visit(id=1 if received.attempt == 1 else 2, event_id=received.event.id))
            session.flush()

    inbox.deliver("whd_1")
    with pytest.raises(IntegrityError):
        inbox.drain(raise_exceptions=True)
    clock.advance(1)
    assert inbox.drain().done == 1
    assert inbox.written() == ["whd_0", "whd_1"]


def test_a_savepoint_in_the_session_rolls_back_alone(inbox: Desk, database_url: str) -> None:
    @inbox.on("appointment.created")
    def handle(received: Received) -> None:
        with received.session() as session:
            with session.begin_nested():
                changes(session, received)
            with session.begin_nested() as savepoint:
                session.add(Visit(event_id="never"))
                session.flush()
                savepoint.rollback()

    inbox.deliver("whd_1")
    assert inbox.drain(raise_exceptions=True).done == 1
    assert sorted(rows(database_url)) == [("whd_0", "changed"), ("whd_1", "new")]


def within_a_savepoint(received: Received) -> None:
    with received.connection.begin_nested(), received.session() as session:
        changes(session, received)


def committed_own_session(received: Received) -> None:
    with received.connection.begin_nested(), Session(received.connection) as session:
        changes(session, received)
        session.flush()
        session.expunge_all()
        session.commit()


def own_session_in_a_block(received: Received) -> None:
    with Session(received.connection, join_transaction_mode="create_savepoint") as session, session.begin():
        changes(session, received)


def read_in_a_savepoint(received: Received) -> None:
    within_a_savepoint(received)
    with received.connection.begin_nested(), Session(received.connection) as session:
        session.scalars(select(Visit)).all()


def savepoint_of_a_failed_try(received: Received) -> None:
    within_a_savepoint(received)
    with contextlib.suppress(LookupError), Session(received.connection) as session, session.begin_nested():
        session.add(Visit(event_id="never"))
        session.flush()
        raise LookupError


def flushed_and_committed_sessions(received: Received) -> None:
    with Session(received.connection) as session:
        session.scalars(select(Visit)).one().note = "old"  # as it was
    with Session(received.connection) as session, session.begin():
        changes(session, received)
    with Session(received.connection) as session:
        kept = session.scalars(select(Visit)).first()
        dropped = Visit(event_id="never")
        session.add(dropped)
        session.expunge(dropped)
        assert kept in session


RIGHT = [
    flushed_and_committed_sessions,
    within_a_savepoint,
    committed_own_session,
    own_session_in_a_block,
    read_in_a_savepoint,
    savepoint_of_a_failed_try,
]


@pytest.mark.on_all
@pytest.mark.parametrize("work", RIGHT)
def test_what_is_written_within_a_savepoint_is_kept(
    inbox: Desk, database_url: str, work: Callable[[Received], None]
) -> None:
    inbox.otherwise(work)
    inbox.deliver("whd_1")
    assert inbox.drain(raise_exceptions=True).done == 1
    assert sorted(rows(database_url)) == [("whd_0", "changed"), ("whd_1", "new")]


def test_a_savepoint_of_the_session_that_is_left_open_is_an_error(
    inbox: Desk, clock: ManualTime, database_url: str
) -> None:
    @inbox.otherwise
    def handle(received: Received) -> None:
        if received.attempt == 1:
            with received.session() as session:
                session.begin_nested()
                changes(session, received)

    inbox.deliver("whd_1")
    with pytest.raises(RuntimeError, match=r"the handler left a savepoint of received.session\(\) open"):
        inbox.drain(raise_exceptions=True)
    assert (inbox.status().done, rows(database_url)) == (0, [("whd_0", "old")])
    clock.advance(1)
    assert inbox.drain().done == 1


Open = Callable[[Received], Session]
makers = sessionmaker(autoflush=False)

OWN_SESSIONS: dict[str, Open] = {
    "plain": lambda received: Session(received.connection),
    "bind": lambda received: Session(bind=received.connection, autoflush=False, expire_on_commit=False),
    "binds": lambda received: Session(binds={Base: received.connection}),
    "bind of a class": lambda received: Session(create_engine("sqlite://"), binds={Visit: received.connection}),
    "sessionmaker": lambda received: makers(bind=received.connection),
    "savepoint": lambda received: Session(received.connection, join_transaction_mode="create_savepoint"),
}


def add(session: Session) -> None:
    session.add(Visit(event_id="lost"))


def change(session: Session) -> None:
    session.scalars(select(Visit)).first().note = "lost"  # type: ignore[union-attr]


def delete(session: Session) -> None:
    session.delete(session.scalars(select(Visit)).one())


@pytest.mark.parametrize(
    ("work", "end"),
    [
        *itertools.product((add, change), (methodcaller("close"), methodcaller("reset"), methodcaller("expunge_all"))),
        *itertools.product((add, change, delete), (lambda _: gc.collect(),)),
    ],
)
def test_unflushed_objects_in_an_own_session_are_an_error(
    inbox: Desk, database_url: str, work: Callable[[Session], None], end: Callable[[Session], object]
) -> None:
    @inbox.on("appointment.created")
    def handle(received: Received) -> None:
        session = Session(received.connection)
        work(session)
        end(session)

    inbox.deliver("whd_1")
    with pytest.raises(RuntimeError, match=r"unflushed objects \(Visit\) in a Session of its own: .*received.session"):
        inbox.drain(raise_exceptions=True)
    assert inbox.status().done == 0
    assert rows(database_url) == [("whd_0", "old")]


@pytest.mark.parametrize("open_session", OWN_SESSIONS.values(), ids=OWN_SESSIONS.keys())
def test_it_holds_for_every_kind_of_session(inbox: Desk, open_session: Open, clock: ManualTime) -> None:
    @inbox.on("appointment.created")
    def handle(received: Received) -> None:
        with open_session(received) as session:
            add(session)
            if received.attempt == 2:
                session.commit()

    inbox.deliver("whd_1")
    assert inbox.drain().failed == 1
    assert inbox.written() == ["whd_0"]
    clock.advance(1)
    assert inbox.drain().done == 1
    assert inbox.written() == ["whd_0", "lost"]


def test_sessions_on_other_connections_are_the_handlers_own_business(inbox: Desk, database_url: str) -> None:
    other = engine_of(database_url)

    @inbox.on("appointment.created")
    def handle(received: Received) -> None:
        with Session(other) as session:
            add(session)
        with Session() as session:
            add(session)
        with Session(binds={Visit: received.connection}) as session:
            session.add(Note())

    inbox.deliver("whd_1")
    assert inbox.drain(raise_exceptions=True).done == 1
