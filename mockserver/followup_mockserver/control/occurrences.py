"""Occurrences, which the chain of causes consists of: how records of the history become them, and their names."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import attrs

from followup import WebhookDelivery, WebhookEndpoint
from followup._for_mockserver import MAX_WEBHOOK_ATTEMPTS, FrozenValue, format_timestamp
from followup_mockserver.control.engine import forecast
from followup_mockserver.world.outcomes import Kind, Outcome, Part, before_start, joined, other
from followup_mockserver.world.state import history
from followup_mockserver.world.state.clock import Timer
from followup_mockserver.world.state.history import Receipt, Record
from followup_mockserver.world.state.journal import RecordedCall
from followup_mockserver.world.state.tenant import Tenant

REQUEST = "request"


@attrs.frozen(kw_only=True, eq=False, repr=False)
class HistoryEntry(FrozenValue):
    """Something that happened, or that did not happen for a reason. It has no personal data.

    Attributes:
        at: when it happened, by the mock's clock; of a job, when it is or was due.
        kind: ``request``, ``control``, ``event`` (inbound), the type of a domain event, the kind of a job, ``message``,
            ``webhook_delivery`` or ``attempt``.
        id: id of the request, job, message and so on; for a domain event the id of its object; for a delivery that was
            not made the id of the endpoint.
        cause: id of the entry that caused it, which precedes it; None for a request or a control call.
        outcome: what became of it, such as ``sent`` or ``not sent: the patient has opted out``.
    """

    at: datetime = attrs.field(repr=format_timestamp)
    kind: str
    id: str
    cause: str | None
    outcome: str


@attrs.frozen(kw_only=True, repr=False)
class TimelineLine:
    """A line of a timeline. It has no personal data.

    Attributes:
        at: when it happened, or is or was due.
        depth: the number of lines that it stands below, each of which caused the next one.
        title: what happened, such as ``appointments.create``.
        outcome: what became of it, such as ``200``; empty if the title says it.
        tone: ``succeeded``, ``failed``, ``pending``, ``muted`` for what did not happen, or empty.
        id: id of the object that it happened to, or of the request, job or delivery itself; None for one that the whole
            timeline is about.
        times: how many equal lines it stands for; then ``at`` is the time of the first.
        upcoming: whether it is due later than the time of the clock.
    """

    at: datetime = attrs.field(repr=format_timestamp)
    depth: int
    title: str
    outcome: str
    tone: str
    id: str | None
    times: int = 1
    upcoming: bool


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Occurrence:
    """A ``HistoryEntry`` with what the dashboard shows besides. It has no personal data.

    Attributes:
        at: as in ``HistoryEntry``, and so are ``kind``, ``id`` and ``cause``.
        outcome: what became of it.
        about: id of the object concerned.
        due: when a job is or was due; None for anything else.
        hours: of a reminder and its message, the hours before the start of the appointment.
        operation: of a request, the operation; None if that is unknown.
        ended_by: id of the control call that ran a job, or of the cause of its cancellation.
        receipts: what became of an outbound event: for each endpoint the delivery, or the reason why none was made. An
            endpoint of None means that the reason concerns no single one.
    """

    at: datetime
    kind: str
    id: str
    cause: str | None
    outcome: Outcome
    about: str | None = None
    due: datetime | None = None
    hours: float | None = None
    operation: str | None = None
    ended_by: str | None = None
    receipts: Sequence[Receipt] = ()

    @property
    def detail(self) -> str:
        """What distinguishes it from others of its kind, such as ``24 h before the start``; empty if nothing does."""
        return "" if self.hours is None else before_start(self.hours)

    @property
    def parts(self) -> list[Part]:
        """The sentence of the outcome."""
        return self.outcome.brief if self.kind in (REQUEST, history.ATTEMPT) else self.outcome.parts

    @property
    def entry(self) -> HistoryEntry:
        """The entry as the control API returns it."""
        text = joined(self.parts)
        if self.operation is not None:
            text = f"{self.operation}: {text}"
        elif self.kind == history.MESSAGE and self.hours is not None:
            text = f"{text} {self.detail}"
        nowhere = [each.reason.text for each in self.receipts if each.endpoint is None and each.reason is not None]
        outcome = "; ".join(filter(None, [text, *nowhere]))
        return HistoryEntry(at=self.at, kind=self.kind, id=self.id, cause=self.cause, outcome=outcome)


def is_paired(record: Record) -> bool:
    """Return whether a record may have a counterpart: the beginning or the end of a job or of an inbound event."""
    return record.kind == history.EVENT or record.id.startswith(history.JOB_PREFIX)


def is_end(record: Record) -> bool:
    """Return whether a record is the end of something that began in another record; then its cause is of the end."""
    return is_paired(record) and record.outcome is not None and (record.due is not None or record.kind == history.EVENT)


def of_records(tenant: Tenant, records: Sequence[Record]) -> Iterator[Occurrence]:
    """Return the occurrences that records report, in the order of their beginnings.

    Args:
        tenant: the state of the organization, which says what became of deliveries.
        records: the records, oldest first; of a job or an inbound event all that there are.
    """
    paired: dict[str, list[Record]] = {}
    for record in records:
        if is_paired(record):
            paired.setdefault(record.id, []).append(record)
    hours = {job: each[0].hours for job, each in paired.items()}
    for record in records:
        if is_paired(record):
            if record is _beginning(paired[record.id]):
                yield _merged(tenant, paired[record.id])
        elif record.kind == history.MESSAGE:
            yield _single(record, hours.get(record.cause or ""))
        else:
            yield _single(record, record.hours)
            yield from _deliveries(tenant, record)


def of_call(call: RecordedCall) -> Occurrence:
    """Return a call of the journal as an occurrence."""
    entry, outcome = call.entry, call.outcome
    replay_of = outcome.replay_of or "an earlier request" if entry.replayed else ""
    if entry.refused and entry.status == HTTPStatus.OK:
        ended = Outcome(Kind.PARTLY_REFUSED, f"{entry.refused} of {entry.events}", entry.status, replay_of=replay_of)
    else:
        kind = Kind.RESPONDED if entry.status else Kind.DROPPED
        ended = Outcome(kind, status=entry.status or None, replay_of=replay_of)
    return Occurrence(
        at=entry.at,
        kind=REQUEST,
        id=entry.request_id,
        cause=None,
        outcome=ended,
        about=outcome.about,
        operation=entry.operation or "no operation",
    )


def of_timer(tenant: Tenant, timer: Timer) -> Occurrence:
    """Return a pending job as an occurrence, without what planned it."""
    kind, about = timer.job.kind, timer.job.about
    outcome = _pending(tenant, kind, about, timer.at)
    job = f"{history.JOB_PREFIX}{timer.number}"
    return Occurrence(at=timer.at, kind=kind, id=job, cause=None, outcome=outcome, about=about, due=timer.at)


def _single(record: Record, hours: float | None) -> Occurrence:
    return Occurrence(
        at=record.at,
        kind=record.kind,
        id=record.id,
        cause=record.cause,
        outcome=record.outcome or other(""),
        about=record.about or record.id,
        hours=hours,
        receipts=tuple(record.receipts),
    )


def _beginning(parts: Sequence[Record]) -> Record:
    # An event that failed begins again when it is resent. Of what is old, only the end may be left in the history.
    return next((each for each in reversed(parts) if not is_end(each)), parts[0])


def _merged(tenant: Tenant, parts: Sequence[Record]) -> Occurrence:
    first = _beginning(parts)
    ended = next((each for each in reversed(parts) if is_end(each)), None)
    last = ended or first
    due = first.due or last.due
    # An event names its object when it ends.
    about = last.about or first.about
    return Occurrence(
        at=due or first.at,
        kind=first.kind,
        id=first.id,
        cause=None if is_end(first) else first.cause,
        outcome=last.outcome or _pending(tenant, first.kind, about, due),
        about=about,
        due=due,
        hours=first.hours,
        ended_by=None if ended is None else ended.cause,
    )


def _pending(tenant: Tenant, kind: str, about: str | None, due: datetime | None) -> Outcome:
    if due is None:
        return Outcome(Kind.IN_PROGRESS)
    obstacle = forecast(tenant, kind, about)
    return Outcome(Kind.DUE, at=due) if obstacle is None else Outcome(Kind.WILL_NOT_BE_SENT, obstacle.why, at=due)


def _deliveries(tenant: Tenant, record: Record) -> Iterator[Occurrence]:
    for receipt in record.receipts:
        if receipt.endpoint is None:
            continue
        delivery = tenant.webhook_deliveries.get(receipt.delivery or "")
        made = "deleted with its endpoint" if delivery is None else delivery.status
        yield Occurrence(
            at=record.at,
            kind=history.DELIVERY,
            id=receipt.delivery or receipt.endpoint,
            cause=record.cause,
            outcome=receipt.reason or other(made),
            about=record.id,
        )


# --- titles and sentences ---------------------------------------------------------------------------------------

JOB_TITLES = {
    "reminder": "reminder",
    "post_visit": "message after the visit",
    "intake": "question for missing data",
    "stage": "check of the patient's stage",
    "treatment_end": "end of the treatment",
    "delivery": "webhook attempt",
    "repeated_delivery": "repeated webhook attempt",
}
ATTEMPT_JOBS = ("delivery", "repeated_delivery")
MESSAGE_JOBS = ("reminder", "post_visit", "intake")
TEST_CONTROL = "test control"
RUNS: Mapping[Outcome | None, str] = {other("advance"): "clock advanced", other("step"): "next job run"}
"""Outcome of a control call that advances the clock to its title."""

WORDS = {Kind.DUE: "due", Kind.WILL_NOT_BE_SENT: "will not be sent"}
"""What became of a job, where its time stands elsewhere."""

STOPPED = "stopped"
TONES = {STOPPED: "muted"}
"""State of a delivery to its tone, if that has another name."""


def counted(count: int, noun: str) -> str:
    """Return a number of things, such as ``2 messages after the visit``."""
    plural = re.sub("y?(?= (?:after|for|of) |$)", lambda end: "ies" if end[0] else "s", noun, count=1)
    return f"{count} {noun if count == 1 else plural}"


def state_of(obj: Any) -> str:
    """Return the status of an object. An endpoint is ``failing`` after a failed attempt, until an attempt succeeds.

    A delivery that failed only because its endpoint was disabled is ``stopped``.
    """
    if isinstance(obj, WebhookDelivery) and obj.status == "failed" and obj.attempts < MAX_WEBHOOK_ATTEMPTS:
        return STOPPED
    if not isinstance(obj, WebhookEndpoint) or obj.status == "disabled" or obj.last_error is None:
        return str(obj.status)
    delivered = obj.last_delivered_at
    return "failing" if delivered is None or delivered < obj.last_error.at else "enabled"


def address(url: str) -> str:
    """Return host and path of a URL: what distinguishes the endpoints of an organization."""
    parts = urlsplit(url)
    return f"{parts.netloc}{parts.path}".rstrip("/")


def title_of(occurrence: Occurrence) -> tuple[str, str | None, Sequence[Part]]:
    """Return what happened, the id of the page that shows more, and the outcome unless the title says it."""
    kind, outcome = occurrence.kind, shown_outcome(occurrence)
    if kind == REQUEST:
        return (occurrence.operation, occurrence.id, outcome) if occurrence.operation else ("API call", None, outcome)
    if kind == history.CONTROL:
        return f"{TEST_CONTROL} {joined(outcome)}", occurrence.id, ()
    if kind == history.EVENT:
        return "inbound event", occurrence.id, outcome
    if kind == history.MESSAGE:
        return " ".join(filter(None, [joined(outcome).replace("_", " "), occurrence.detail])), occurrence.id, ()
    if kind in JOB_TITLES:
        return job_title(kind, occurrence.detail), occurrence.id, outcome
    if kind == history.ATTEMPT:
        return f"attempt {occurrence.id.rpartition('.')[2]}", occurrence.about, outcome
    title = kind.replace(".", " ").replace("_", " ")
    return title, None, () if title.endswith(f" {joined(outcome)}") else outcome


def title_of_cause(record: Record) -> str:
    """Return what a record of a test control or a job is about, such as ``test control update_patient``."""
    if record.kind == history.CONTROL and record.outcome is not None:
        return f"{TEST_CONTROL} {record.outcome.text}"
    return JOB_TITLES.get(record.kind, record.kind)


def shown_outcome(occurrence: Occurrence) -> Sequence[Part]:
    """Return the sentence of an outcome, without the time of a job that is due, which is that of its entry."""
    outcome = occurrence.outcome
    if outcome.kind is Kind.WILL_NOT_BE_SENT:
        return [f"will not be sent: {outcome.reason}"]
    return ["due"] if outcome.kind is Kind.DUE else occurrence.parts


def job_title(kind: str, detail: str = "") -> str:
    """Return what a job does, such as ``reminder 24 h before the start``."""
    return f"{JOB_TITLES[kind]} {detail}".rstrip()


def progress_of(delivery: WebhookDelivery) -> Sequence[Part]:
    """Return what became of a delivery, such as ``delivered after 4 attempts (204)``."""
    made, state, response = delivery.attempts, state_of(delivery), delivery.last_status_code or "no response"
    if state == "pending":
        if delivery.next_attempt_at is None:
            return [f"attempt {max(made, 1)} is in progress"]
        return [f"{response}; " if made else "", f"attempt {made + 1} is due ", delivery.next_attempt_at]
    if state == STOPPED:
        return [f"{state}: endpoint disabled"]
    number = f" after {made} attempts" if made > 1 else ""
    return [f"{'delivered' if state == 'succeeded' else state}{number} ({response})"]
