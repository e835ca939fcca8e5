"""``followup inbox``: handle the webhooks of an inbox, and look after it."""

import re
import signal
import threading
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import attrs
import typer

from followup._codec.names import format_timestamp
from followup.cli.application import Application
from followup.cli.exits import INTERRUPTED, CommandFailed, connected, reject
from followup.cli.inbox_module import load_inbox
from followup.cli.options import AsJson
from followup.cli.output import json_line, remark, say, write_line
from followup.cli.stores import (
    DatabaseURL,
    FromVersion,
    StoreName,
    database_url,
    show_ddl,
    show_report,
    store_errors,
)
from followup.cli.values import parts_of

if TYPE_CHECKING:
    from followup.inbox import DeadEvent, Inbox

inbox = Application(no_args_is_help=True)

Target = Annotated[
    str,
    typer.Argument(metavar="MODULE:NAME", help="Where your Inbox is, such as clinic.webhooks:inbox."),
]

_PLACES = re.compile(r" at [\w-]+\.py:\d+( > [\w-]+\.py:\d+)*$")


@inbox.callback()
def group() -> None:
    """Handle the webhooks that an inbox has stored, and look after them."""


@inbox.command()
def run(target: Target) -> None:
    """Handle events until the process is stopped, with the handlers of your Inbox.

    Ctrl-C and SIGTERM end it after the event in flight. Any number of processes may run at once.
    """
    found = load_inbox(target)
    stop = threading.Event()
    received: list[int] = []

    def end(number: int, _: Any) -> None:
        received.append(number)
        stop.set()
        signal.signal(number, signal.SIG_DFL if number == signal.SIGTERM else signal.default_int_handler)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    remark("Handling events until Ctrl-C or SIGTERM.")
    with store_errors():
        found.run(stop)
    if signal.SIGINT in received:
        raise CommandFailed("", INTERRUPTED)


@inbox.command()
def drain(
    target: Target,
    deadline: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Begin no further event after so many seconds.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Handle the events that are due, with the handlers of your Inbox, and exit. For cron, for example."""
    if deadline is not None and not deadline > 0:
        reject("--deadline must be a positive number of seconds")
    found = load_inbox(target)
    with store_errors():
        report = found.drain(deadline)
    show_report(attrs.asdict(report), as_json=as_json)


@inbox.command()
def status(database: DatabaseURL = None, name: StoreName = "default", as_json: AsJson = False) -> None:
    """Show how many events wait, are in flight, dead, unhandled and done, and how long the oldest has waited."""
    with store_errors(database_url(database)):
        report = _opened(database, name).status()
    show_report(attrs.asdict(report), as_json=as_json)


@inbox.command()
def dead(database: DatabaseURL = None, name: StoreName = "default", as_json: AsJson = False) -> None:
    """List the dead events, without personal data: the types of their errors, but not the texts.

    Inbox.dead() in Python returns the events and their errors in full.
    """
    with store_errors(database_url(database)):
        for each in _opened(database, name).dead():
            _show_dead(each, as_json=as_json)


@inbox.command()
def retry(
    event_id: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="One event; by default all that are dead or unhandled.")
    ] = None,
    database: DatabaseURL = None,
    name: StoreName = "default",
) -> None:
    """Let dead and unhandled events be handled again."""
    with store_errors(database_url(database)):
        count = _opened(database, name).retry(event_id)
    say(f"{_events(count)} will be handled again.")


@inbox.command()
def purge(
    older_than: Annotated[float, typer.Option(metavar="DAYS", help="Age in days, from the end of the last attempt.")],
    state: Annotated[
        list[str] | None,
        typer.Option(
            help="done, dead or unhandled. Separated by commas; the option can be repeated.", show_default="done"
        ),
    ] = None,
    database: DatabaseURL = None,
    name: StoreName = "default",
) -> None:
    """Remove the content of events that were finished long ago. Their ids remain, so that none is handled again."""
    try:
        age = timedelta(days=older_than)
    except (ValueError, OverflowError):
        reject("--older-than is not a number of days")
    with store_errors(database_url(database)):
        opened = _opened(database, name)
        try:
            count = opened.purge(older_than=age, states=frozenset(parts_of(state or ["done"])))  # type: ignore[arg-type]
        except ValueError as error:
            reject(str(error).replace("older_than", "--older-than").replace("states must contain", "--state must be"))
    say(f"Purged {_events(count)}.")


@inbox.command()
def catch_up(
    webhook_endpoint: Annotated[
        str | None, typer.Option(metavar="ID", help="The endpoint of this inbox; by default the only one there is.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Add nothing older, such as 2030-01-01T10:00:00-03:00.")
    ] = None,
    database: DatabaseURL = None,
    name: StoreName = "default",
    as_json: AsJson = False,
) -> None:
    """Fetch the events that never arrived, from the service's list of deliveries."""
    bound = _time(since)
    with store_errors(database_url(database)):
        opened = _opened(database, name)
        with connected() as client:
            report = opened.catch_up(client, webhook_endpoint, bound)
    show_report(attrs.asdict(report), as_json=as_json)


@inbox.command()
def ddl(database: DatabaseURL = None, from_version: FromVersion = None) -> None:
    """Print the SQL that creates the tables, for your own migrations."""
    with store_errors(database_url(database)):
        show_ddl(_opened(database, "default"), from_version)


@inbox.command()
def create_tables(database: DatabaseURL = None) -> None:
    """Create the tables that do not exist yet, and bring those of an earlier release up to date."""
    with store_errors(database_url(database)):
        _opened(database, "default").create_tables()
    say("The tables exist.")


def _opened(database: str | None, name: str) -> "Inbox":
    from followup import ConfigurationError
    from followup.inbox import Inbox

    try:
        return Inbox(database_url(database), name=name)
    except ConfigurationError as error:
        reject(str(error))


def _events(count: int) -> str:
    return "1 event" if count == 1 else f"{count} events"


def _time(text: str | None) -> datetime | None:
    try:
        found = None if text is None else datetime.fromisoformat(text)
    except ValueError:
        reject("--since is not a time, such as 2030-01-01T10:00:00-03:00")
    if found is not None and found.utcoffset() is None:
        reject("--since has no offset, such as 2030-01-01T10:00:00-03:00")
    return found


def _show_dead(dead: "DeadEvent", *, as_json: bool) -> None:
    import sys

    places = _PLACES.search(dead.error)
    fields = {
        "id": dead.event.id,
        "type": dead.event.type,
        "ref": dead.event.ref,
        "occurredAt": format_timestamp(dead.event.occurred_at),
        "attempts": dead.attempts,
        "error": re.split(r":| at ", dead.error, maxsplit=1)[0] + (places[0] if places else ""),
    }
    if as_json or not sys.stdout.isatty():
        write_line(json_line(fields))
    else:
        say("  ".join(map(str, fields.values())))
