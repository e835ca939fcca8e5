"""``followup-mock check-receiver``, which checks a live webhook receiver."""

import sys
import textwrap
from typing import TYPE_CHECKING, Annotated

import typer

from followup._for_mockserver import visible
from followup.cli.application import Application
from followup.cli.exits import FAILURE, USAGE, fail, reject
from followup.cli.lines import json_line, write_line

if TYPE_CHECKING:
    from followup_mockserver.judge.receiver_check import Report, Verdict

commands = Application()

_SECRET = "FOLLOWUP_WEBHOOK_SECRET"  # noqa: S105 - the name of the variable
_OUTCOME, _NAME = 8, 17
_INDENT = _OUTCOME + _NAME + 4
_NARROWEST = 20
"""Widths of the first two columns, of both with the space after each, and the least width of the third."""

_STYLES = {"PASS": "green", "FAIL": "bold red", "NOT SEEN": "yellow"}


@commands.command(name="check-receiver")
def check_receiver(
    url: Annotated[
        str, typer.Argument(help="URL of the receiver: https, or http to a loopback address.", metavar="URL")
    ],
    secret: Annotated[
        str,
        typer.Option(
            envvar=_SECRET, help="Signing secret of the endpoint, whsec_…; of several, separated by commas, the first."
        ),
    ] = "",
    probe: Annotated[
        str | None,
        typer.Option(help='URL that responds to GET with {"handled": {EVENT_ID: TIMES}}, asked for up to 10 seconds.'),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Send genuine, forged and repeated webhooks to a live receiver: PASS, FAIL or NOT SEEN for each case.

    It sends 66 requests about appointments of invented patients.
    Run it against a test environment. Without --probe, the effects of requests are not seen.

    Exit status: 0 if no case fails, 1 if one fails, 2 if the receiver or the probe cannot be reached, or if the
    arguments are invalid.
    """
    # Imported late, because a help page needs neither the rules of the service nor rich.
    from rich.progress import TextColumn

    from followup.cli.tables import progress
    from followup_mockserver.judge.receiver_check import check_receiver
    from followup_mockserver.judge.receiver_origin import Unreachable
    from followup_mockserver.schema.formats import is_webhook_target

    for argument, value in (("URL", url), ("--probe", probe)):
        if value is not None and not is_webhook_target(value):
            reject(f"{argument} must be an https URL, or an http URL of a loopback address")
    usable = _usable(secret)
    with progress(TextColumn("{task.description}")) as shown:
        task = shown.add_task("Asking the probe" if probe else "Connecting")
        try:
            report = check_receiver(
                url, usable, probe, on_step=lambda step: shown.update(task, description=visible(step))
            )
        except Unreachable as error:
            fail(str(error), USAGE)
    if as_json:
        write_line(json_line(report.to_dict()))
    else:
        _show(report)
    if report.failed:
        raise typer.Exit(FAILURE)


def _usable(secret: str) -> str:
    first = next((each for each in secret.split(",") if each), "")
    if not first:
        reject(f"no secret: set the environment variable {_SECRET} to the whsec_… secret of the endpoint")
    if not first.isascii() or not first.isprintable():
        reject("--secret must be printable ASCII text, such as whsec_…")
    return first


def _show(report: "Report") -> None:
    """Print a line for each case: on a terminal wrapped below its text, in a pipe as one line."""
    counts = f"{report.passed} passed, {report.failed} failed, {report.not_seen} not seen."
    if not sys.stdout.isatty():
        for verdict in report.cases:
            write_line(f"{_beginning(verdict)}{visible(f'{verdict.detail} {verdict.specification}')}")
        write_line(counts)
        return
    from rich.console import Console
    from rich.text import Text

    console = Console()
    for verdict in report.cases:
        beginning = Text(_beginning(verdict))
        beginning.stylize(_STYLES[verdict.outcome], 0, _OUTCOME)
        for text, style in ((verdict.detail, ""), (verdict.specification, "dim")):
            for line in textwrap.wrap(visible(text), max(console.width - _INDENT, _NARROWEST), break_on_hyphens=False):
                console.print(Text.assemble(beginning, (line, style)), soft_wrap=True)
                beginning = Text(" " * _INDENT)
    console.print(counts, highlight=False)


def _beginning(verdict: "Verdict") -> str:
    return f"{verdict.outcome:<{_OUTCOME}}  {verdict.case:<{_NAME}}  "
