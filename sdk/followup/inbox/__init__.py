"""Webhooks that cannot be lost: stored before they are acknowledged, and handled in your own transaction.

It needs the extra ``store`` (SQLAlchemy); for PostgreSQL also the extra ``postgres`` (psycopg 3), for
MySQL and MariaDB ``mysql`` (PyMySQL).
"""

from importlib.util import find_spec

from followup._version import installation

if find_spec("sqlalchemy") is None:
    raise ModuleNotFoundError(f"followup.inbox needs SQLAlchemy: {installation('store')}", name="sqlalchemy")

from followup._store.cipher import Cipher
from followup.inbox.arrivals import CatchUpReport
from followup.inbox.handlers import Handler, Received
from followup.inbox.inbox import Inbox
from followup.inbox.upkeep import DeadEvent, DrainReport, InboxStatus

__all__ = ["CatchUpReport", "Cipher", "DeadEvent", "DrainReport", "Handler", "Inbox", "InboxStatus", "Received"]
