"""The tables of outbox and inbox: how a migration makes them, and as models, for the admin and Django's tests.

Their columns are declared in one place, ``followup.outbox.events`` and ``followup.inbox.arrivals``. The other tables
of ``ddl()`` have no model, since a test must not empty them: those of the versions and the salts.
"""

from typing import Any

import sqlalchemy as sa
from django.db import Error, models

from followup._store.dialects import dialect_of
from followup._store.execution import number_of
from followup.inbox import arrivals
from followup.outbox import events

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
    events.EVENTS,
    "event of the outbox",
    verbose_name_plural="events to send (outbox)",
    permissions=[(VIEW_PERSONAL_DATA, "Can view subjects, errors and payloads of events")],
)
InboxEvent = _model("InboxEvent", arrivals.EVENTS, "event of the inbox", verbose_name_plural="events to handle (inbox)")
OutboxRate = _model("OutboxRate", events.RATES, "request rate of an outbox")
InboxCursor = _model("InboxCursor", arrivals.CURSORS, "cursor of an inbox")

MODELS = (OutboxEvent, InboxEvent, OutboxRate, InboxCursor)


def missing_tables(connection: Any) -> list[str]:
    """Return the SQL, statement by statement, that a database lacks; nothing if its tables are those of this release.

    Raises:
        ConfigurationError: it has tables of a later release.
    """
    with connection.cursor() as cursor:
        tables = connection.introspection.table_names(cursor)
        versions = {}
        if "followup_schema" in tables:
            cursor.execute("SELECT component, version FROM followup_schema")
            versions = dict(cursor.fetchall())
    statements: list[str] = []
    for schema in (events.SCHEMA, arrivals.SCHEMA):
        found = versions.get(schema.component)
        if found == schema.version and all(each.name in tables for each in schema.tables):
            continue
        if found is not None and found > schema.version:
            schema.check_version(found, connection.alias)
        sql = schema.ddl(dialect_of(connection.vendor), found if found != schema.version else None)
        statements += [each for each in sql.split(";\n") if each]
    return statements


def make_tables(_: object, editor: Any) -> None:
    """Make the tables, or bring those that are there up to date. What a migration runs, also one of a later version."""
    dialect = dialect_of(editor.connection.vendor)
    for each in missing_tables(editor.connection):
        try:
            editor.execute(each, params=None)
        except Error as error:  # MySQL commits each statement, so a migration that is repeated meets what it has done
            if number_of(error) not in dialect.done_before:
                raise
