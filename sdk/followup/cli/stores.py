"""What the commands of outbox and inbox share: the database, its errors, reports, and the commands that both have.

The objects of the user's own modules, which the command line names as ``MODULE:NAME``, are found here too.
"""

import functools
import importlib
import inspect
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Literal

import attrs
import typer

from followup import ConfigurationError, FollowUpError
from followup._core.codec.kinds import camel
from followup._core.threads import stop_signals
from followup._version import installation
from followup.cli.application import Application
from followup.cli.lists import show_one
from followup.cli.options import AsJson, kebab, keyword, own_parameters
from followup.cli.output import INTERRUPTED, CommandFailed, fail, reject, say, warn, write_line

DATABASE_VARIABLE = "FOLLOWUP_DATABASE_URL"
CIPHER_VARIABLE = "FOLLOWUP_CIPHER"

Kind = Literal["outbox", "inbox"]

DATABASE = typer.Option(
    "--database",
    metavar="URL",
    show_default=False,
    help="SQLAlchemy URL, such as sqlite:////var/lib/clinic/clinic.db. By default that of "
    f"{DATABASE_VARIABLE}, which other users cannot see in the list of processes.",
)
NAME = typer.Option("--name", help="Name that keeps several organizations in one database apart.")
CIPHER = typer.Option(
    "--cipher",
    metavar="MODULE:NAME",
    show_default=False,
    help=f"Where your cipher is, such as clinic.keys:cipher, if the database is encrypted. Default: {CIPHER_VARIABLE}.",
)

_OPTION = re.compile("on_rejected|requests_per_minute|^cipher")
"""The arguments of an Outbox that have an option."""


@contextmanager
def store_errors(database: str | None = None) -> Iterator[None]:
    """Turn the errors of a store into one line, which shows no personal data.

    Args:
        database: the URL of the database, whose file or server the line then names.

    Raises:
        CommandFailed: the database cannot be used, or there is no such event.
    """
    try:
        import sqlalchemy.exc
    except ModuleNotFoundError:
        fail(f"this command needs packages that are not installed: {installation('store')}")
    from followup._store.database import shown_of
    from followup._store.execution import reason_of

    try:
        yield
    except (FollowUpError, ValueError) as error:
        if getattr(error, "operation", ""):
            raise  # of a call, whose errors ``connected`` reports
        text = _with_commands(str(error))
        fail(text if database is None else text.replace("cipher=...", "--cipher MODULE:NAME"))
    except sqlalchemy.exc.SQLAlchemyError as error:
        place = "the database" if database is None else f"the database {shown_of(sqlalchemy.make_url(database))}"
        fail(f"{place} failed: {reason_of(error)}")


def _with_commands(text: str) -> str:
    """Name commands and options, in an error that names methods and arguments."""
    text = re.sub(r"call (\w+)\.create_tables\(\) once", r"run 'followup \1 create-tables' once", text)
    text = re.sub(r"(\w+)\.ddl\(from_version=(\d+)\)", r"'followup \1 ddl --from \2'", text)
    text = re.sub(r"(\w+)\.ddl\(\)", r"'followup \1 ddl'", text)
    return text.replace("waiting=True", "--waiting")


@contextmanager
def opened(
    kind: Kind, database: str | None, name: str = "default", cipher: str | None = None, **options: Any
) -> Iterator[Any]:
    """Open an outbox or inbox, and turn the errors of its database into one line."""
    url = database or os.environ.get(DATABASE_VARIABLE)
    if not url:
        reject(f"no database: pass --database URL, or set {DATABASE_VARIABLE}")
    with store_errors(url):
        # Imported late, because a help page needs no database.
        store_class = getattr(importlib.import_module(f"followup.{kind}"), kind.capitalize())
        try:
            store = store_class(url, name=name, cipher=_cipher(cipher), **options)
        except ConfigurationError as error:
            reject(_OPTION.sub(lambda found: f"--{kebab(found[0])}", str(error)))
        with closing(store):
            yield store


def _cipher(target: str | None) -> Any:
    """Import the cipher of an option, or else of the environment; None if there is none."""
    target = target or os.environ.get(CIPHER_VARIABLE)
    found = named(target, "clinic.keys:cipher")[1] if target else None
    if target and found is None:
        reject(f"--cipher {target}: the module has no such name")
    return found


def command(group: Application, kind: Kind, **settings: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the decorated function as a command of a group, with the options that select the database.

    Args:
        group: the group of the commands.
        kind: which of the two stores the function takes, as its first argument.
        settings: the options of ``typer.Typer.command``.
    """

    def add(function: Callable[..., None]) -> Callable[..., None]:
        def run(*, database: str | None, name: str, cipher: str | None, **values: Any) -> None:
            with opened(kind, database, name, cipher) as store:
                function(store, **values)

        # Typer makes the options of a command from its signature.
        run.__signature__ = inspect.Signature([*own_parameters(function, 1), *selecting()])  # type: ignore[attr-defined]
        group.command(function.__name__.replace("_", "-"), **{"help": inspect.getdoc(function), **settings})(run)
        return function

    return add


def selecting() -> list[inspect.Parameter]:
    """Return the options that select a store."""
    return [
        keyword("database", Annotated[str | None, DATABASE], None),
        keyword("name", Annotated[str, NAME], "default"),
        keyword("cipher", Annotated[str | None, CIPHER], None),
    ]


def add_common_commands(group: Application, kind: Kind, *, status_help: str, retried: str, again: str) -> None:
    """Add the commands that an outbox and an inbox both have.

    Args:
        group: the group of the commands.
        kind: which of the two.
        status_help: help of ``status``.
        retried: the events that ``retry`` takes.
        again: what becomes of these events.
    """

    @command(group, kind, help=status_help)
    def status(store: Any, as_json: AsJson = False) -> None:
        found = store.status()
        warn(f"{kind} {store.name}: in {store._database.shown}")
        show_report(found, as_json=as_json)

    @command(group, kind, help=f"Let {retried} events be {again} again, under their ids.")
    def retry(
        store: Any,
        event_id: Annotated[
            str | None, typer.Argument(metavar="ID", help=f"Id of one of the {retried} events; all when omitted.")
        ] = None,
    ) -> None:
        say(f"{events(store.retry(event_id))} will be {again} again.")

    @command(group, kind)
    def reencrypt(store: Any) -> None:
        """Rewrite all rows under the present cipher, after its key has changed. Relays and workers may go on."""
        say(f"Encrypted {events(store.reencrypt())} again.")

    @command(group, kind)
    def ddl(
        store: Any,
        from_version: Annotated[
            int | None,
            typer.Option("--from", metavar="VERSION", help="Print the SQL that updates tables of this version."),
        ] = None,
    ) -> None:
        """Print the SQL that creates the tables, for your own migrations."""
        try:
            text = store.ddl(from_version)
        except ValueError as error:
            reject(str(error).replace("from_version", "--from"))
        write_line(text.rstrip("\n"))

    @command(group, kind)
    def create_tables(store: Any) -> None:
        """Create the tables that do not exist yet, and bring those of an earlier release up to date."""
        store.create_tables()
        say("OK: the tables exist.")


QUIET = typer.Option("--quiet", help="Log problems only. What your own module logs is not changed.")


@contextmanager
def until_stopped() -> Iterator[threading.Event]:
    """Yield an event that the first SIGTERM, Ctrl-C or Ctrl-Break sets; a second one ends the process.

    Raises:
        CommandFailed: it was Ctrl-C; raised at the end of the with block.
    """
    stop = threading.Event()
    received: list[int] = []

    def end(number: int, _: object) -> None:
        received.append(number)
        stop.set()
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)

    for number in stop_signals():
        signal.signal(number, end)
    yield stop
    if signal.SIGINT in received:
        raise CommandFailed("", INTERRUPTED)


def age_of(days: float) -> timedelta:
    """Return the value of ``--older-than``.

    Raises:
        CommandFailed: it is not 0 or more.
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


def show_report(report: Any, *, as_json: bool) -> None:
    """Print the numbers of a report or a status."""
    show_one({camel(name): value for name, value in attrs.asdict(report).items()}, as_json=as_json)


def named(target: str, example: str) -> tuple[ModuleType, Any]:
    """Return the object that ``MODULE:NAME`` names, None if there is none, and its module.

    The current folder is importable.

    Args:
        target: the text.
        example: what would be right.

    Raises:
        CommandFailed: the text is invalid, or there is no such module, or it cannot be imported.
    """
    module_name, _, name = target.partition(":")
    if not module_name or not name:
        reject(f"{target!r} must be MODULE:NAME, such as {example}")
    module = _imported(module_name)
    return module, functools.reduce(lambda inner, part: getattr(inner, part, None), name.split("."), module)


def _imported(name: str) -> Any:
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the texts of these errors may have personal data
        missing = (isinstance(error, ModuleNotFoundError) and error.name) or ""
        if missing and f"{name}.".startswith(f"{missing}."):
            reject(f"there is no module {name!r} in {folder} or among the installed ones")
        reason, hint = type(error).__name__, f"; python -c 'import {name}' shows the text of the error"
        if missing:
            reason, hint = f"it needs the module {missing!r}, which is not installed", ""
        if isinstance(error, ConfigurationError):
            reason, hint = str(error), ""
        fail(f"cannot import {name}: {reason}{hint}")
