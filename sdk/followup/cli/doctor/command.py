"""``followup doctor``."""

import sys
from typing import Annotated, Any

import typer

from followup._redaction import visible
from followup.cli.application import Application
from followup.cli.doctor.findings import Finding, Unchecked
from followup.cli.exits import FAILURE, reject
from followup.cli.lines import json_line, write_line

UNREACHABLE = 2
"""The exit status if no service can be reached."""

application = Application()

_WIDTH_OF_NAME = len("environment")


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
    from followup.cli.doctor.examination import examine  # imported late, because a help page needs no client

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
            _print(found)
    if as_json:
        write_line(json_line(_report(findings, unchecked)))
    else:
        for each in unchecked:
            _print_unchecked(each)
    raise typer.Exit(_status(findings))


def _status(findings: list[Finding]) -> int:
    if any(each.unreachable for each in findings):
        return UNREACHABLE
    return FAILURE if any(each.outcome == "FAIL" for each in findings) else 0


def _print(finding: Finding) -> None:
    """Print a finding: on a terminal in lines that fit, with the advice below, else in one line."""
    head = f"{finding.outcome:4}  {finding.check:{_WIDTH_OF_NAME}}  "
    advice = f". {finding.advice}" if finding.advice else ""
    if not sys.stdout.isatty():
        _say(head + finding.detail + advice)
        return
    _print_wrapped(head + finding.detail, indentation=len(head))
    if finding.advice:
        _print_wrapped(" " * len(head) + finding.advice, indentation=len(head))


def _print_unchecked(unchecked: Unchecked) -> None:
    text = f"Not checked: {', '.join(unchecked.checks)} ({unchecked.reason})."
    if sys.stdout.isatty():
        _print_wrapped(text, indentation=len("Not checked: "))
    else:
        _say(text)


def _say(text: str) -> None:
    write_line(visible(text))


def _print_wrapped(text: str, *, indentation: int) -> None:
    import shutil
    import textwrap

    indent = " " * indentation
    width = shutil.get_terminal_size().columns
    for line in textwrap.wrap(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False):
        _say(line)


def _report(findings: list[Finding], unchecked: list[Unchecked]) -> dict[str, Any]:
    count = [each.outcome for each in findings].count
    return {
        "checks": [
            {
                "check": each.check,
                "outcome": each.outcome,
                "detail": each.detail,
                "advice": each.advice or None,
            }
            for each in findings
        ],
        "notChecked": [{"check": check, "reason": each.reason} for each in unchecked for check in each.checks],
        "ok": count("OK"),
        "warnings": count("WARN"),
        "failures": count("FAIL"),
        "reachable": not any(each.unreachable for each in findings),
    }
