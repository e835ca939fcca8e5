"""``followup doctor``: the command. The checks are imported when it runs, because a help page needs no client."""

from typing import Annotated

import typer

from followup.cli.application import Application
from followup.cli.doctor.findings import Finding, Unchecked, print_finding, print_report, print_unchecked
from followup.cli.exits import FAILURE, reject

UNREACHABLE = 2
"""The exit status if no service can be reached."""

application = Application()


@application.callback()
def group() -> None:
    """Hold the command."""


@application.command(
    epilog="Exit status: 0 without a FAIL, 1 with one, 2 if no response arrived at all, 130 if it was interrupted with "
    "Ctrl-C."
)
def doctor(
    timeout: Annotated[float, typer.Option(help="Seconds for each look-up, connection, handshake and request.")] = 10.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as a JSON object.")] = False,
) -> None:
    """Check everything between this computer and the service, and say what to do about each problem.

    Checks the environment variables, DNS, TCP, TLS, the clock, the API key, its mode, scopes and service lines, the
    version, the contract and the webhook endpoints. It only reads, and never prints a key.

    Each line begins with OK, WARN (a scope or service line is missing) or FAIL.
    """
    from followup.cli.doctor.examination import examine

    if not 0 < timeout < float("inf"):
        reject("--timeout must be a positive number of seconds")
    findings: list[Finding] = []
    unchecked: list[Unchecked] = []
    for found in examine(timeout):
        if isinstance(found, Unchecked):
            unchecked.append(found)
            continue
        findings.append(found)
        if not as_json:
            print_finding(found)
    if as_json:
        print_report(findings, unchecked)
    else:
        for each in unchecked:
            print_unchecked(each)
    raise typer.Exit(_status(findings))


def _status(findings: list[Finding]) -> int:
    if any(each.unreachable for each in findings):
        return UNREACHABLE
    return FAILURE if any(each.outcome == "FAIL" for each in findings) else 0
