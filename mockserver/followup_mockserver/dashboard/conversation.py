"""The messages to a patient: sent, due, and those that were not sent, with the reason."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from operator import itemgetter

import attrs

from followup_mockserver.control.occurrences import Occurrence
from followup_mockserver.dashboard.entries import Cause, is_due, shown
from followup_mockserver.dashboard.timeline import job_title, named_cause, planned_start, title_of
from followup_mockserver.state.history import MESSAGE
from followup_mockserver.state.outcomes import Part
from followup_mockserver.state.records import Message
from followup_mockserver.state.tenant import Tenant

MAX_LINES = 200
"""A conversation shows at most this many lines, the latest, until the user asks for all."""

_KINDS = ("reminder", "post_visit", "intake")


@attrs.frozen(kw_only=True)
class Line:
    """A line of a conversation: a message, or a note such as ``appointment rescheduled``.

    Attributes:
        key: identifies the line on the page.
        at: when the message was sent, is due, or would have been sent.
        title: what it is, such as ``reminder 24 h before the start``.
        about: id of the object that it is about.
        more: id of the job or message whose page shows more; None for a note.
        text: text of the message; None if it has not been sent, or for a note.
        outcome: what became of it; None if it was sent.
        tone: ``succeeded`` if it was sent, ``pending``, ``muted`` if it was not or will not be sent, or ``note``.
        is_due: whether it is due later, also if it will not be sent.
        start: the start of the appointment for which a reminder was planned; None for anything else.
        planned: what planned it; None if that is unknown.
    """

    key: str
    at: datetime
    title: str
    about: str
    more: str | None = None
    text: str | None = None
    outcome: Sequence[Part] | None = None
    tone: str = "note"
    is_due: bool = False
    start: datetime | None = None
    planned: Cause | None = None


@attrs.frozen(kw_only=True)
class Conversation:
    """Messages to a patient in the order of time.

    Attributes:
        lines: the lines.
        hidden: the number of earlier lines, which are not shown.
    """

    lines: Sequence[Line]
    hidden: int


def conversation_of(
    tenant: Tenant, patient: str, occurrences: Sequence[Occurrence], query: Mapping[str, str]
) -> Conversation:
    """Return the conversation with a patient.

    Args:
        tenant: the state of the organization.
        patient: id of the patient.
        occurrences: the chain of causes of the patient.
        query: the query of the page; ``timeline=all`` asks for all lines.
    """
    known = {each.id for each in occurrences if each.kind == MESSAGE}
    lines = _messages_of(tenant, occurrences)
    lines += [(each.at, partial(_note, each)) for each in occurrences if each.kind.startswith("appointment.")]
    lines += [
        (each.sent_at, partial(_without_history, each))
        for each in tenant.messages
        if each.patient == patient and each.id not in known
    ]
    lines.sort(key=itemgetter(0))
    return _latest(lines, query)


def reminders_of(tenant: Tenant, occurrences: Sequence[Occurrence], query: Mapping[str, str]) -> Conversation:
    """Return the messages of a chain of causes: those sent, those due, and those that were not sent."""
    return _latest(_messages_of(tenant, occurrences), query)


def _latest(lines: Sequence[tuple[datetime, Callable[[], Line]]], query: Mapping[str, str]) -> Conversation:
    hidden = 0 if query.get("timeline") == "all" else max(len(lines) - MAX_LINES, 0)
    return Conversation(lines=[make() for _, make in lines[hidden:]], hidden=hidden)


def _messages_of(tenant: Tenant, occurrences: Sequence[Occurrence]) -> list[tuple[datetime, Callable[[], Line]]]:
    """Return the time of each message, and a function that makes its line, of which there may be thousands."""
    sent = {each.cause: each for each in occurrences if each.kind == MESSAGE}
    texts = {each.id: each.text for each in tenant.messages}
    causes = {each.id: each for each in occurrences}

    def line_of(job: Occurrence, message: Occurrence | None) -> Line:
        cause = causes.get(job.cause or "")
        return Line(
            key=job.id,
            at=job.at if message is None else message.at,
            title=job_title(job.kind, job.detail),
            about=job.about or job.id,
            more=job.id,
            text=None if message is None else texts.get(message.id),
            outcome=None if message is not None else shown(job),
            is_due=is_due(job.outcome),
            tone=job.outcome.tone,
            start=planned_start(job),
            planned=None if cause is None else named_cause("planned by", cause),
        )

    jobs = [(job, sent.get(job.id)) for job in occurrences if job.kind in _KINDS]
    return [((message or job).at, partial(line_of, job, message)) for job, message in jobs]


def _note(event: Occurrence) -> Line:
    title, _, outcome = title_of(event)
    return Line(
        key=f"{event.kind} {event.id} {event.at}",
        at=event.at,
        title=title,
        about=event.about or event.id,
        outcome=outcome or None,
    )


def _without_history(message: Message) -> Line:
    """Return the line of a message whose history has been dropped."""
    return Line(
        key=message.id,
        at=message.sent_at,
        title=message.kind.replace("_", " "),
        about=message.about,
        text=message.text,
        tone="succeeded",
    )
