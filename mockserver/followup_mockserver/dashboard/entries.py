"""The entries that a timeline consists of."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import attrs

from followup_mockserver.control.occurrences import Occurrence
from followup_mockserver.state.outcomes import Kind, Outcome, Part

DUE = "due"
WILL_NOT_BE_SENT = "will not be sent"


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
        outcome: what became of it, in parts; None if the title says it.
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
    outcome: Sequence[Part] | None = None
    tone: str = ""
    is_planned: bool = False
    causes: Sequence[Cause] = ()
    text: str | None = None
    attempts: Sequence["Entry"] = ()
    children: Sequence["Entry"] = ()
    hidden: int = 0


def is_due(outcome: Outcome) -> bool:
    """Return whether a job has not run."""
    return outcome.kind in (Kind.DUE, Kind.WILL_NOT_BE_SENT)


def shown(occurrence: Occurrence) -> Sequence[Part]:
    """Return the sentence of an outcome, without the time of a job that is due, which is that of its entry."""
    outcome = occurrence.outcome
    if outcome.kind is Kind.WILL_NOT_BE_SENT:
        return [f"{WILL_NOT_BE_SENT}: {outcome.reason}"]
    return [DUE] if outcome.kind is Kind.DUE else occurrence.parts
