"""``followup outbox``: the relay, the status and the dead events of an outbox."""

import logging
import re
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import attrs
import typer

from followup._annotations import REQUESTS_PER_MINUTE
from followup.cli.application import Application
from followup.cli.exits import INTERRUPTED, CommandFailed, connected, reject
from followup.cli.options import AsJson
from followup.cli.output import remark, say, show_rows
from followup.cli.stores import (
    DatabaseURL,
    FromVersion,
    StoreName,
    database_url,
    show_ddl,
    show_report,
    store_errors,
)
from followup.cli.values import kebab

if TYPE_CHECKING:
    from followup.outbox import DeadEvent, FailingEvent, Outbox

outbox = Application(no_args_is_help=True)

_OPTION = re.compile("on_rejected|requests_per_minute")
"""The arguments of an Outbox that have an option."""

EventId = Annotated[str, typer.Argument(metavar="ID", help="Id of the event.")]


@outbox.callback()
def group() -> None:
    """Send recorded events from your database to the service."""


@outbox.command()
def run(
    database: DatabaseURL = None,
    name: StoreName = "default",
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

    Ctrl-C and SIGTERM end it after the call in flight. It also ends, with status 1, if the service rejects the API key.
    """
    stop = threading.Event()
    options = {"requests_per_minute": requests_per_minute, "on_rejected": on_rejected}
    logging.basicConfig(stream=sys.stderr, format="%(message)s", level=logging.WARNING)
    with _opened(database, name, **options) as opened, connected() as client, _stopping(stop) as received:
        sent = duplicates = rejected = 0
        opened._check_tables()  # a wrong database is an error of the command; one that fails later is logged
        for report in opened._relay(client).rounds(stop, opened._check_tables, raise_denied=True):
            sent, duplicates, rejected = sent + report.sent, duplicates + report.duplicates, rejected + report.rejected
            if report.sent or report.duplicates or report.rejected:
                remark(f"{sent} sent, {duplicates} duplicates, {rejected} rejected")
            if until_empty and not opened._remaining():
                break
        say(f"{sent} sent, {duplicates} duplicates, {rejected} rejected")
    if signal.SIGINT in received:
        raise CommandFailed("", INTERRUPTED)


@outbox.command()
def status(database: DatabaseURL = None, name: StoreName = "default", as_json: AsJson = False) -> None:
    """Show how many events wait, are in flight, held, dead and sent, and the age of the oldest that waits."""
    with _opened(database, name) as opened:
        found = opened.status()
    show_report(attrs.asdict(found), as_json=as_json)


@outbox.command()
def dead(database: DatabaseURL = None, name: StoreName = "default", as_json: AsJson = False) -> None:
    """List the rejected events with the reasons, without personal data."""
    with _opened(database, name) as opened:
        found = opened.dead()
    show_rows([_row(each, "diedAt", each.died_at) for each in found], as_json, wrap=True, nothing="None.")


@outbox.command()
def failing(database: DatabaseURL = None, name: StoreName = "default", as_json: AsJson = False) -> None:
    """List the events that wait for a retry, with the reasons, without personal data."""
    with _opened(database, name) as opened:
        found = opened.failing()
    show_rows(
        [_row(each, "nextAttemptAt", each.next_attempt_at) for each in found], as_json, wrap=True, nothing="None."
    )


@outbox.command()
def retry(
    event_id: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="Id of a dead event; all when omitted.")
    ] = None,
    database: DatabaseURL = None,
    name: StoreName = "default",
) -> None:
    """Let dead events be sent again, under their ids."""
    with _opened(database, name) as opened:
        count = opened.retry(event_id)
    say(f"{count} to be sent again")


@outbox.command()
def discard(
    event_id: EventId,
    waiting: Annotated[
        bool, typer.Option("--waiting", help="Also give up an event that waits, such as one that fails forever.")
    ] = False,
    database: DatabaseURL = None,
    name: StoreName = "default",
) -> None:
    """Give up a dead event, so that the later events of its subject are sent."""
    with _opened(database, name) as opened:
        opened.discard(event_id, waiting=waiting)
    say("1 discarded")


@outbox.command()
def purge(
    older_than: Annotated[float, typer.Option(metavar="DAYS", help="Days since an event was accepted or discarded.")],
    database: DatabaseURL = None,
    name: StoreName = "default",
) -> None:
    """Remove old events that were sent or discarded, with the personal data in them."""
    try:
        age = timedelta(days=older_than)
    except (OverflowError, ValueError):
        reject("--older-than must be a number of days")
    if age < timedelta(0):
        reject("--older-than must be 0 or more")
    with _opened(database, name) as opened:
        count = opened.purge(older_than=age)
    say(f"{count} removed")


@outbox.command()
def ddl(database: DatabaseURL = None, from_version: FromVersion = None) -> None:
    """Print the SQL that creates the tables, for your own migrations."""
    with _opened(database, "default") as opened:
        show_ddl(opened, from_version)


@outbox.command()
def create_tables(database: DatabaseURL = None) -> None:
    """Create the tables that do not exist yet, and bring those of an earlier release up to date."""
    with _opened(database, "default") as opened:
        opened.create_tables()
    say("OK: the tables exist.")


@contextmanager
def _opened(database: str | None, name: str, **options: Any) -> "Iterator[Outbox]":
    """Open the outbox, and turn the errors of its database into one line."""
    url = database_url(database)
    with store_errors(url):
        from followup import ConfigurationError
        from followup.outbox import Outbox  # imported late, because a help page needs no database

        try:
            opened = Outbox(url, name=name, **options)
        except ConfigurationError as error:
            reject(_OPTION.sub(lambda found: f"--{kebab(found[0])}", str(error)))
        try:
            yield opened
        finally:
            opened.close()


@contextmanager
def _stopping(stop: threading.Event) -> Iterator[list[int]]:
    """Let the first SIGTERM or Ctrl-C set the event; a second one ends the process. Yield the signals received."""
    received: list[int] = []

    def end(number: int, _: object) -> None:
        received.append(number)
        stop.set()
        signal.signal(number, signal.SIG_DFL if number == signal.SIGTERM else signal.default_int_handler)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    yield received


def _row(event: "DeadEvent | FailingEvent", time_name: str, time: datetime) -> dict[str, Any]:
    from followup._codec.names import format_timestamp
    from followup._redaction import redacted

    return {
        "id": event.id,
        "type": event.event["type"],
        "error": redacted(event.error, _texts(event.event["data"])),
        "attempts": event.attempts,
        "recordedAt": format_timestamp(event.recorded_at),
        time_name: format_timestamp(time),
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
