"""The tables in a database of Django: which version they have, and how a migration makes them."""

from typing import Any

from django.db import Error

from followup._store.dialects import dialect_of
from followup._store.execution import number_of
from followup.inbox.arrivals import SCHEMA as INBOX
from followup.outbox.events import SCHEMA as OUTBOX


def missing_tables(connection: Any) -> list[str]:
    """Return the SQL, statement by statement, that a database lacks; nothing if its tables are those of this release.

    Raises:
        ConfigurationError: it has tables of another release or clone that cannot be brought up to date.
    """
    with connection.cursor() as cursor:
        tables = connection.introspection.table_names(cursor)
        versions = {}
        if "followup_schema" in tables:
            cursor.execute("SELECT component, version FROM followup_schema")
            versions = dict(cursor.fetchall())
    statements: list[str] = []
    for schema in (OUTBOX, INBOX):
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
