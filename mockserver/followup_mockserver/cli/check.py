"""``followup-mock check`` and ``check-receiver``: a contract document, and a live receiver, under examination."""

import json
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from followup._for_mockserver import visible
from followup.cli.application import Application
from followup.cli.exits import FAILURE, USAGE, fail, reject
from followup.cli.output import json_line, remark, say, say_wrapped, write_line

if TYPE_CHECKING:
    from followup_mockserver.judge.drift.differences import Difference, Report

commands = Application()


@commands.command(
    epilog="Exit status: 0 if SDK and mock fit the contract, 1 if it has breaking differences or the mock differs, "
    "2 if the document cannot be read, 130 if it was interrupted with Ctrl-C."
)
def check(
    source: Annotated[
        str,
        typer.Argument(
            help='URL or file of the OpenAPI document, in JSON; "-" for standard input. No API key is sent.',
            metavar="URL|FILE",
            show_default=False,
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Compare a contract document with what SDK and mock implement.

    Where a plain sample shows a difference, it is printed as a witness: JSON that only one of the two contracts
    accepts. There are four classes:

    "breaking": the service would reject a request of the SDK, or a response could hold something that the SDK does
    not decode or type.

    "mock differs": the SDK works, but the service accepts a request that the mock rejects, or its responses are not
    those of the mock.

    "added": a new operation, optional parameter or field.

    "wording": a text, or another change after which the same JSON is valid.
    """
    from followup_mockserver.judge.drift.comparison import compare_document
    from followup_mockserver.judge.drift.reading import DocumentError, read_document

    try:
        report = compare_document(read_document(source))
    except DocumentError as error:
        fail(f"cannot read {source}: {error}", USAGE)
    if as_json:
        write_line(json_line(report.to_dict()))
    else:
        for line in lines_of(report):
            write_line(line)
    if not report.is_compatible:
        raise typer.Exit(FAILURE)


_MOST_PLACES = 5
"""Places that are listed of one difference that occurs in many."""
_LONGEST_WITNESS = 400
"""Characters of a witness that are shown."""


def lines_of(report: "Report") -> Iterator[str]:
    """Iterate over the lines of a report: grouped by class, in 80 columns."""
    from followup_mockserver.judge.drift.differences import CLASSES

    if not report.differences:
        yield "No differences: SDK and mock fit this contract."
        return
    for class_ in CLASSES:
        groups: dict[str, list[Difference]] = {}
        for each in report.of_class(class_):
            groups.setdefault(each.detail, []).append(each)
        if groups:
            yield f"{class_}: {len(report.of_class(class_))}"
            for group in groups.values():
                yield from _group(group)
            yield ""
    yield ", ".join(f"{len(report.of_class(class_))} {class_}" for class_ in CLASSES)


def _group(group: "list[Difference]") -> Iterator[str]:
    """Iterate over the lines of a difference that is the same in several places."""
    for each in group[:_MOST_PLACES]:
        yield from _wrapped(each.where, "  ", "    ")
    if len(group) > _MOST_PLACES:
        yield f"  … and {len(group) - _MOST_PLACES} other places"
    yield from _wrapped(group[0].detail, "      ", "      ")
    if group[0].witness is not None:
        witness = json.dumps(group[0].witness, ensure_ascii=False)
        shown = witness if len(witness) <= _LONGEST_WITNESS else f"{witness[:_LONGEST_WITNESS]}…"
        yield from _wrapped(f"witness: {shown}", "      ", "        ")


def _wrapped(text: str, first: str, others: str) -> list[str]:
    return textwrap.wrap(visible(text), 80, initial_indent=first, subsequent_indent=others, break_on_hyphens=False)


_SECRET = "FOLLOWUP_WEBHOOK_SECRET"  # noqa: S105 - the name of the variable


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
    """Send genuine, forged and repeated webhooks to a live receiver, and judge each case.

    Each case is PASS, FAIL or NOT SEEN. The command sends 66 requests about appointments of invented patients.
    Run it against a test environment. Without --probe, the effects of requests are not seen.

    Exit status: 0 if no case fails, 1 if one fails, 2 if the receiver or the probe cannot be reached, or if the
    arguments are invalid.
    """
    from followup_mockserver.judge.receiver_check import check_receiver
    from followup_mockserver.judge.receiver_origin import Unreachable
    from followup_mockserver.schema.formats import is_webhook_target

    for argument, value in (("URL", url), ("--probe", probe)):
        if value is not None and not is_webhook_target(value):
            reject(f"{argument} must be an https URL, or an http URL of a loopback address")
    usable = next(filter(None, secret.split(",")), "")
    if not usable:
        reject(f"no secret: set {_SECRET} to the whsec_… secret of the endpoint")
    if not (usable.isascii() and usable.isprintable()):
        reject("--secret must be printable ASCII")
    try:
        report = check_receiver(url, usable, probe, on_step=remark)
    except Unreachable as error:
        fail(str(error), USAGE)
    if as_json:
        write_line(json_line(report.to_dict()))
    else:
        for each in report.cases:
            say_wrapped(f"{each.outcome:<8}  {each.case:<17}  ", each.detail, each.specification)
        say(f"{report.count('PASS')} passed, {report.count('FAIL')} failed, {report.count('NOT SEEN')} not seen.")
    if report.count("FAIL"):
        raise typer.Exit(FAILURE)
