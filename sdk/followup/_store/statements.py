"""Statements that SQLAlchemy Core spells differently for each database."""

from typing import Any

from sqlalchemy import Insert, Table
from sqlalchemy.dialects import postgresql, sqlite


def insert_if_absent(table: Table, dialect: str, **values: Any) -> Insert:
    """Return an INSERT that does nothing if the row, by its primary or unique key, is there already."""
    if dialect == "postgresql":
        return postgresql.insert(table).values(**values).on_conflict_do_nothing()
    return sqlite.insert(table).values(**values).on_conflict_do_nothing()
