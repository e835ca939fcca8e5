"""``followup-mock calibrate``: asks a test environment of the real service what the specification leaves open."""

import os
import signal
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from followup._for_mockserver import visible
from followup.cli.application import Application
from followup.cli.exits import FAILURE, fail, file_errors, reject
from followup.cli.output import warn, write_line
from followup.cli.values import parts_of

if TYPE_CHECKING:
    from followup import Account
    from followup_mockserver.judge.calibration.calibrate import Finding
    from followup_mockserver.judge.calibration.run import Run

commands = Application()

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
        "fiction. The service may write to it. Some questions need several: separated by commas, or repeat the option.",
    ),
]
_Yes = Annotated[bool, typer.Option("--yes", help="Do not ask before anything is written to the environment.")]


@commands.command()
def calibrate(url: _Url, api_key_env: _KeyVariable, output: _Output, phone: _Phones = None, yes: _Yes = False) -> None:
    """Ask a test environment what the specification leaves open, and write a settings file.

    It rejects an API key of production. It creates invented patients, appointments, visits, intake requests,
    treatments, events and webhook endpoints; at the end it cancels the appointments, deletes the endpoints, and lists
    what is left.
    """
    key = os.environ.get(api_key_env, "")
    if not key.strip():
        reject(f"--api-key-env: the environment variable {api_key_env} is not set")
    phones = [_checked_phone(each) for each in parts_of(phone or ())]
    folder = output.resolve().parent  # checked before anything is asked
    if output.is_dir() or not folder.is_dir() or not os.access(output if output.exists() else folder, os.W_OK):
        reject(f"--output {output} must be a file that can be written, in a folder that exists")
    account = _account(url, key)
    if account.livemode is not False:
        reject("the API key is one of production (livemode is true); calibrate writes only to a test environment")
    _confirm(account, output, phones, yes=yes)

    from followup_mockserver.judge.calibration.run import Run
    from followup_mockserver.judge.calibration.service import Service

    service = Service(url, key)
    run = Run(service, account, uuid.uuid4().hex[:8], phones)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a cancelled CI job cleans up, too
    try:
        findings = _ask(run)
    finally:
        is_clean = _clean_up(run)
        service.close()
    _write(output, run, findings)
    if not is_clean:
        fail("some objects could not be cleaned up; the list above names them", FAILURE)


def _account(url: str, key: str) -> "Account":
    from followup import ConfigurationError, FollowUp, FollowUpError  # imported late: a help page needs no client

    try:
        with FollowUp(api_key=key, base_url=url, deadline=_ACCOUNT_DEADLINE) as client:
            return client.account.retrieve()
    except ConfigurationError as error:
        reject(str(error).replace("base_url", "URL"))
    except FollowUpError as error:
        fail(f"cannot retrieve the account of the API key: {error}")


def _checked_phone(phone: str) -> str:
    import phonenumbers

    try:
        number = phonenumbers.parse(phone)
    except phonenumbers.NumberParseException:
        reject("--phone must be a phone number with its country code, such as +12025550143")
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)


def _confirm(account: "Account", output: Path, phones: list[str], *, yes: bool) -> None:
    if yes or not sys.stdin.isatty():
        return
    from followup_mockserver.judge.calibration.run import KINDS

    kinds = ", ".join(f"{kind.replace('_', ' ')}s" for kind in KINDS)
    whom = "the phone numbers that you passed" if phones else "phone numbers that are reserved for fiction"
    # On standard error, because standard output may be a pipe.
    warn(f"This writes to the test environment of {account.name!r}: {kinds}.")
    warn(f"The patients are invented, and have {whom}. The service may write to these numbers.")
    warn("Appointments are cancelled and webhook endpoints are deleted at the end; the others remain.")
    if output.exists():
        warn(f"{output} is replaced.")
    if not typer.confirm("Continue?", err=True):
        fail("nothing was written")


def _ask(run: "Run") -> "list[Finding]":
    from followup_mockserver.judge.calibration.calibrate import ask_all

    findings = []
    for each in ask_all(run):
        findings.append(each)
        write_line(f"{each.id}  {visible(each.text)}")
        sys.stdout.flush()
    return findings


def _clean_up(run: "Run") -> bool:
    """Clean up, and list what is left in the environment. Return whether all that can be cleaned up was."""
    from followup_mockserver.judge.calibration.calibrate import clean_up, left_behind

    is_clean = False
    try:
        is_clean = clean_up(run)
    finally:  # also if Ctrl-C ends the clean-up
        lines = [*left_behind(run.created.values())]
        if lines:
            write_line("\nLeft in the test environment, because the API cannot remove it:")
        for line in lines:
            write_line(visible(line))
        sys.stdout.flush()
    return is_clean


def _write(output: Path, run: "Run", findings: "list[Finding]") -> None:
    from followup_mockserver.judge.calibration.calibrate import settings_file

    text = settings_file(run.settings, findings)
    with file_errors(f"write {output}"):
        output.write_text(text, encoding="utf-8")
    asked = [each for each in findings if each.outcome != "not asked"]
    different = sum(each.outcome == "different" for each in asked)
    write_line(f"\n{len(asked)} of {len(findings)} open points asked; {different} differ from the mock. See {output}.")
