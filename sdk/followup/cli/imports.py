"""``followup import``: the commands for a clinic's own files."""

import functools
import gc
import os
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal
from zoneinfo import ZoneInfo

import typer

from followup import ConfigurationError
from followup._core.codec.wire import format_timestamp
from followup.cli import output, stores
from followup.cli.application import Application
from followup.cli.output import CommandFailed, connected, reject, say

if TYPE_CHECKING:
    from followup.imports import Report
    from followup.outbox import DrainReport

commands: Application = Application(
    no_args_is_help=True,
    epilog="Exit status: 0 on success, 1 if a row was rejected, an event could not be sent, or file and service "
    "differ. 2 if nothing was done: the file, the map, the database or the service cannot be used, or too many rows "
    "were rejected or are gone. 130 if it was interrupted with Ctrl-C.",
)

File = Annotated[Path, typer.Argument(help="The exported table: CSV, .xlsx, .xls, .xlsb or .ods.")]
MapFile = Annotated[Path, typer.Option("--map", metavar="MAP", help='The map of the file; "init" proposes one.')]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Language = Annotated[
    Literal["es", "pt", "en"] | None,
    typer.Option(help="Language of the report, or of the comments.", show_default="that of the file's headers"),
]
ShowPersonalData = Annotated[
    bool, typer.Option("--show-personal-data", help="Show the values of all columns, wherever the output goes.")
]


@commands.command()
def init(
    file: File,
    target: Annotated[
        Path | None,
        typer.Option("--output", help="File to write; it must not exist yet.", show_default="standard output"),
    ] = None,
    language: Language = None,
) -> None:
    """Propose a map of a file from its headers and values, with a comment at each guess.

    Knows the words of Spanish, Portuguese and English. Read each comment, and correct what is wrong.
    """
    with _nothing_done():
        from followup.imports.proposal import propose

        if target is not None and target.exists():
            reject(f"{target} exists already; choose another name, or remove it")
        with _progress(file) as on_progress:
            text = propose(file, on_progress, language)
        if target is None:
            sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]  # as the other commands read it
            output.write_line(text, end="")
            return
        with output.file_errors(f"write {target}"), target.open("x", encoding="utf-8") as stream:
            stream.write(text)
    say(f"{target} is a proposal: read each comment in it, and correct what is wrong.")
    say(f"Then see what the file would do: followup import check {file} --map {target}")


@commands.command()
def check(
    file: File,
    map: MapFile,
    as_json: AsJson = False,
    html: Annotated[
        Path | None, typer.Option(help="Also write the report as an HTML page, which needs no other file.")
    ] = None,
    show_personal_data: ShowPersonalData = False,
    language: Language = None,
) -> None:
    """Show how the first rows were understood, what a first run would record, and every doubt.

    Nothing is sent or stored. A terminal shows the values of all columns. Everywhere else only times, statuses and ids
    are shown.
    """
    with _nothing_done():
        from followup.cli.import_report import Shown
        from followup.imports import Import
        from followup.imports.proposal import language_of

        job = Import.load(map)
        report, rejected = _reported(file, job.check)
        shown = Shown(report, job, file, is_recorded=None, shows_values=show_personal_data)
        shown.language = language or language_of(job.map.headers)
        if html is not None:
            with output.file_errors(f"write {html}"):
                output.write_private_file(html, shown.page())
        shown.shows_values = show_personal_data or (sys.stdout.isatty() and not as_json)
        shown.print(as_json=as_json)
        if rejected:
            reject(rejected)
    if report.rejected:
        raise CommandFailed("")


@commands.command()
def run(
    file: File,
    map: MapFile,
    database: Annotated[str | None, stores.DATABASE] = None,
    name: Annotated[str, stores.NAME] = "default",
    cipher: Annotated[str | None, stores.CIPHER] = None,
    send: Annotated[bool, typer.Option("--send", help="Send all events of the outbox at the end.")] = False,
    as_json: AsJson = False,
    show_personal_data: ShowPersonalData = False,
) -> None:
    """Record what changed in a file since the last run in the outbox of a database, in one transaction.

    A relay sends the events ("followup outbox run"), or --send does. It can be repeated at any time: a second run of
    the same file records nothing.
    """
    with _nothing_done():
        from followup.cli.import_report import Shown
        from followup.imports import Import

        job = Import.load(map)
        if send:
            with connected():
                pass  # without a key or a base URL, nothing is recorded
        with stores.opened("outbox", database, name, cipher) as outbox:
            report, rejected = _reported(file, functools.partial(job.run, database=outbox))
    sent, problem = _send(database, name, cipher) if send and not rejected else (None, "")
    Shown(report, job, file, is_recorded=not rejected, shows_values=show_personal_data).print(as_json=as_json)
    if sent and not as_json:
        say(f"Sent: {sent.sent + sent.duplicates:,}. Rejected: {sent.rejected:,}. Waiting: {sent.remaining:,}.")
    if rejected:
        reject(rejected)
    if problem or report.rejected:
        raise CommandFailed(problem)


@commands.command()
def verify(
    file: File,
    map: MapFile,
    database: Annotated[str | None, stores.DATABASE] = None,
    name: Annotated[str, stores.NAME] = "default",
    cipher: Annotated[str | None, stores.CIPHER] = None,
    as_json: AsJson = False,
) -> None:
    """Compare a file with the service: what is missing or rejected, and which times, statuses and patients differ.

    With a database, appointments that earlier files had and this one has not are shown, too. It keeps to the rate
    limit of the service, and shows no personal data.
    """
    with _nothing_done(), ExitStack() as stack:
        from followup.imports import Import, ImportRefused

        job = Import.load(map)
        client = stack.enter_context(connected())
        has_database = database or os.environ.get(stores.DATABASE_VARIABLE)
        outbox = stack.enter_context(stores.opened("outbox", database, name, cipher)) if has_database else None
        try:
            differences = [*job.verify(file, client, outbox)]
        except ImportRefused as error:
            reject(str(error))
    if as_json:
        sides = [{"here": _in_json(each.here), "there": _in_json(each.there)} for each in differences]
        rows = zip(differences, sides, strict=True)
        found = [{"externalId": each.external_id, "kind": each.kind, **both} for each, both in rows]
        output.write_line(output.json_line({"differences": found}))
    else:
        for each in differences:
            here, there = (_in_words(side, job.map.zone) for side in (each.here, each.there))
            say(f"{each.external_id or '-'}  {each.kind}: {here} in the file, {there} at the service")
        say(f"{len(differences):,} differences" if differences else f"{file.name} and the service agree.")
    if differences:
        raise CommandFailed("")


def _reported(file: Path, work: Callable[..., "Report"]) -> tuple["Report", str]:
    """Return a report, and why nothing was recorded, if so."""
    from followup.imports import ImportRefused

    try:
        with _progress(file) as on_progress:
            return work(file, on_progress=on_progress), ""
    except ImportRefused as error:
        return error.report, str(error)


def _in_json(side: datetime | str | None) -> str | None:
    return format_timestamp(side) if isinstance(side, datetime) else side


def _in_words(side: datetime | str | None, zone: ZoneInfo) -> str:
    return f"{side.astimezone(zone):%Y-%m-%d %H:%M}" if isinstance(side, datetime) else side or "not there"


def _send(database: str | None, name: str, cipher: str | None) -> tuple["DrainReport | None", str]:
    """Drain the outbox; return what was sent, and the problem if not everything was."""
    try:
        with stores.opened("outbox", database, name, cipher) as outbox, connected() as client:
            sent = outbox.drain(client)
    except CommandFailed as error:
        return None, str(error)
    if sent.rejected:
        return sent, f"the service rejected {stores.events(sent.rejected)}; 'followup outbox dead' shows the reasons"
    problem = f"{stores.events(sent.remaining)} could not be sent now; the next run sends them"
    return sent, problem if sent.remaining else ""


@contextmanager
def _nothing_done() -> Iterator[None]:
    """End with status 2 after an error: so far, nothing was recorded, and nothing was compared to its end."""
    try:
        yield
    except CommandFailed as error:
        if error.status != output.INTERRUPTED:
            error.status = output.USAGE
        raise
    except (ConfigurationError, ModuleNotFoundError) as error:  # of a missing extra, which the message names
        reject(str(error))
    except OSError as error:
        if error.filename is None:
            raise
        reject(f"cannot read {error.filename}: {error.strerror}")
    except sqlite3.Error as error:
        reject(f"cannot write a temporary file: {error}")


@contextmanager
def _progress(file: Path) -> Iterator[Callable[[int, int], object]]:
    from followup._core.redaction import visible
    from followup.cli.lists import progress

    gc.freeze()  # else each search for cyclic garbage looks at all modules again, which takes a seventh of the time
    try:
        with progress("rows") as bar:
            task = bar.add_task(visible(file.name), total=None)

            def show(rows: int, total: int) -> None:
                bar.tasks[0].total = total if rows < total else None  # which pulses, while the rows are compared
                bar.update(task, completed=rows)

            yield show
    finally:
        gc.unfreeze()
