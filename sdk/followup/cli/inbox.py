"""``followup inbox``: handle the webhooks of an inbox, and look after it."""

import importlib
import re
import sys
import sysconfig
import traceback
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import attrs
import typer

from followup import ConfigurationError
from followup._codec.names import format_timestamp
from followup.cli import stores
from followup.cli.application import Application
from followup.cli.exits import connected, fail, reject
from followup.cli.options import AsJson
from followup.cli.output import remark, say, show_rows
from followup.cli.stores import DatabaseURL, StoreName, opened, store_errors
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
    with stores.until_stopped() as stop, store_errors():
        remark("Handling events until Ctrl-C or SIGTERM.")
        found.run(stop)


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
    stores.show_report(attrs.asdict(report), as_json=as_json)


stores.add_common_commands(
    inbox,
    "inbox",
    status_help="Show how many events wait, are in flight, dead, unhandled and done, and how old the oldest is.",
    id_help="One event; by default all that are dead or unhandled.",
    retry_help="Let dead and unhandled events be handled again.",
    again="handled",
)


@inbox.command()
def dead(database: DatabaseURL = None, name: StoreName = "default", as_json: AsJson = False) -> None:
    """List the dead events, without personal data: the types of their errors, but not the texts.

    Inbox.dead() in Python returns the events and their errors in full.
    """
    with opened("inbox", database, name) as found:
        rows = [_row(each) for each in found.dead()]
    show_rows(rows, as_json, wrap=True, nothing="None.")


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
    age, states = stores.age_of(older_than), frozenset(parts_of(state or ["done"]))
    with opened("inbox", database, name) as found:
        try:
            count = found.purge(older_than=age, states=states)
        except ValueError as error:
            reject(str(error).replace("states must contain", "--state must be"))
    say(f"Purged {stores.events(count)}.")


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
    with opened("inbox", database, name) as found, connected() as client:
        report = found.catch_up(client, webhook_endpoint, bound)
    stores.show_report(attrs.asdict(report), as_json=as_json)


def _time(text: str | None) -> datetime | None:
    try:
        found = None if text is None else datetime.fromisoformat(text)
    except ValueError:
        reject("--since is not a time, such as 2030-01-01T10:00:00-03:00")
    if found is not None and found.utcoffset() is None:
        reject("--since has no offset, such as 2030-01-01T10:00:00-03:00")
    return found


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
        UsageError: there is no such module or name, or it is no Inbox.
        CommandFailed: the module cannot be imported.
    """
    module_name, _, name = target.partition(":")
    if not module_name or not name:
        reject(f"{target!r} must be MODULE:NAME, such as clinic.webhooks:inbox")
    with store_errors():
        from followup.inbox import Inbox

        module = _imported(module_name)
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, Inbox):
        names = [f"{module_name}:{key}" for key, value in vars(module).items() if isinstance(value, Inbox)]
        hint = f"it has {', '.join(names)}" if names else "it has no Inbox"
        reject(f"{target!r} is not an Inbox; {hint}")
    return found


def _imported(name: str) -> Any:
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            reject(f"there is no module {name!r} in {folder} or among the installed ones")
        fail(f"cannot import {name}: it needs the module {error.name!r}, which is not installed{_place(error)}")
    except ConfigurationError as error:
        fail(f"cannot import {name}: {error}{_place(error)}")
    except SystemExit as error:
        fail(f"cannot import {name}: it ends the process with sys.exit{_place(error)}")
    except Exception as error:  # noqa: BLE001 - whatever the user's module raises, whose text may have personal data
        fail(
            f"cannot import {name}: {type(error).__name__}{_place(error)}; to see the text of the error, run "
            f"python -c 'import {name}'"
        )


def _place(error: BaseException) -> str:
    """Return the file and line, as far as possible of the user's code: the last one in the current folder."""
    if isinstance(error, SyntaxError) and error.filename:
        return f" ({Path(error.filename).name}:{error.lineno})"
    frames = [each for each in traceback.extract_tb(error.__traceback__) if not each.filename.startswith("<")]
    # Not all of the environment's folders: the user's program may be in the folder of the environment itself.
    # The standard library is where one of its modules is: sysconfig may name another path of the same folder.
    packages = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    installed = (*packages, str(Path(traceback.__file__).parent))
    own = [each for each in frames if not each.filename.startswith(installed)]
    last = (own or frames)[-1:]
    return f" ({Path(last[0].filename).name}:{last[0].lineno})" if last else ""
