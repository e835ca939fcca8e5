"""Events that cannot be lost: recorded in your own transaction, and sent by relays until the service accepts them.

It needs the extra ``store`` (SQLAlchemy); for PostgreSQL also the extra ``postgres`` (psycopg 3), for
MySQL and MariaDB ``mysql`` (PyMySQL).
"""

from importlib.util import find_spec

from followup._version import installation

if find_spec("sqlalchemy") is None:
    raise ModuleNotFoundError(f"followup.outbox needs SQLAlchemy: {installation('store')}", name="sqlalchemy")

from followup._store.cipher import Cipher
from followup.outbox.connections import AsyncRecordingConnection, DatabaseConnection, RecordingConnection
from followup.outbox.events import NewEvent
from followup.outbox.outbox import Outbox
from followup.outbox.upkeep import DeadEvent, DrainReport, FailingEvent, OutboxStatus

__all__ = [
    "AsyncRecordingConnection",
    "Cipher",
    "DatabaseConnection",
    "DeadEvent",
    "DrainReport",
    "FailingEvent",
    "NewEvent",
    "Outbox",
    "OutboxStatus",
    "RecordingConnection",
]
