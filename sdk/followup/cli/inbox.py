"""``followup inbox``: handle the webhooks of an inbox, and look after it."""

import re
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from followup._core.codec.wire import format_timestamp
from followup.cli import stores
from followup.cli.application import Application
from followup.cli.lists import Listing, Output
from followup.cli.options import AsJson, parts_of, time_of
from followup.cli.output import connected, reject, say

if TYPE_CHECKING:
    from followup.inbox import DeadEvent, Inbox

commands: Application = Application(no_args_is_help=True)

Target = Annotated[
    str, typer.Argument(metavar="MODULE:NAME", help="Where your Inbox is, such as clinic.webhooks:inbox.")
]

_PLACES = re.compile(r" at [\w-]+\.py:\d+( > [\w-]+\.py:\d+)*$")


@commands.command()
def run(target: Target, quiet: Annotated[bool, stores.QUIET] = False) -> None:
    """Handle events until the process is stopped, with the handlers of your Inbox.

    Ctrl-C and SIGTERM end it after the event in flight. Any number of processes may run at once. It does not catch up:
    let "followup inbox catch-up" run at the start and every hour, by cron for example.

    It logs a line at the start, and one for each event, without personal data: on standard error, unless your module
    sets up logging.
    """
    found = load_inbox(target)
    with stores.until_stopped() as stop, stores.store_errors():
        from followup._store.store import begin_work

        begin_work(found, f"max_attempts {found._max_attempts}", quiet=quiet)
        found.run(stop)


@commands.command()
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
    with stores.store_errors():
        report = found.drain(deadline)
    stores.show_report(report, as_json=as_json)


stores.add_common_commands(
    commands,
    "inbox",
    status_help="Show how many events wait, are in flight, dead, unhandled and done, and how old the oldest is.",
    retried="dead and unhandled",
    again="handled",
)


@stores.command(commands, "inbox")
@Listing(fields=("id", "type", "ref", "occurredAt", "attempts", "error"), wrapped="error", nothing="None.")
def dead(store: "Inbox", output: Output) -> None:
    """List the dead events, without personal data: the types of their errors, but not the texts.

    Inbox.dead() in Python returns the events and their errors in full.
    """
    output.print(map(_row, store.dead()))


@stores.command(commands, "inbox")
def purge(
    store: "Inbox",
    older_than: Annotated[float, typer.Option(metavar="DAYS", help="Age in days, from the end of the last attempt.")],
    state: Annotated[
        list[str] | None,
        typer.Option(
            help="done, dead or unhandled. Separated by commas; the option can be repeated.", show_default="done"
        ),
    ] = None,
) -> None:
    """Remove the content of events that were finished long ago. Their ids remain, so that none is handled again."""
    age = stores.age_of(older_than)
    try:
        count = store.purge(older_than=age, states=frozenset(parts_of(state or ["done"])))  # type: ignore[arg-type]
    except ValueError as error:
        reject(str(error).replace("states must contain", "--state must be"))
    say(f"Purged {stores.events(count)}.")


@stores.command(commands, "inbox")
def catch_up(
    store: "Inbox",
    webhook_endpoint: Annotated[
        str | None, typer.Option(metavar="ID", help="The endpoint of this inbox; by default the only one there is.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Add nothing older, such as 2030-01-01T10:00:00-03:00.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Fetch the events that never arrived, from the service's list of deliveries."""
    bound = None if since is None else datetime.fromisoformat(time_of(since, "--since"))
    with connected() as client:
        report = store.catch_up(client, webhook_endpoint, bound)
    stores.show_report(report, as_json=as_json)


def _row(dead: "DeadEvent") -> dict[str, Any]:
    places = _PLACES.search(dead.error)
    return {
        "id": dead.event.id,
        "type": dead.event.type,
        "ref": dead.event.ref,
        "occurredAt": format_timestamp(dead.event.occurred_at),
        "attempts": dead.attempts,
        "error": re.split(r":| at ", dead.error, maxsplit=1)[0] + (places[0] if places else ""),
    }


def load_inbox(target: str) -> "Inbox":
    """Import the Inbox that ``MODULE:NAME`` names. The current folder is importable.

    Raises:
        CommandFailed: there is no such module or name, or it is no Inbox, or the module cannot be imported.
    """
    with stores.store_errors():
        from followup.inbox import Inbox

        module, found = stores.named(target, "clinic.webhooks:inbox")
    if not isinstance(found, Inbox):
        names = [f"{module.__name__}:{key}" for key, value in vars(module).items() if isinstance(value, Inbox)]
        reject(f"{target!r} is not an Inbox; it has {', '.join(names) or 'none'}")
    return found
