"""The clinic's inbox of webhooks, in SQLite: each event once, whatever is delivered how often."""

import sqlite3
from contextlib import closing
from pathlib import Path

from followup import WebhookEvent


class Inbox:
    """Remembers the events that were handled.

    Args:
        path: of the SQLite file.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = path
        with closing(self._connect()) as connection, connection:
            connection.execute(
                "CREATE TABLE IF NOT EXISTS event (id TEXT PRIMARY KEY, type TEXT, occurred_at TEXT, ref TEXT)"
            )

    def accept(self, event: WebhookEvent) -> bool:
        """Keep an event; whether it is new. Deliveries repeat, and their id tells."""
        row = (event.id, event.type, event.occurred_at.isoformat(), event.ref)
        with closing(self._connect()) as connection, connection:
            return connection.execute("INSERT OR IGNORE INTO event VALUES (?, ?, ?, ?)", row).rowcount == 1

    def types(self) -> list[str]:
        """The types of the events, in the order in which they happened, which is not that of arrival."""
        with closing(self._connect()) as connection:
            rows = connection.execute("SELECT type FROM event ORDER BY occurred_at, rowid").fetchall()
        return [row[0] for row in rows]

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self._path)
