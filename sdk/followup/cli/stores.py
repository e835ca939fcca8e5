"""What the commands of outbox and inbox share: the database, its errors, reports, and the commands that both have."""

import os
import re
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal

import attrs
import typer

from followup import ConfigurationError
from followup._codec.names import camel
from followup.cli.application import Application
from followup.cli.exits import INTERRUPTED, CommandFailed, fail, reject
from followup.cli.options import AsJson
from followup.cli.output import json_line, say, write_line
from followup.cli.values import kebab

DATABASE_VARIABLE = "FOLLOWUP_DATABASE_URL"

Kind = Literal["outbox", "inbox"]

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

_OPTION = re.compile("on_rejected|requests_per_minute")
"""The arguments of an Outbox that have an option."""


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
    from followup._store.database import reason_of

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


@contextmanager
def opened(
    kind: Literal["outbox", "inbox"], database: str | None, name: str = "default", **options: Any
) -> Iterator[Any]:
    """Open an outbox or inbox, and turn the errors of its database into one line."""
    url = database_url(database)
    with store_errors(url):
        # Imported late, because a help page needs no database.
        store_class = getattr(import_module(f"followup.{kind}"), kind.capitalize())
        try:
            store = store_class(url, name=name, **options)
        except ConfigurationError as error:
            reject(_OPTION.sub(lambda found: f"--{kebab(found[0])}", str(error)))
        try:
            yield store
        finally:
            store.close()


def add_common_commands(
    group: Application, kind: Kind, *, status_help: str, id_help: str, retry_help: str, again: str
) -> None:
    """Add the commands that an outbox and an inbox both have.

    Args:
        group: the group of the commands.
        kind: which of the two.
        status_help: help of ``status``.
        id_help: help of the argument of ``retry``.
        retry_help: help of ``retry``.
        again: what becomes of events that are retried.
    """

    @group.command(help=status_help)
    def status(database: DatabaseURL = None, name: StoreName = "default", as_json: AsJson = False) -> None:
        with opened(kind, database, name) as store:
            found = store.status()
        show_report(attrs.asdict(found), as_json=as_json)

    @group.command(help=retry_help)
    def retry(
        event_id: Annotated[str | None, typer.Argument(metavar="[ID]", help=id_help)] = None,
        database: DatabaseURL = None,
        name: StoreName = "default",
    ) -> None:
        with opened(kind, database, name) as store:
            count = store.retry(event_id)
        say(f"{events(count)} will be {again} again.")

    @group.command()
    def ddl(database: DatabaseURL = None, from_version: FromVersion = None) -> None:
        """Print the SQL that creates the tables, for your own migrations."""
        with opened(kind, database) as store:
            try:
                text = store.ddl(from_version)
            except ValueError as error:
                reject(str(error).replace("from_version", "--from"))
        for line in text.splitlines():
            write_line(line)

    @group.command()
    def create_tables(database: DatabaseURL = None) -> None:
        """Create the tables that do not exist yet, and bring those of an earlier release up to date."""
        with opened(kind, database) as store:
            store.create_tables()
        say("OK: the tables exist.")


@contextmanager
def until_stopped() -> Iterator[threading.Event]:
    """Yield an event that the first SIGTERM or Ctrl-C sets; a second one ends the process.

    Raises:
        CommandFailed: it was Ctrl-C; raised at the end of the with block.
    """
    stop = threading.Event()
    received: list[int] = []

    def end(number: int, _: object) -> None:
        received.append(number)
        stop.set()
        signal.signal(number, signal.SIG_DFL if number == signal.SIGTERM else signal.default_int_handler)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    yield stop
    if signal.SIGINT in received:
        raise CommandFailed("", INTERRUPTED)


def age_of(days: float) -> timedelta:
    """Return the value of ``--older-than``.

    Raises:
        UsageError: it is not 0 or more.
    """
    try:
        age = timedelta(days=days)
    except (OverflowError, ValueError):
        reject("--older-than must be a number of days")
    if age < timedelta(0):
        reject("--older-than must be 0 or more")
    return age


def events(count: int) -> str:
    """Return a number of events in words."""
    return "1 event" if count == 1 else f"{count} events"


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
