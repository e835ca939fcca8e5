"""Statements that SQLAlchemy Core spells differently for each database."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, CursorResult, Insert, Table, Update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import InterfaceError, OperationalError

from followup._store.problems import reason_of

UNSTORABLE = "the database cannot store the reason"
"""What is stored instead of a reason that the database refuses, as by an encoding that lacks a character of it."""


def insert_if_absent(table: Table, dialect: str, **values: Any) -> Insert:
    """Return an INSERT that does nothing if the row, by its primary or unique key, is there already."""
    if dialect == "postgresql":
        return postgresql.insert(table).values(**values).on_conflict_do_nothing()
    return sqlite.insert(table).values(**values).on_conflict_do_nothing()


def execute_unless_refused(
    connection: Connection, statement: Update, rows: Sequence[dict[str, Any]] | None = None
) -> CursorResult[Any] | str:
    """Execute a statement in a savepoint; return its result, or why the database or its driver refuses a row.

    Raises:
        sqlalchemy.exc.OperationalError, sqlalchemy.exc.InterfaceError: the database itself failed.
    """
    try:
        with connection.begin_nested():
            return connection.execute(statement, rows)
    except (OperationalError, InterfaceError):
        raise
    except Exception as error:
        if connection.invalidated:
            raise
        return reason_of(error)  # the error itself would keep the frames of its callers alive
