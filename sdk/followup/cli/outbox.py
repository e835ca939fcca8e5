"""``followup outbox``: the relay, the status and the dead events of an outbox."""

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from followup._core.api_rules import REQUESTS_PER_MINUTE
from followup._core.codec.wire import format_timestamp
from followup._core.redaction import redacted
from followup.cli import stores
from followup.cli.application import Application
from followup.cli.lists import Listing, Output
from followup.cli.options import AsJson
from followup.cli.output import connected, say

if TYPE_CHECKING:
    from followup.outbox import DeadEvent, FailingEvent, Outbox

commands: Application = Application(no_args_is_help=True)

Deadline = Annotated[float | None, typer.Option(metavar="SECONDS", help="End after so many seconds.")]


@commands.command()
def run(
    database: Annotated[str | None, stores.DATABASE] = None,
    name: Annotated[str, stores.NAME] = "default",
    cipher: Annotated[str | None, stores.CIPHER] = None,
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
    quiet: Annotated[bool, stores.QUIET] = False,
) -> None:
    """Send events until the process is stopped. Any number of processes may run at once.

    Ctrl-C and SIGTERM end it after the call in flight. It also ends, with status 1, if the service rejects the API key.
    It logs on standard error: a line at the start, and one for each batch, without personal data. At the end, it prints
    the numbers of events on standard output.
    """
    options = {"requests_per_minute": requests_per_minute, "on_rejected": on_rejected}
    with stores.until_stopped() as stop, stores.opened("outbox", database, name, cipher, **options) as found:
        from followup._store.store import begin_work

        found._check_tables()  # a wrong database is an error of the command; one that fails later is logged
        begin_work(found, f"at most {requests_per_minute} calls a minute", quiet=quiet)
        with connected() as client:
            text = found._send(client, stop, until_empty=until_empty)
        say(text)


@stores.command(commands, "outbox")
def drain(store: "Outbox", deadline: Deadline = None, as_json: AsJson = False) -> None:
    """Send the events that are due, and exit. For cron, for example; "run --until-empty" also waits for retries."""
    with connected() as client:
        stores.show_report(store.drain(client, deadline), as_json=as_json)


stores.add_common_commands(
    commands,
    "outbox",
    status_help="Show how many events wait, are in flight, held, dead and sent, and how old the oldest is.",
    retried="dead",
    again="sent",
)


_FIELDS = ("id", "type", "error", "attempts", "recordedAt")


@stores.command(commands, "outbox")
@Listing(fields=(*_FIELDS, "diedAt"), wrapped="error", nothing="None.")
def dead(store: "Outbox", output: Output) -> None:
    """List the rejected events with the reasons, without personal data."""
    output.print(_row(each, "diedAt", each.died_at) for each in store.dead())


@stores.command(commands, "outbox")
@Listing(fields=(*_FIELDS, "nextAttemptAt"), wrapped="error", nothing="None.")
def failing(store: "Outbox", output: Output) -> None:
    """List the events that wait for a retry, with the reasons, without personal data."""
    output.print(_row(each, "nextAttemptAt", each.next_attempt_at) for each in store.failing())


@stores.command(commands, "outbox")
def discard(
    store: "Outbox",
    event_id: Annotated[str, typer.Argument(metavar="ID", help="Id of the event.")],
    waiting: Annotated[
        bool, typer.Option("--waiting", help="Also discard an event that waits, such as one that fails forever.")
    ] = False,
) -> None:
    """Discard a dead event, so that the later events of its subject are sent."""
    store.discard(event_id, waiting=waiting)
    say("1 discarded")


@stores.command(commands, "outbox")
def purge(
    store: "Outbox",
    older_than: Annotated[float, typer.Option(metavar="DAYS", help="Days since an event was accepted or discarded.")],
) -> None:
    """Remove old events that were sent or discarded, with the personal data in them."""
    say(f"Purged {stores.events(store.purge(older_than=stores.age_of(older_than)))}.")


def _row(event: "DeadEvent | FailingEvent", time_name: str, time: datetime) -> dict[str, Any]:
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
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)
    elif value is not None:
        yield str(value)
