"""Runs a coroutine function that knows no connection, and awaits ``execute`` for each statement, on any connection.

On a synchronous connection ``execute`` never waits, so the coroutine runs to its end at once.
"""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar, cast

from sqlalchemy import Connection, Delete, Insert, Select, TextClause, Update

Rows = Sequence[Sequence[Any]]
Statement = Insert | Update | Delete | Select[Any] | TextClause
Execute = Callable[[Statement], Awaitable[Rows]]

T = TypeVar("T")


def executing(connection: Connection) -> Execute:
    """Return the function that executes a statement on a connection of SQLAlchemy."""

    async def execute(statement: Statement) -> Rows:
        result = connection.execute(statement)
        return result.all() if result.returns_rows else []

    return execute


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine whose ``execute`` never waits, and return its result."""
    try:
        coroutine.send(None)
    except StopIteration as ended:
        return cast("T", ended.value)
    raise RuntimeError("the coroutine waits")
