"""The commands of the judge: ``check`` a contract document, ``check-receiver``, and ``calibrate`` by an environment."""

import os
import re
import sys
import textwrap
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from followup._for_mockserver import visible
from followup.cli import output as terminal
from followup.cli.application import Application
from followup.cli.options import parts_of
from followup.cli.output import fail, reject, remark, say, say_wrapped, write_line

if TYPE_CHECKING:
    from followup import Account
    from followup_mockserver.lab.calibration import Finding
    from followup_mockserver.lab.calibration_run import Run
    from followup_mockserver.lab.contract_check import Report

commands: Application = Application()


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
    """Say what differs, in four classes.

    Names, required fields, types, enums and limits are compared, and both values are printed. There are four classes:

    "breaking": the service would reject a request of the SDK, or a response could hold something that the SDK does
    not decode or type.

    "mock differs": the SDK works, but the service accepts a request that the mock rejects, or its responses are not
    those of the mock.

    "added": a new operation, optional parameter or field.

    "wording": a text.
    """
    from followup_mockserver.lab.contract_check import compare_document
    from followup_mockserver.lab.contract_document import DocumentError, read_document

    try:
        report = compare_document(read_document(source))
    except DocumentError as error:
        fail(f"cannot read {source}: {error}", terminal.USAGE)
    if as_json:
        write_line(terminal.json_line(report.to_dict()))
    else:
        for line in lines_of(report):
            write_line(line)
    if not report.is_compatible:
        raise typer.Exit(terminal.FAILURE)


_MOST_PLACES = 5
"""Places that are listed of one difference that occurs in many."""


def lines_of(report: "Report") -> Iterator[str]:
    """Iterate over the lines of a report: grouped by class, in 80 columns."""
    from followup_mockserver.lab.contract_check import CLASSES

    if not report.differences:
        yield "No differences: SDK and mock fit this contract."
        return
    for class_ in CLASSES:
        groups: dict[str, list[str]] = {}
        for each in report.of_class(class_):
            groups.setdefault(each.detail, []).append(each.where)
        if groups:
            yield terminal.painted(f"{class_}: {len(report.of_class(class_))}", terminal.style_of(class_))
            for detail, places in groups.items():
                for place in places[:_MOST_PLACES]:
                    yield from _wrapped(place, "  ", "    ")
                if len(places) > _MOST_PLACES:
                    yield f"  … and {len(places) - _MOST_PLACES} other places"
                yield from _wrapped(detail, "      ", "      ")
            yield ""
    yield ", ".join(f"{len(report.of_class(class_))} {class_}" for class_ in CLASSES)


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
            envvar=_SECRET,
            help="Signing secret of the endpoint, whsec_...; of several, separated by commas, the first.",
        ),
    ] = "",
    probe: Annotated[
        str | None,
        typer.Option(help='URL that responds to GET with {"handled": {EVENT_ID: TIMES}}, asked for up to 10 seconds.'),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Judge each case of a receiver's duty.

    Each case is PASS, FAIL or NOT SEEN. The command sends 66 requests about appointments of invented patients.
    Run it against a test environment. Without --probe, the effects of requests are not seen.

    Exit status: 0 if no case fails, 1 if one fails, 2 if the receiver or the probe cannot be reached, or if the
    arguments are invalid.
    """
    from followup_mockserver.lab.receiver_check import check_receiver
    from followup_mockserver.lab.receiver_client import Unreachable
    from followup_mockserver.world.schema.formats import is_webhook_target

    for argument, value in (("URL", url), ("--probe", probe)):
        if value is not None and not is_webhook_target(value):
            reject(f"{argument} must be an https URL, or an http URL of a loopback address")
    usable = next(filter(None, map(str.strip, secret.split(","))), "")
    if not usable:
        reject(f"no secret: set {_SECRET} to the whsec_... secret of the endpoint")
    if not (usable.isascii() and usable.isprintable()):
        reject("--secret must be printable ASCII")
    try:
        report = check_receiver(url, usable, probe, on_step=remark)
    except Unreachable as error:
        fail(str(error), terminal.USAGE)
    if as_json:
        write_line(terminal.json_line(report.to_dict()))
    else:
        for each in report.cases:
            say_wrapped(f"{each.outcome:<8}  {each.case:<17}  ", each.detail, each.specification)
        say(f"{report.count('PASS')} passed, {report.count('FAIL')} failed, {report.count('NOT SEEN')} not seen.")
    if report.count("FAIL"):
        raise typer.Exit(terminal.FAILURE)


_ACCOUNT_DEADLINE = 30.0
"""Seconds in which the environment must return the account, retries included; a slower one cannot be asked."""

_Url = Annotated[str, typer.Argument(help="Base URL of the test environment.", metavar="URL", show_default=False)]
_KeyVariable = Annotated[
    str, typer.Option("--api-key-env", metavar="NAME", help="Environment variable that contains the API key.")
]
_Output = Annotated[Path, typer.Option("--output", metavar="FILE", help="Settings file to write.")]
_Phones = Annotated[
    list[str] | None,
    typer.Option(
        "--phone",
        metavar="NUMBER",
        help="Phone number of an invented patient, with its country code, instead of numbers that are reserved for "
        "fiction. The service may write to it.",
    ),
]


@commands.command()
def calibrate(url: _Url, api_key_env: _KeyVariable, output: _Output, phone: _Phones = None) -> None:
    """Find out what the specification leaves open, and write a settings file.

    It rejects an API key of production. It creates invented patients, appointments, intake requests, an event and a
    webhook endpoint; at the end it cancels the appointments, deletes the endpoint, and lists what is left.
    """
    key = os.environ.get(api_key_env, "")
    if not key.strip():
        reject(f"--api-key-env: the environment variable {api_key_env} is not set")
    phones = parts_of(phone or ())
    if not all(re.fullmatch(r"\+[0-9]{7,15}", each) for each in phones):
        reject("--phone must be a phone number with its country code, such as +12025550143")
    folder = output.resolve().parent  # checked before anything is asked
    if output.is_dir() or not folder.is_dir() or not os.access(output if output.exists() else folder, os.W_OK):
        reject(f"--output {output} must be a file that can be written, in a folder that exists")
    account = _account(url, key)
    if account.livemode is not False:
        reject("the API key is one of production (livemode is true); calibrate writes only to a test environment")
    remark(f"This writes to {account.name!r}, about invented patients; the service may write to their phone numbers.")

    from followup_mockserver.lab.calibration import ask_all
    from followup_mockserver.lab.calibration_run import Run

    findings = []
    # The tag keeps the objects of this run apart from those that an earlier one could not remove.
    run = Run(url, key, account, uuid.uuid4().hex[:8], phones)
    terminal.interrupt_on_signals()  # a cancelled CI job cleans up, too
    try:
        for each in ask_all(run):
            findings.append(each)
            write_line(f"{each.id}  {visible(each.text)}")
            sys.stdout.flush()
    finally:
        is_clean = _clean_up(run)
        run.close()
    _write(output, run, findings)
    if not is_clean:
        fail("some objects could not be cleaned up; the list above names them", terminal.FAILURE)


def _account(url: str, key: str) -> "Account":
    from followup import ConfigurationError, FollowUp, FollowUpError  # imported late: a help page needs no client

    try:
        with FollowUp(api_key=key, base_url=url, deadline=_ACCOUNT_DEADLINE) as client:
            return client.account.retrieve()
    except ConfigurationError as error:
        reject(str(error).replace("base_url", "URL"))
    except FollowUpError as error:
        fail(f"cannot retrieve the account of the API key: {error}")


def _clean_up(run: "Run") -> bool:
    """Clean up, and list what is left in the environment. Return whether all that can be cleaned up was."""
    try:
        return run.clean_up()
    finally:  # also if Ctrl-C ends the clean-up
        lines = [*run.left_behind()]
        if lines:
            write_line("\nLeft in the test environment, because the API cannot remove it:")
        for line in lines:
            write_line(visible(line))
        sys.stdout.flush()


def _write(output: Path, run: "Run", findings: "list[Finding]") -> None:
    from followup_mockserver.lab.calibration import settings_file

    text = settings_file(run.settings, findings)
    with terminal.file_errors(f"write {output}"):
        output.write_text(text, encoding="utf-8")
    asked = [each for each in findings if each.outcome != "not asked"]
    different = sum(each.outcome == "different" for each in asked)
    write_line(f"\n{len(asked)} of {len(findings)} open points asked; {different} differ from the mock. See {output}.")
