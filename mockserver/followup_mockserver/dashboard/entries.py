"""The entries that a timeline consists of."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import attrs

from followup_mockserver.schema.formats import parse_timestamp

DUE = "due"
"""Begins the outcome of a job that has not run."""

_TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)")
_STATUS = re.compile(r"(?:^|: )(\d{3})\b")
_REFUSED = "events refused"
"""In the outcome of a call: the service accepted a part of a batch only."""

_NOT_DONE = ("not sent", "not attempted", "not scheduled", "cancelled", "moved", "nothing to send")
_FAILED = (
    "failed",
    "invalid",
    "http status",
    "no response",
    "nothing is mounted",
    "the attempt was interrupted",
    "the receiver raised",
    "the startup of the receiver",
)
"""The beginnings of outcomes that failed, in lower case: an error has a capital, and its attempt has none."""


class Text(NamedTuple):
    """A text in which times are times, so that the page shows them in the selected time zone."""

    parts: Sequence[str | datetime]

    @classmethod
    def of(cls, text: str) -> "Text":
        """Return a text in which timestamps have become times; one that is no time remains as it is."""
        return cls([_parsed(part) if _TIMESTAMP.fullmatch(part) else part for part in _TIMESTAMP.split(text)])


def _parsed(part: str) -> str | datetime:
    try:
        return parse_timestamp(part)
    except ValueError:
        return part


class Cause(NamedTuple):
    """What caused something that does not stand below its cause.

    Attributes:
        relation: such as ``planned by``.
        title: what the cause is, such as ``appointments.create``.
        more: id of the page that shows more; None if there is none.
        at: when it happened.
    """

    relation: str
    title: str
    more: str | None
    at: datetime


@attrs.frozen(kw_only=True)
class Entry:
    """An entry of a timeline, or something that an entry caused at once.

    Attributes:
        key: identifies the entry on the page.
        at: when it happened, or is or was due.
        title: what happened, such as ``appointment created``.
        more: id of the page that shows more, such as a call's; None if there is none.
        subject: id of the object that it happened to; None if that is the object of the page.
        start: for a reminder the start of the appointment that it was planned for; None for anything else.
        outcome: what became of it; None if the title says it.
        tone: ``succeeded``, ``failed``, ``pending``, ``muted`` for what did not happen, or empty.
        is_planned: whether it is only announced here, and stands at its own time too.
        causes: its causes, if the entry does not stand below one.
        text: text of the message that was sent; None if there is none.
        attempts: the attempts of a delivery.
        children: what it caused at once.
        hidden: the number of further effects, which are not shown.
    """

    key: str
    at: datetime
    title: str
    more: str | None = None
    subject: str | None = None
    start: datetime | None = None
    outcome: Text | None = None
    tone: str = ""
    is_planned: bool = False
    causes: Sequence[Cause] = ()
    text: str | None = None
    attempts: Sequence["Entry"] = ()
    children: Sequence["Entry"] = ()
    hidden: int = 0


def forecast_in(outcome: str) -> str:
    """Return why a job that is due will not send its message, with a colon before the reason; empty if it will."""
    return outcome.partition("; ")[2] if outcome.startswith(DUE) else ""


def tone_of(outcome: str) -> str:
    """Return the tone in which the outcome of a job, an attempt or a call is shown."""
    if outcome.startswith(_NOT_DONE):
        return "muted"
    if outcome.startswith(DUE):
        return "muted" if forecast_in(outcome) else "pending"
    if outcome.lower().startswith(_FAILED):
        return "failed"
    if _REFUSED in outcome:
        return "pending"
    status = _STATUS.search(outcome)
    if status is not None:
        return "succeeded" if status[1] < "300" else "failed"
    return "succeeded" if outcome in ("sent", "processed") else ""
