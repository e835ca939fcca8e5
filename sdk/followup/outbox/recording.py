"""Records an event in the caller's transaction, as a generator that performs no I/O.

``recording`` yields statements, and a driver executes each one on the caller's connection and resumes the generator
with the rows, or throws the exception of the database into it. The drivers are in ``connections``.
"""

from collections.abc import Generator, Sequence
from typing import Any

from sqlalchemy import Insert, Select, TextClause, Update, text

from followup._results.errors import ConfigurationError
from followup._store.clock import StoreTime, sql_time
from followup._store.database import Dialect
from followup._store.schema import VERSIONS
from followup._store.statements import insert_if_absent
from followup.outbox.events import Recorded
from followup.outbox.tables import EVENTS, LARGEST_BATCH, SCHEMA, WAITING

Rows = Sequence[Sequence[Any]]
Statement = Insert | Update | Select[Any] | TextClause
Steps = Generator[Statement, Rows, None]

_SAVEPOINT = text("SAVEPOINT followup_record")
_ROLL_BACK = text("ROLLBACK TO SAVEPOINT followup_record")
_RELEASE = text("RELEASE SAVEPOINT followup_record")
_VERSION = text(SCHEMA.version_query())


def recording(
    name: str, event: Recorded, dialect: Dialect, clock: StoreTime, trace_context: str | None, *, check_version: bool
) -> Steps:
    """Store an event, unless its id is there already.

    A failed statement spoils a transaction of PostgreSQL, so the statements are within a savepoint there. In SQLite
    only the statement itself is undone.

    Args:
        name: name of the outbox.
        event: the event.
        dialect: the database of the connection.
        clock: the clock of the outbox.
        trace_context: the trace of the caller, as text.
        check_version: whether the version of the tables is checked too.

    Raises:
        ConfigurationError: the tables are missing, or have another version.
    """
    if dialect == "postgresql":
        yield _SAVEPOINT
    try:
        if check_version:
            yield from _version_check()
        yield _insert(name, event, dialect, clock, trace_context)
    except Exception as error:
        if dialect == "postgresql":
            yield _ROLL_BACK
        try:
            if not check_version and not isinstance(error, ConfigurationError):
                # The version was right, but perhaps in another database than that of this connection.
                yield from _version_check()
        finally:
            if dialect == "postgresql":
                yield _ROLL_BACK
                yield _RELEASE
        raise
    if dialect == "postgresql":
        yield _RELEASE


def _version_check() -> Steps:
    try:
        rows = yield _VERSION
    except Exception as error:
        # The text of SQLAlchemy's error contains the statement, which names the table in any case.
        if VERSIONS.name not in str(getattr(error, "orig", None) or error):
            raise
        rows = []
    SCHEMA.check_version(rows[0][0] if rows else None)


def _insert(name: str, event: Recorded, dialect: Dialect, clock: StoreTime, trace_context: str | None) -> Insert:
    return insert_if_absent(
        EVENTS,
        dialect,
        name=name,
        event_id=event.id,
        subject=event.subject,
        event=event.text,
        state=WAITING,
        blocks_subject=True,
        attempts=0,
        due_at=0,
        recorded_at=sql_time(dialect, clock),
        batch_limit=LARGEST_BATCH,
        trace_context=trace_context,
    )
