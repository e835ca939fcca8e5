"""What a check finds, and how it is printed: as lines, or with ``--json`` as an object."""

import sys
from collections.abc import Sequence
from typing import Literal

import attrs

from followup._redaction import visible
from followup.cli.lines import json_line, write_line

Check = Literal[
    "environment",
    "DNS",
    "TCP",
    "TLS",
    "service",
    "clock",
    "key",
    "mode",
    "scopes",
    "lines",
    "version",
    "contract",
    "endpoints",
]
"""The checks, in the order in which they are made."""

Outcome = Literal["OK", "WARN", "FAIL"]

_WIDTH_OF_NAME = len("environment")


@attrs.frozen
class Finding:
    """The result of a check.

    Attributes:
        detail: what the check found, without a final full stop.
        advice: what to do about it; empty if there is nothing to do.
        unreachable: whether no service can be reached because of it.
    """

    check: Check
    outcome: Outcome
    detail: str
    advice: str = ""
    unreachable: bool = False


@attrs.frozen
class Unchecked:
    """Checks that were not made, and the reason."""

    checks: tuple[Check, ...]
    reason: str


def ok(check: Check, detail: str) -> Finding:
    """Return a finding that needs no action."""
    return Finding(check, "OK", detail)


def warn(check: Check, detail: str, advice: str) -> Finding:
    """Return a finding that prevents some operations."""
    return Finding(check, "WARN", detail, advice)


def fail(check: Check, detail: str, advice: str, *, unreachable: bool = False) -> Finding:
    """Return a finding that must be fixed."""
    return Finding(check, "FAIL", detail, advice, unreachable)


def print_finding(finding: Finding) -> None:
    """Print a finding: on a terminal in lines that fit, with the advice below, else in one line."""
    head = f"{finding.outcome:4}  {finding.check:{_WIDTH_OF_NAME}}  "
    if sys.stdout.isatty():
        _print_wrapped(head + finding.detail, indentation=len(head))
        if finding.advice:
            _print_wrapped(" " * len(head) + finding.advice, indentation=len(head))
    else:
        advice = f". {finding.advice}" if finding.advice else ""
        write_line(visible(head + finding.detail + advice))


def print_unchecked(unchecked: Unchecked) -> None:
    """Print which checks were not made."""
    text = f"Not checked: {', '.join(unchecked.checks)} ({unchecked.reason})."
    if sys.stdout.isatty():
        _print_wrapped(text, indentation=len("Not checked: "))
    else:
        write_line(visible(text))


def _print_wrapped(text: str, *, indentation: int) -> None:
    import shutil
    import textwrap

    indent = " " * indentation
    width = shutil.get_terminal_size().columns
    for line in textwrap.wrap(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False):
        write_line(visible(line))


def print_report(findings: Sequence[Finding], unchecked: Sequence[Unchecked]) -> None:
    """Print everything that was found as a JSON object."""
    count = [each.outcome for each in findings].count
    checks = [
        {"check": each.check, "outcome": each.outcome, "detail": each.detail, "advice": each.advice or None}
        for each in findings
    ]
    report = {
        "checks": checks,
        "notChecked": [{"check": check, "reason": each.reason} for each in unchecked for check in each.checks],
        "ok": count("OK"),
        "warnings": count("WARN"),
        "failures": count("FAIL"),
        "reachable": not any(each.unreachable for each in findings),
    }
    write_line(json_line(report))
