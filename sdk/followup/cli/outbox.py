"""``followup outbox``: the relay, the status and the dead events of an outbox."""

import logging
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from followup._annotations import REQUESTS_PER_MINUTE
from followup.cli.application import Application
from followup.cli.exits import fail, reject
from followup.cli.options import AsJson
from followup.cli.output import remark, say, show_rows
from followup.cli.session import connected

if TYPE_CHECKING:
    from followup.outbox import DeadEvent, Outbox

outbox = Application(no_args_is_help=True)

VARIABLE = "FOLLOWUP_DATABASE_URL"

Database = Annotated[
    str | None,
    typer.Option(
        envvar=VARIABLE,
        show_envvar=False,
        help=f"SQLAlchemy URL of the database, such as sqlite:///clinic.db; by default {VARIABLE}.",
    ),
]
Name = Annotated[str, typer.Option(help="Name of the outbox, where a database has several.")]
EventId = Annotated[str, typer.Argument(metavar="ID", help="Id of a dead event.")]


@outbox.callback()
def group() -> None:
    """Send recorded events from your database to the service."""


@outbox.command()
def run(
    database: Database = None,
    name: Name = "default",
    until_empty: Annotated[
        bool,
        typer.Option("--until-empty", help="End when no event waits or is in flight. Held and dead ones may stay."),
    ] = False,
    requests_per_minute: Annotated[
        int, typer.Option(help="Maximum number of calls in any 60 s by all relays of this outbox.")
    ] = REQUESTS_PER_MINUTE,
    on_rejected: Annotated[
        str, typer.Option(help="What a rejected event does to the later events of its subject: hold or skip.")
    ] = "hold",
) -> None:
    """Send events until the process is stopped. Any number of processes may run at once.

    SIGTERM or Ctrl-C end it after the call in flight. It also ends, with status 1, if the service rejects the API key.
    """
    stop = threading.Event()
    options = {"requests_per_minute": requests_per_minute, "on_rejected": on_rejected}
    logging.basicConfig(stream=sys.stderr, format="%(message)s", level=logging.WARNING)
    with _opened(database, name, **options) as opened, connected() as client, _stopping(stop):
        sent = duplicates = rejected = 0
        for report in opened._relay(client).rounds(stop, raise_denied=True):
            sent, duplicates, rejected = sent + report.sent, duplicates + report.duplicates, rejected + report.rejected
            if report.sent or report.duplicates or report.rejected:
                remark(f"{sent} sent, {duplicates} duplicates, {rejected} rejected")
            if until_empty and _is_empty(opened):
                break
        say(f"{sent} sent, {duplicates} duplicates, {rejected} rejected")


@outbox.command()
def status(database: Database = None, name: Name = "default", as_json: AsJson = False) -> None:
    """Show how many events wait, are in flight, held, dead and sent, and the age of the oldest that waits."""
    with _opened(database, name) as opened:
        found = opened.status()
    row = {
        "waiting": found.waiting,
        "inFlight": found.in_flight,
        "held": found.held,
        "dead": found.dead,
        "sent": found.sent,
        "oldestWaitingSeconds": found.oldest_waiting_seconds,
    }
    show_rows([row], as_json=as_json)


@outbox.command()
def dead(database: Database = None, name: Name = "default", as_json: AsJson = False) -> None:
    """List the rejected events with the reasons, without personal data."""
    with _opened(database, name) as opened:
        found = opened.dead()
    show_rows([_row(each) for each in found], as_json=as_json)


@outbox.command()
def retry(
    event_id: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="Id of a dead event; all when omitted.")
    ] = None,
    database: Database = None,
    name: Name = "default",
) -> None:
    """Let dead events be sent again, under their ids."""
    with _opened(database, name) as opened:
        count = opened.retry(event_id)
    say(f"{count} to be sent again")


@outbox.command()
def discard(event_id: EventId, database: Database = None, name: Name = "default") -> None:
    """Give a dead event up, which lets the later events of its subject go on."""
    with _opened(database, name) as opened:
        opened.discard(event_id)
    say("1 discarded")


@outbox.command()
def purge(
    older_than: Annotated[float, typer.Option(metavar="DAYS", help="Days since an event was accepted or discarded.")],
    database: Database = None,
    name: Name = "default",
) -> None:
    """Remove the events that were sent or discarded so many days ago, with the personal data in them."""
    with _opened(database, name) as opened:
        try:
            age = timedelta(days=older_than)
        except (OverflowError, ValueError):
            reject(f"--older-than must be a number of days, not {older_than}")
        count = opened.purge(older_than=age)
    say(f"{count} removed")


@outbox.command()
def ddl(database: Database = None) -> None:
    """Print the SQL that creates the tables, for your own migrations."""
    with _opened(database, "default") as opened:
        sys.stdout.write(opened.ddl())


@outbox.command()
def create_tables(database: Database = None) -> None:
    """Create the tables that do not exist yet."""
    with _opened(database, "default") as opened:
        opened.create_tables()
    say("OK: the tables exist.")


@contextmanager
def _opened(database: str | None, name: str, **options: Any) -> "Iterator[Outbox]":
    """Open the outbox, and turn its errors into one line."""
    try:
        from followup.outbox import Outbox  # imported late, because a help page needs no database
    except ModuleNotFoundError as error:
        fail(f"outbox needs packages that are not installed: {str(error).partition(': ')[2]}")
    from sqlalchemy.exc import DBAPIError

    from followup import ConfigurationError

    if not database:
        reject(f"no database: pass --database URL, or set the environment variable {VARIABLE}")
    try:
        opened = Outbox(database, name=name, **options)
    except ConfigurationError as error:
        reject(str(error))
    try:
        yield opened
    except DBAPIError as error:
        fail(f"the database failed: {str(error.orig).partition(chr(10))[0]}")
    except ConfigurationError as error:
        fail(str(error))
    except ValueError as error:
        reject(str(error))
    finally:
        opened.close()


def _is_empty(opened: "Outbox") -> bool:
    found = opened.status()
    return not found.waiting and not found.in_flight


@contextmanager
def _stopping(stop: threading.Event) -> Iterator[None]:
    """Let SIGTERM and Ctrl-C set the event."""
    handled = (signal.SIGTERM, signal.SIGINT)
    previous = [signal.signal(each, lambda *_: stop.set()) for each in handled]
    try:
        yield
    finally:
        for each, handler in zip(handled, previous, strict=True):
            signal.signal(each, handler)


def _row(event: "DeadEvent") -> dict[str, Any]:
    from followup._codec.timestamps import format_timestamp
    from followup._redaction import redacted

    return {
        "id": event.id,
        "type": event.event["type"],
        "error": redacted(event.error, _texts(event.event["data"])),
        "attempts": event.attempts,
        "recordedAt": format_timestamp(event.recorded_at),
        "diedAt": format_timestamp(event.died_at),
    }


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts and numbers in the data of an event."""
    if isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif value is not None:
        yield str(value)
