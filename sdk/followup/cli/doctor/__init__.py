"""``followup doctor``: the command, and what its checks find.

The checks are imported when it runs, because a help page needs no client.
"""

from collections.abc import Sequence
from typing import Annotated, Literal

import attrs
import typer

from followup.cli.application import Application
from followup.cli.output import FAILURE, json_line, reject, say_wrapped, write_line

Outcome = Literal["OK", "WARN", "FAIL"]


@attrs.frozen
class Finding:
    """The result of a check.

    Attributes:
        detail: what the check found, without a final full stop.
        advice: what to do about it; None if there is nothing to do.
        ends: why no later check can be made; empty if they can.
        unreachable: whether no service can be reached because of it.
    """

    check: str
    outcome: Outcome
    detail: str
    advice: str | None = None
    ends: str = ""
    unreachable: bool = False


@attrs.frozen
class Unchecked:
    """Checks that were not made, and the reason."""

    checks: Sequence[str]
    reason: str


def ok(check: str, detail: str) -> Finding:
    """Return a finding that needs no action."""
    return Finding(check, "OK", detail)


def fail(check: str, detail: str, advice: str, *, ends: str = "", unreachable: bool = False) -> Finding:
    """Return a finding that must be fixed."""
    return Finding(check, "FAIL", detail, advice, ends, unreachable)


commands: Application = Application()


@commands.command(
    epilog="Exit status: 0 without a FAIL, 1 with one, 2 if no response arrived at all, 130 if it was interrupted with "
    "Ctrl-C."
)
def doctor(
    timeout: Annotated[float, typer.Option(help="Seconds for each look-up, connection, handshake and request.")] = 10.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as a JSON object.")] = False,
) -> None:
    """Check everything between this computer and the service; say what to do about each problem.

    Checks the environment variables, DNS, TCP, TLS, the clock, the API key, its mode, scopes and service lines, the
    version, the contract and the webhook endpoints. It only reads, and never prints a key.

    Each line begins with OK, WARN (a scope or service line is missing) or FAIL.
    """
    from followup.cli.doctor.service import examine

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
            sentences = filter(None, (found.detail, found.advice))
            say_wrapped(f"{found.outcome:4}  {found.check:11}  ", *sentences, between=". ")
    _conclude(findings, unchecked, as_json=as_json)


def _conclude(findings: Sequence[Finding], unchecked: Sequence[Unchecked], *, as_json: bool) -> None:
    """Print the checks that were not made, or everything as a JSON object, and exit with the status."""
    count = [each.outcome for each in findings].count
    reachable = not any(each.unreachable for each in findings)
    if as_json:
        fields = attrs.filters.include("check", "outcome", "detail", "advice")
        report = {
            "checks": [attrs.asdict(each, filter=fields) for each in findings],
            "notChecked": [{"check": check, "reason": each.reason} for each in unchecked for check in each.checks],
            "ok": count("OK"),
            "warnings": count("WARN"),
            "failures": count("FAIL"),
            "reachable": reachable,
        }
        write_line(json_line(report))
    else:
        for each in unchecked:
            say_wrapped("Not checked: ", f"{', '.join(each.checks)} ({each.reason}).")
    raise typer.Exit(FAILURE * bool(count("FAIL")) if reachable else 2)
