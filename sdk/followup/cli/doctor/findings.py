"""What a check finds."""

from typing import Literal

import attrs

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
