"""What the commands of outbox and inbox share: the database, errors, and reports."""

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from followup import ConfigurationError
from followup._codec.names import camel
from followup.cli.exits import fail, reject
from followup.cli.output import json_line, say, write_line

if TYPE_CHECKING:
    from followup.inbox import Inbox
    from followup.outbox import Outbox

DATABASE_VARIABLE = "FOLLOWUP_DATABASE_URL"

DatabaseURL = Annotated[
    str | None,
    typer.Option(
        "--database",
        metavar="URL",
        show_default=False,
        help=f"SQLAlchemy URL, such as sqlite:///clinic.db. By default that of {DATABASE_VARIABLE}, which other users "
        "cannot see in the list of processes.",
    ),
]

FromVersion = Annotated[
    int | None,
    typer.Option("--from", metavar="VERSION", help="Print the SQL that updates tables of this version instead."),
]

StoreName = Annotated[str, typer.Option("--name", help="Name that keeps several organizations in one database apart.")]


def database_url(option: str | None) -> str:
    """Return the URL of the database, from the option or the environment.

    Raises:
        UsageError: neither has one.
    """
    url = option or os.environ.get(DATABASE_VARIABLE)
    if not url:
        reject(f"no database: pass --database URL, or set {DATABASE_VARIABLE}")
    return url


@contextmanager
def store_errors(database: str | None = None) -> Iterator[None]:
    """Turn the errors of a store into one line, which shows no personal data.

    Args:
        database: the URL of the database, whose file the line then names.

    Raises:
        CommandFailed: the database cannot be used, or there is no such event.
    """
    try:
        import sqlalchemy.exc
    except ModuleNotFoundError:
        fail("this command needs packages that are not installed: python -m pip install 'followup[store]'")
    from followup._store.problems import reason_of

    try:
        yield
    except (ConfigurationError, ValueError) as error:
        fail(_with_commands(str(error)))
    except sqlalchemy.exc.SQLAlchemyError as error:
        fail(f"{_shown(database)} failed: {reason_of(error)}")


def _with_commands(text: str) -> str:
    """Name commands and options, in an error that names methods and arguments."""
    text = re.sub(r"call (\w+)\.create_tables\(\) once", r"run 'followup \1 create-tables' once", text)
    text = re.sub(r"(\w+)\.ddl\(from_version=(\d+)\)", r"'followup \1 ddl --from \2'", text)
    text = re.sub(r"(\w+)\.ddl\(\)", r"'followup \1 ddl'", text)
    return text.replace("waiting=True", "--waiting")


def show_ddl(store: "Outbox | Inbox", from_version: int | None) -> None:
    """Print the SQL of the tables of a store."""
    try:
        text = store.ddl(from_version)
    except ValueError as error:
        reject(str(error).replace("from_version", "--from"))
    for line in text.splitlines():
        write_line(line)


def _shown(database: str | None) -> str:
    """Return what a message calls a database: its file, if it has one. Other URLs may contain a password."""
    from sqlalchemy.engine import make_url

    if database is None:
        return "the database"
    parsed = make_url(database)
    if parsed.get_backend_name() == "sqlite" and parsed.database:
        return f"the database {Path(parsed.database).absolute()}"
    return "the database"


def show_report(report: Mapping[str, Any], *, as_json: bool) -> None:
    """Print a report: on a terminal one line for each number, else JSON."""
    if as_json or not sys.stdout.isatty():
        write_line(json_line({camel(name): value for name, value in report.items()}))
        return
    width = max(map(len, report))
    for name, value in report.items():
        say(f"{name.replace('_', ' '):{width}}  {'-' if value is None else value}")
