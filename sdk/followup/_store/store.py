"""What an Outbox and an Inbox are both: the events of one name in a table, and the rounds of work on them."""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import ClassVar, TypeVar

from sqlalchemy import URL, ColumnElement, Connection, Engine, Table, func, select

from followup._core.call.options import show_log
from followup._core.errors import ConfigurationError
from followup._store.cipher import Cipher, Hash, RowCipher, unhashed
from followup._store.database import Database
from followup._store.execution import Execution, executing, reason_of, run
from followup._store.leases import POLL_SECONDS, StoreTime, retry_wait, take_lock
from followup._store.places import Comparison
from followup._store.schema import IN_FLIGHT, WAITING, Schema, checked_text

_LONGEST_PAUSE = 30.0
"""Seconds, at most, until the next round after one that failed."""

T = TypeVar("T")


class Store:
    """The base class of Outbox and Inbox.

    The version of the tables is checked before they are first used, and never again once it was right: a process that
    runs while another release changes the tables has to be restarted.
    """

    _schema: ClassVar[Schema]
    _events: ClassVar[Table]
    _encrypted: ClassVar[Sequence[str]]
    """The columns that are encrypted; subjects are hashed."""

    def __init__(self, database: str | URL | Engine, name: str, cipher: Cipher | None) -> None:
        show_log()
        try:
            self.name: str = checked_text(name, "name")
        except ValueError as error:
            raise ConfigurationError(str(error)) from None
        self._cipher = RowCipher(cipher, self._schema.component, self.name)
        self._hashed: Hash = unhashed
        self._database = Database(database)
        self._comparison: Comparison | None = Comparison(self._database, self._schema.component)
        self._clock = StoreTime()
        self._is_version_checked = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._database!r}, name={self.name!r})"

    def close(self) -> None:
        """Close the connections that were opened for this object. Those of your own Engine stay open."""
        self._database.close()

    def ddl(self, from_version: int | None = None) -> str:
        """Return the SQL that creates the tables, for your own migrations. It can be run again.

        Args:
            from_version: version of the tables that are there, for the SQL that brings them up to date instead.

        Raises:
            ValueError: there is no such version.
        """
        return self._schema.ddl(self._database.dialect, from_version)

    def create_tables(self) -> None:
        """Create the tables that do not exist yet, and bring those of an earlier release up to date.

        It can be called again.

        Raises:
            ConfigurationError: the tables exist, made by a later release, or encrypted under another cipher.
        """
        self._schema.create(self._database)
        if self._cipher.is_on:
            self._check_tables()

    def _check_tables(self, longest_wait: float | None = None) -> None:
        """Check the version of the tables, and that they are encrypted under this cipher, unless both were so already.

        Raises:
            ConfigurationError: they are missing, have another version, or are encrypted under another cipher.
        """
        if not self._is_version_checked:
            self._database.check_file(self._schema.component)
            with self._database.transaction(longest_wait) as connection:
                self._database.find_tables(connection)
                self._schema.check(connection)
                hashed = self._cipher.hash_in(connection.execute(self._cipher.salt_query).all())
            # In another transaction, because one of SQLite that has read cannot always write.
            if hashed is None:
                with self._database.transaction(longest_wait) as connection:
                    hashed = run(self._cipher.hash_on(executing(connection), self._adopt))
            self._hashed = hashed
            self._is_version_checked = True

    @staticmethod
    async def _adopt(execute: Execution, name: str, hashed: Hash) -> None:
        """Hash the subjects of the events of before the first cipher, in the transaction that stores the salt."""

    def _has_tables(self) -> bool:
        """Return whether there are tables, of whatever version, in a database that exists."""
        self._database.check_file(self._schema.component)
        with self._database.transaction() as connection:
            self._database.find_tables(connection)
            return self._schema.found_version(connection) is not None

    @contextmanager
    def _checked_transaction(self, longest_wait: float | None = None) -> Iterator[Connection]:
        """Begin a transaction on tables that exist and have the right version."""
        self._check_tables(longest_wait)
        with self._database.transaction(longest_wait) as connection:
            yield connection

    @contextmanager
    def _locked_transaction(self, clock: StoreTime | None = None) -> Iterator[tuple[Connection, int]]:
        """Begin a transaction under the lock of all claims of this name; yield it, with the time under the lock."""
        with self._checked_transaction() as connection:
            take_lock(connection, self._schema.lock_of(self.name))
            yield connection, (clock or self._clock).milliseconds(connection)

    def _locked(self, work: Callable[[Connection, int], T], clock: StoreTime | None = None) -> T:
        """Do work in such a transaction, and return its result; again where MySQL has undone it, as in a deadlock."""

        def once() -> T:
            with self._locked_transaction(clock) as (connection, now):
                return work(connection, now)

        return self._database.repeat(once)

    def _rounds(
        self, work: Callable[[], object], stop: threading.Event, clock: StoreTime, *raised: type[Exception]
    ) -> Iterator[None]:
        """Do the work again and again until ``stop`` is set, and yield after each round.

        Args:
            work: does what is due.
            stop: ends the rounds.
            clock: the clock of the waits between two rounds.
            raised: errors that end the rounds. All others are logged, and the next round is a little later.

        Raises:
            ConfigurationError: the tables are missing, or have another version.
        """
        failures = 0
        while not stop.is_set():
            wait = POLL_SECONDS
            try:
                self._check_tables()
                work()
                failures = 0
            except Exception as error:
                if isinstance(error, (ConfigurationError, *raised)):
                    raise
                # Whatever it is, the events have to be worked on.
                failures += 1
                wait = retry_wait(failures, _LONGEST_PAUSE) / 1000
                logger = logging.getLogger(f"followup.{self._schema.component}")
                logger.error("%s: nothing is done for %.1f s: %s", self.name, wait, reason_of(error))  # noqa: TRY400 - the traceback may show data
            # Before the wait, so that a command which has nothing left to do ends at once.
            yield
            if not stop.is_set():
                clock.wait(wait, stop)

    def _count(self, connection: Connection, *conditions: ColumnElement[bool]) -> dict[str, int]:
        """Return the number of events in each of the states that have any."""
        state = self._events.c.state
        counting = select(state, func.count()).where(self._events.c.name == self.name, *conditions).group_by(state)
        return {row[0]: row[1] for row in connection.execute(counting)}

    def _age_of_oldest(self, connection: Connection, stored_at: ColumnElement[int]) -> float | None:
        """Return the seconds since the oldest event was stored that waits or is in flight; None if there is none."""
        events = self._events.c
        oldest = select(func.min(stored_at)).where(events.name == self.name, events.state.in_((WAITING, IN_FLIGHT)))
        then = connection.execute(oldest).scalar_one()
        # The clock may have been set back.
        return None if then is None else max(0, self._clock.milliseconds(connection) - then) / 1000


def begin_work(store: Store, limit: str, *, quiet: bool) -> None:
    """Let a worker log on standard error, or as the user's program has set it up; log that it begins.

    Args:
        store: the outbox or inbox of the worker.
        limit: what limits its work, for the first line.
        quiet: whether to log problems only.
    """
    logging.basicConfig(format="%(asctime)s  %(message)s", datefmt="%Y-%m-%d %H:%M:%S")
    component = store._schema.component
    logger = logging.getLogger("followup" if quiet else f"followup.{component}")
    logger.setLevel(logging.WARNING if quiet else logging.INFO)
    place = store._database.shown
    logger.info("%s %s: working in %s, %s, until Ctrl-C or SIGTERM", component, store.name, place, limit)


def milliseconds_of(older_than: object) -> int:
    """Check the age of what a purge removes, and return it in milliseconds.

    Raises:
        ValueError: it is not a timedelta of 0 or more.
    """
    if not isinstance(older_than, timedelta) or older_than < timedelta(0):
        raise ValueError("older_than must be a timedelta of 0 or more, such as timedelta(days=30)")
    return older_than // timedelta(milliseconds=1)
