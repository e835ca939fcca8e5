"""Changes many rows of a store, few at once, so that nobody has to wait for the database of SQLite for long.

Copies of what was changed or erased remain in free parts of a SQLite file and in its log. ``_scrub`` removes them:
``VACUUM`` writes the file anew, from what is still in the tables, and a checkpoint empties the log.
"""

import sqlite3
import threading
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from types import MappingProxyType
from typing import Any

from sqlalchemy import ColumnElement, Connection, Delete, Row, Table, Update, bindparam, delete, func, select, update

from followup._core.errors import ConfigurationError, FollowUpError
from followup._core.redaction import redacted
from followup._store.cipher import is_hashed
from followup._store.database import Database
from followup._store.import_state import reencrypt_salts
from followup._store.leases import StoreTime
from followup._store.schema import SALTS
from followup._store.store import Store

_TRIES = 30
"""How often a statement is tried while other processes use the file, about once a second."""

_WAIT = 0.5
"""Seconds that a try waits for other processes. Meanwhile they wait for it, so it gives way to them for as long."""


def _scrubbed(database: Database, clock: StoreTime) -> str:
    """Write a SQLite file anew and empty its log; return why copies may be left, or an empty text."""
    # On the driver's own connection, because SQLAlchemy begins a transaction, in which VACUUM is impossible.
    with closing(database.engine.raw_connection()) as pooled:
        driver: Any = pooled.driver_connection
        is_file = any(path for _, name, path in driver.execute("PRAGMA database_list") if name == "main")
        ((patience,),) = driver.execute("PRAGMA busy_timeout")
        try:
            driver.execute(f"PRAGMA busy_timeout = {round(_WAIT * 1000)}")
            return _rewrite(driver, clock) if is_file else ""
        except sqlite3.Error as error:
            return f"{type(error).__name__}: {error}"
        finally:
            driver.execute(f"PRAGMA busy_timeout = {patience}")


def _rewrite(driver: Any, clock: StoreTime) -> str:
    """Write a file anew; return why copies may be left, or an empty text."""
    ((mode,),) = driver.execute("PRAGMA journal_mode")
    if mode == "persist":  # else its journal remains, with the pages as they were before; Windows deletes no open file
        driver.execute("PRAGMA journal_mode = TRUNCATE").fetchall()
    try:
        _execute(driver, "VACUUM", clock)
    finally:
        if mode == "persist":
            driver.execute("PRAGMA journal_mode = PERSIST").fetchall()
    return "" if _execute(driver, "PRAGMA wal_checkpoint(TRUNCATE)", clock) else "the log is in use"


def _execute(driver: Any, statement: str, clock: StoreTime) -> bool:
    """Try a statement again while others are in its way; return whether it was done.

    Raises:
        sqlite3.Error: it is impossible, or another process has kept the file locked.
    """
    for left in reversed(range(_TRIES)):
        try:
            rows = driver.execute(statement).fetchall()
            if not rows or not rows[0][0]:  # a checkpoint says so whether it was busy
                return True
        except sqlite3.OperationalError as error:
            # The low byte, because SQLITE_BUSY has kinds, such as SQLITE_BUSY_SNAPSHOT.
            if not left or error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
        if left:
            clock.wait(_WAIT, threading.Event())
    return False


_AT_ONCE = 100
"""Rows that are rewritten at once, and in memory."""

_IN_A_STEP = 500
"""Rows that one transaction changes, so that it locks the database of SQLite for a few milliseconds."""

_PAUSE = 0.01
"""Seconds, at least, between two such transactions. Who waits for the lock of SQLite looks for it now and then only."""

Change = dict[str, Any]
"""The number of a row, and what a column of it has now and will have."""


class StoredRows(Store):
    """The rows of a store, of which many can be changed at once."""

    def _change(
        self,
        event_id: str | None,
        states: Collection[str],
        values: Mapping[str, Any],
        *conditions: ColumnElement[bool],
        hints: Mapping[str, str] = MappingProxyType({}),
    ) -> int:
        """Change one event, or all, in one of these states; return how many these are.

        Args:
            event_id: the one event; None for all.
            states: the states.
            values: the new values of columns.
            conditions: what else must be true.
            hints: what the error says about an event in another state, or for which the conditions are not true.

        Raises:
            ValueError: there is no such event; the message says in which state it is.
            TypeError: the id is no string.
        """
        if not isinstance(event_id, str | None):
            raise TypeError(f"event_id must be the id of an event, not {type(event_id).__name__}")
        events = self._events
        changing = update(events).values(values)
        if event_id is None:
            return self._change_in_steps(changing, events.c.state.in_(states), *conditions)
        of_event = (events.c.name == self.name, events.c.event_id == event_id)
        with self._locked_transaction() as (connection, _):
            count = connection.execute(changing.where(*of_event, events.c.state.in_(states), *conditions)).rowcount
            state = None if count else connection.execute(select(events.c.state).where(*of_event)).scalar_one_or_none()
        if count:
            return count
        found = f": its state is {state}{hints.get(state, '')}" if state else ""
        raise ValueError(f"no {' or '.join(states)} event has the id {redacted(event_id, max_length=64)!r}{found}")

    def reencrypt(self) -> int:
        """Rewrite all rows under the present cipher, those in clear too.

        Call it once after the key has changed, with a cipher that also decrypts what the old key encrypted, such as
        ``MultiFernet([Fernet(new), Fernet(old)])``. All other processes must have that cipher already. Relays and
        workers go on meanwhile. A SQLite file is then written anew, so that it has no copies of the rows as they were
        before; other processes wait for that. It can be called again at any time.

        Returns:
            The number of events.

        Raises:
            ConfigurationError: there is no cipher; or an event cannot be decrypted, which the message names. Nothing
                was changed then.
            FollowUpError: the rows are rewritten, but a SQLite file still has copies of what they were before, because
                other processes use it. Call it again.
        """
        if not self._cipher.is_on:
            raise ConfigurationError("reencrypt needs a cipher: pass cipher=... to its constructor")
        with self._checked_transaction() as connection:
            last: int = connection.execute(select(func.max(self._events.c.seq))).scalar_one() or 0
        # All of them once before the first is changed, so that one which cannot be decrypted changes nothing.
        for rows in _batches(self, last):
            _changes(self, rows)
        count = 0
        for rows in _batches(self, last):
            changes = _changes(self, rows)
            began = self._clock.monotonic()
            with self._locked_transaction() as (connection, _):
                for column, of_column in changes.items():
                    _apply(connection, self._events, column, of_column)
            count += len({each["of"] for of_column in changes.values() for each in of_column})
            self._give_way(began)
        with self._locked_transaction() as (connection, _):
            # Last, because whoever drops the old key too early then finds the store locked, and not a part of its rows.
            salt: str = connection.execute(self._cipher.salt_query).scalar_one()
            renewed = self._cipher.encrypt(self._cipher.decrypt(salt, ""))
            if self._schema.component == "outbox":
                reencrypt_salts(connection, self.name, self._cipher)
            connection.execute(update(SALTS).where(SALTS.c.salt == salt).values(salt=renewed))
        self._scrub()
        return count

    def _scrub(self) -> None:
        """Write a SQLite file anew and empty its log, so that neither has copies of what was changed in the tables.

        Raises:
            FollowUpError: this is not possible now, because other processes use the file, for example.
        """
        if not self._database.dialect.is_server and (problem := _scrubbed(self._database, self._clock)):
            raise FollowUpError(
                "the rows are changed, but the file of the database or its log still has copies of what they were "
                f"before ({problem}): do the same again when fewer processes use it"
            )

    def _clear(self, *others: Table) -> int:
        """Remove all events of this name, and its rows in other tables; return the number of events."""
        with self._locked_transaction() as (connection, _):
            for each in others:
                connection.execute(delete(each).where(each.c.name == self.name))
        return self._change_in_steps(delete(self._events))

    def _change_in_steps(self, changing: Update | Delete, *conditions: ColumnElement[bool]) -> int:
        """Change all events of this name for which the conditions are true, few at once; return how many these are."""
        of_name = (self._events.c.name == self.name, *conditions)
        with self._checked_transaction() as connection:
            # An array, because there may be millions of them.
            found = array("q", connection.execute(select(self._events.c.seq).where(*of_name)).scalars())
        changing = changing.where(*of_name)  # again: another process may have changed them since
        return self._in_steps(found, lambda part: changing.where(self._events.c.seq.in_(part)))

    def _in_steps(self, found: Sequence[Any], change: Callable[[Sequence[Any]], Update | Delete]) -> int:
        """Change rows, few in one transaction, so that nobody has to wait for long; return how many were changed."""
        count = 0
        for start in range(0, len(found), _IN_A_STEP):
            began = self._clock.monotonic()
            count += self._locked(partial(_rows_changed, change(found[start : start + _IN_A_STEP])))
            if start + _IN_A_STEP < len(found):
                self._give_way(began)
        return count

    def _give_way(self, began: float) -> None:
        """Leave the database of SQLite to others, for as long as it was locked since then."""
        if not self._database.dialect.is_server:
            self._clock.wait(max(_PAUSE, self._clock.monotonic() - began), threading.Event())


def _rows_changed(change: Update | Delete, connection: Connection, _: int) -> int:
    return connection.execute(change).rowcount


def _batches(store: StoredRows, last: int) -> Iterator[Sequence[Row[*tuple[Any, ...]]]]:
    """Yield the rows up to the last one. Meanwhile no transaction is open that could be in the way of others."""
    columns, done = store._events.c, 0
    part = select(columns.seq, columns.event_id, *(columns[each] for each in store._encrypted))
    part = part.where(columns.name == store.name, columns.seq <= last).order_by(columns.seq).limit(_AT_ONCE)
    while True:
        with store._database.transaction() as connection:
            rows = connection.execute(part.where(columns.seq > done)).all()
        if not rows:
            return
        yield rows
        done = rows[-1].seq


def _changes(store: StoredRows, rows: Sequence[Row[*tuple[Any, ...]]]) -> dict[str, list[Change]]:
    """Return what is changed in rows, by the names of columns.

    Raises:
        ConfigurationError: a row cannot be decrypted; the message names its event.
    """
    changes: dict[str, list[Change]] = {each: [] for each in store._encrypted}
    for row in rows:
        for column, of_column in changes.items():
            stored = getattr(row, column)
            if not stored or (column == "subject" and is_hashed(stored)):  # nothing is stored of erased events
                continue
            if column == "subject":
                new = store._hashed(stored)
            else:
                new = store._cipher.encrypt(store._cipher.decrypt(stored, row.event_id))
            of_column.append({"of": row.seq, "before": stored, "after": new})
    return changes


def _apply(connection: Any, events: Table, column: str, changes: Sequence[Change]) -> None:
    """Change a column in rows, except where a relay or handler has changed it since: then it is under this cipher."""
    if changes:
        of_row = (events.c.seq == bindparam("of"), events.c[column] == bindparam("before"))
        connection.execute(update(events).where(*of_row).values({column: bindparam("after")}), changes)
