"""The clinic's inbox of webhooks in SQLite, which stores each event once however often it is delivered."""

import sqlite3
from contextlib import closing
from pathlib import Path

from followup import WebhookEvent


class Inbox:
    """Stores events.

    Args:
        path: path of the SQLite file.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = path
        with closing(self._connect()) as connection, connection:
            connection.execute(
                "CREATE TABLE IF NOT EXISTS event (id TEXT PRIMARY KEY, type TEXT, occurred_at TEXT, ref TEXT)"
            )

    def accept(self, event: WebhookEvent) -> bool:
        """Store an event, and return whether it is new. A repeated delivery has the id of the first."""
        row = (event.id, event.type, event.occurred_at.isoformat(), event.ref)
        with closing(self._connect()) as connection, connection:
            return connection.execute("INSERT OR IGNORE INTO event VALUES (?, ?, ?, ?)", row).rowcount == 1

    def types(self) -> list[str]:
        """Return the types of the events in the order in which they occurred, which may not be that of delivery."""
        with closing(self._connect()) as connection:
            rows = connection.execute("SELECT type FROM event ORDER BY occurred_at, rowid").fetchall()
        return [row[0] for row in rows]

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self._path)
