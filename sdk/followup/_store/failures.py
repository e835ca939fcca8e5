"""Errors of a database: which they are, what a log may show of them, and which mean that a connection is useless."""

import re
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

from followup._core.results.errors import FollowUpError
from followup._core.threads import NoThreadError

READ_ONLY = "25006"

_STATES_OF_USELESS_CONNECTIONS = (
    READ_ONLY,
    "08",  # the connection is broken
    "25P03",  # the server has ended the session, which was idle in a transaction
    "25P04",  # ... or whose transaction took too long
    "57P",  # the server is shutting down or starting, or an administrator has ended the session
    "0A000",  # as "cannot set transaction read-write mode during recovery", or plans of before the tables changed
    "26000",  # a prepared statement is not there: a pooler has passed the statement to another session
    "42P05",  # ... or is there already
)
"""Beginnings of the SQLSTATE of errors that a connection to PostgreSQL would have again and again."""

_ABOUT_THE_FILE = ("file is not a database", "database disk image is malformed")
"""Texts of SQLite that contain no data."""


class ReadOnlyError(FollowUpError):
    """The server of a connection takes no writes."""


def _cause_of(error: BaseException) -> Any:
    """Return the error of the driver, which SQLAlchemy or Django may have wrapped."""
    return getattr(error, "orig", None) or error.__cause__ or error


def sqlstate_of(error: BaseException) -> str | None:
    """Return the SQLSTATE of an error; None if it has none, as in SQLite."""
    cause = _cause_of(error)
    found = getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None)
    return found if isinstance(found, str) else None


def is_useless(error: BaseException) -> bool:
    """Return whether a connection would have this error again and again, so that another one is needed."""
    state = sqlstate_of(error)
    return isinstance(error, ReadOnlyError) or (state is not None and state.startswith(_STATES_OF_USELESS_CONNECTIONS))


def is_missing_table(error: BaseException) -> bool:
    """Return whether a statement failed because its table does not exist, and for no other reason."""
    return sqlstate_of(error) == "42P01" or "no such table" in str(_cause_of(error))


def kind_of_error(error: BaseException) -> str:
    """Return the type of an error, with the SQLSTATE and its name if it has one; none of it ever has data."""
    kind, state = type(error).__name__, sqlstate_of(error)
    if state is None:
        return kind
    # Drivers have a class for each SQLSTATE, such as UndefinedTable.
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(_cause_of(error)).__name__).lower()
    return f"{kind} ({state} {name})"


def reason_of(error: Exception) -> str:
    """Return what a log may show of a database's error. Other texts than these may contain what was to be stored."""
    if isinstance(error, (FollowUpError, NoThreadError)):
        return str(error)
    if isinstance(error, TimeoutError):
        return "the database does not respond"
    kind = kind_of_error(error)
    if not isinstance(error, DBAPIError):
        return kind
    text = str(error.orig).partition("\n")[0]
    if type(error).__name__ in ("OperationalError", "ProgrammingError") or text in _ABOUT_THE_FILE:
        return f"{kind}: {text}"
    advice = advice_on(error)
    return kind if advice is None else f"{kind}: {advice}"


def advice_on(error: BaseException) -> str | None:
    """Return what to do about a conflict in an INSERT that names the one it expects; None for other errors."""
    if sqlstate_of(error) != "23505":
        return None
    table = getattr(getattr(_cause_of(error), "diag", None), "table_name", None) or "TABLE"
    column = "id" if table == "followup_imports" else "seq"
    repair = f"SELECT setval(pg_get_serial_sequence('{table}', '{column}'), max({column})) FROM {table}"  # noqa: S608 - our names
    return f"the sequence of {table} is behind its rows, as after logical replication or a copy of rows: run {repair}"


def storable(reason: str) -> str:
    """Return a reason that the database has rejected in ASCII, since its encoding may lack a character."""
    return reason.encode("ascii", "backslashreplace").decode()


def execute_unless_rejected(
    connection: Connection, statement: sa.Update, rows: Sequence[dict[str, Any]] | None = None
) -> sa.CursorResult[Any] | str:
    """Execute a statement in a savepoint; return its result, or why the database or its driver rejects a row.

    Raises:
        sqlalchemy.exc.OperationalError, sqlalchemy.exc.InterfaceError: the database itself failed.
    """
    try:
        with connection.begin_nested():
            return connection.execute(statement, rows)
    except (OperationalError, InterfaceError):
        raise
    except Exception as error:
        if connection.invalidated or is_useless(error):
            raise
        return reason_of(error)  # the error itself would keep the frames of its callers alive
