"""Rewrites the rows of a store under its present cipher, while relays and workers go on."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import Row, Table, bindparam, func, select, update

from followup._results.errors import ConfigurationError, FollowUpError
from followup._store.cipher import is_hashed
from followup._store.imported import reencrypt_salts
from followup._store.schema import SALTS
from followup._store.scrub import scrub

if TYPE_CHECKING:
    from followup._store.store import Store

_AT_ONCE = 100
"""Rows that one transaction rewrites, and that are in memory at once."""

Change = dict[str, Any]
"""The number of a row, and what a column of it has now and will have."""


def reencrypt(store: "Store") -> int:
    """Rewrite the rows that there are now under the present cipher, and return how many these are.

    Raises:
        ConfigurationError: there is no cipher; or a row cannot be decrypted, and nothing was changed.
        FollowUpError: the rows are rewritten, but a SQLite file still has copies of what they were before.
    """
    if not store._cipher.is_on:
        raise ConfigurationError("reencrypt needs a cipher: pass cipher=... to its constructor")
    with store._checked_transaction() as connection:
        last: int = connection.execute(select(func.max(store._events.c.seq))).scalar_one() or 0
    for rows in _batches(store, last):
        _changes(store, rows)
    count = 0
    for rows in _batches(store, last):
        changes = _changes(store, rows)
        with store._locked_transaction() as (connection, _):
            for column, of_column in changes.items():
                _apply(connection, store._events, column, of_column)
        count += len({each["of"] for of_column in changes.values() for each in of_column})
    with store._locked_transaction() as (connection, _):
        # Last, because whoever drops the old key too early then finds the store locked, and not a part of its rows.
        salt: str = connection.execute(store._cipher.salt_query).scalar_one()
        renewed = store._cipher.encrypt(store._cipher.decrypt(salt, ""))
        if store._schema.component == "outbox":
            reencrypt_salts(connection, store.name, store._cipher)
        connection.execute(update(SALTS).where(SALTS.c.salt == salt).values(salt=renewed))
    if problem := scrub(store._database, store._clock):
        raise FollowUpError(
            "the rows are encrypted, but the file of the database or its log still has copies of what they were before "
            f"({problem}): call reencrypt again when fewer processes use it"
        )
    return count


def _batches(store: "Store", last: int) -> Iterator[Sequence[Row[*tuple[Any, ...]]]]:
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


def _changes(store: "Store", rows: Sequence[Row[*tuple[Any, ...]]]) -> dict[str, list[Change]]:
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
