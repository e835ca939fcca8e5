"""Both stores of a database, and what tests look for in it."""

from sqlalchemy import Engine
from support.databases import content_of, read
from support.stores import engine, inbox, outbox

__all__ = ["engine", "inbox", "outbox"]

PERSON = {
    "phone": "+5491123456789",
    "dni": "30111222",
    "fullName": "Zoraida Quispe",
    "email": "zoraida@example.org",
    "externalId": "P-7731",
}
"""The person who is erased, as the service sends them."""

MARKS = [b"123456789", b"30111222", b"Zoraida", b"zoraida", b"P-7731", b"T-7731"]
"""What nothing may contain afterwards."""


def marks_in(url: str) -> set[bytes]:
    """Return the marks of the person in the file of a database and its log, or in a dump."""
    content = content_of(url)
    return {mark for mark in MARKS if mark in content}


def rows(engine: Engine, table: str, *columns: str) -> list[tuple[object, ...]]:
    """Return columns of the rows of a table, in the order of storing."""
    return [*read(engine, f"SELECT {', '.join(columns)} FROM {table} ORDER BY seq")]
