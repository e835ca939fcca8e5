"""The tables of outbox and inbox as models, which the admin shows, and which Django's tests empty.

Their columns are declared in one place, ``followup.outbox.events`` and ``followup.inbox.arrivals``. The other tables
of ``ddl()`` have no model, since a test must not empty them: those of the versions and the salts.
"""

from typing import Any

import sqlalchemy as sa
from django.db import models

from followup.inbox.arrivals import CURSORS
from followup.inbox.arrivals import EVENTS as RECEIVED
from followup.outbox.events import EVENTS as RECORDED
from followup.outbox.events import RATES

VIEW_PERSONAL_DATA = "view_personal_data"


class ExactText(models.TextField):
    """A text that MySQL has as its bytes."""

    def from_db_value(self, value: Any, *_: object) -> str | None:
        """Return the text."""
        return value.decode() if isinstance(value, bytes) else value


_FIELDS = {int: models.BigIntegerField, str: ExactText, bool: models.BooleanField, bytes: models.BinaryField}


def _field(column: sa.Column[Any], *, is_key: bool) -> Any:
    if column.name == "seq":
        return models.BigAutoField(primary_key=True)
    return _FIELDS[column.type.python_type](primary_key=is_key, null=bool(column.nullable))


def _shown(row: Any) -> str:
    return str(getattr(row, "event_id", row.name))


def _model(name: str, table: sa.Table, title: str, **meta: object) -> Any:
    key = next(iter(table.primary_key.columns))  # of several; no row is ever looked up by it
    options = {"db_table": table.name, "default_permissions": ("view", "change"), "verbose_name": title, **meta}
    fields = {each.name: _field(each, is_key=each is key) for each in table.columns}
    own = {"__module__": __name__, "__doc__": title, "__str__": _shown, "Meta": type("Meta", (), options)}
    return type(name, (models.Model,), {**fields, **own})


OutboxEvent = _model(
    "OutboxEvent",
    RECORDED,
    "event of the outbox",
    verbose_name_plural="events to send (outbox)",
    permissions=[(VIEW_PERSONAL_DATA, "Can view subjects, errors and payloads of events")],
)
InboxEvent = _model("InboxEvent", RECEIVED, "event of the inbox", verbose_name_plural="events to handle (inbox)")
OutboxRate = _model("OutboxRate", RATES, "request rate of an outbox")
InboxCursor = _model("InboxCursor", CURSORS, "cursor of an inbox")

MODELS = (OutboxEvent, InboxEvent, OutboxRate, InboxCursor)
