"""A clock for stores that moves only when a test moves it, or when somebody waits."""

import threading
from datetime import UTC, datetime

from sqlalchemy import BigInteger, ColumnElement, literal

from followup._store.dialects import Dialect
from followup._store.leases import StoreTime


class ManualTime(StoreTime):
    """A clock of a store that a test advances.

    Attributes:
        seconds: the current time, since the epoch.
        waits: the waits so far, in seconds.
    """

    def __init__(self, seconds: float = 1_800_000_000) -> None:
        super().__init__()
        self.seconds = seconds
        self.waits: list[float] = []

    def advance(self, seconds: float) -> None:
        """Move the clock forward."""
        self.seconds += seconds

    def sql(self, dialect: Dialect) -> ColumnElement[int]:
        """Return the time as a number in SQL."""
        return literal(round(self.seconds * 1000), BigInteger)

    def now(self) -> datetime:
        """Return the time in UTC."""
        return datetime.fromtimestamp(self.seconds, UTC)

    def monotonic(self) -> float:
        """Return the time in seconds."""
        return self.seconds

    def wait(self, seconds: float, stop: threading.Event | None) -> None:
        """Move the clock forward at once."""
        self.waits.append(seconds)
        self.advance(seconds)
