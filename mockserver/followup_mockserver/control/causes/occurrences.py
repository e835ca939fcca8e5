"""Occurrences, which the chain of causes consists of, and how they are made from the records of the history."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from http import HTTPStatus

import attrs

from followup._for_mockserver import format_timestamp
from followup_mockserver.rules import local_jobs
from followup_mockserver.state.history import DELIVERY, EVENT, JOB_PREFIX, MESSAGE, Receipt, Record
from followup_mockserver.state.journal import RecordedCall
from followup_mockserver.state.tenant import Tenant

REQUEST = "request"

NOT_IN_JOURNAL = "no longer in the journal"
"""The outcome of a request that the journal does not hold: it was dropped, or made before a snapshot was loaded."""


@attrs.frozen(kw_only=True)
class HistoryEntry:
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


@attrs.frozen(kw_only=True)
class Occurrence:
    """A ``HistoryEntry`` with what the dashboard shows besides. It has no personal data.

    Attributes:
        at: as in ``HistoryEntry``, and so are ``kind``, ``id``, ``cause`` and ``outcome``.
        about: id of the object concerned.
        patient: id of the patient concerned; None if there is none, or it is unknown.
        due: when a job is or was due; None for anything else.
        detail: what distinguishes it from others of its kind, such as ``24 h before the start`` for a reminder.
        ended_by: id of the control call that ran a job, or of the cause of its cancellation.
        receipts: what became of an outbound event: for each endpoint the delivery, or the reason why none was made. An
            endpoint of None means that the reason concerns no single one.
    """

    at: datetime
    kind: str
    id: str
    cause: str | None
    outcome: str
    about: str | None = None
    patient: str | None = None
    due: datetime | None = None
    detail: str | None = None
    ended_by: str | None = None
    receipts: Sequence[Receipt] = ()

    @property
    def entry(self) -> HistoryEntry:
        """The entry as the control API returns it."""
        return HistoryEntry(at=self.at, kind=self.kind, id=self.id, cause=self.cause, outcome=self.outcome)


def is_paired(record: Record) -> bool:
    """Return whether a record may have a counterpart: the beginning or the end of a job or of an inbound event."""
    return record.kind == EVENT or record.id.startswith(JOB_PREFIX)


def is_end(record: Record) -> bool:
    """Return whether a record is the end of something that began in another record; then its cause is of the end."""
    return is_paired(record) and record.outcome is not None and (record.due is not None or record.kind == EVENT)


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
    details = {job: each[0].detail for job, each in paired.items()}
    for record in records:
        if is_paired(record):
            if record is _beginning(paired[record.id]):
                yield _merged(tenant, paired[record.id])
        elif record.kind == MESSAGE:
            detail = details.get(record.cause or "")
            yield _single(record, f"{record.outcome} {detail}" if detail else record.outcome, detail)
        else:
            nowhere = [each.reason for each in record.receipts if each.endpoint is None]
            yield _single(record, "; ".join(filter(None, [record.outcome, *nowhere])), record.detail)
            yield from _deliveries(tenant, record)


def of_call(call: RecordedCall) -> Occurrence:
    """Return a call of the journal as an occurrence."""
    entry, outcome = call.entry, call.outcome
    status = str(entry.status) if entry.status else "no response"
    original = outcome.replay_of or "an earlier request"
    replay = f", replayed the response of {original}" if entry.replayed else ""
    refused = (
        f", {entry.refused} of {entry.events} events refused" if entry.refused and entry.status == HTTPStatus.OK else ""
    )
    return Occurrence(
        at=entry.at,
        kind=REQUEST,
        id=entry.request_id,
        cause=None,
        outcome=f"{entry.operation}: {status}{refused}{replay}",
        about=outcome.about,
    )


def lost_request(request_id: str, effects: Iterable[Occurrence]) -> Occurrence:
    """Return the occurrence of a request that the journal does not hold, at the time of its first effect."""
    at = min(each.at for each in effects)
    return Occurrence(at=at, kind=REQUEST, id=request_id, cause=None, outcome=NOT_IN_JOURNAL)


def _single(record: Record, outcome: str | None, detail: str | None) -> Occurrence:
    return Occurrence(
        at=record.at,
        kind=record.kind,
        id=record.id,
        cause=record.cause,
        outcome=outcome or "",
        about=record.about or record.id,
        patient=record.patient,
        detail=detail,
        receipts=tuple(record.receipts),
    )


def _beginning(parts: Sequence[Record]) -> Record:
    """Return the last beginning, because an event that failed begins again, or the first end if none is left."""
    return next((each for each in reversed(parts) if not is_end(each)), parts[0])


def _merged(tenant: Tenant, parts: Sequence[Record]) -> Occurrence:
    """Return the occurrence whose beginning and end these records are."""
    first = _beginning(parts)
    ended = next((each for each in reversed(parts) if is_end(each)), None)
    last = ended or first
    due = first.due or last.due
    about = last.about or first.about
    return Occurrence(
        at=due or first.at,
        kind=first.kind,
        id=first.id,
        cause=None if is_end(first) else first.cause,
        outcome=last.outcome or _pending(tenant, first.kind, about, due),
        about=about,
        patient=_patient_of(tenant, about),
        due=due,
        detail=first.detail,
        ended_by=None if ended is None else ended.cause,
    )


def _pending(tenant: Tenant, kind: str, about: str | None, due: datetime | None) -> str:
    if due is None:
        return "in progress"
    reason = local_jobs.forecast(tenant, kind, about)
    return f"due {format_timestamp(due)}" + (f"; {reason}" if reason else "")


def _deliveries(tenant: Tenant, record: Record) -> Iterator[Occurrence]:
    for receipt in record.receipts:
        if receipt.endpoint is None:
            continue
        delivery = tenant.webhook_deliveries.get(receipt.delivery or "")
        made = "deleted with its endpoint" if delivery is None else delivery.status
        yield Occurrence(
            at=record.at,
            kind=DELIVERY,
            id=receipt.delivery or receipt.endpoint,
            cause=record.cause,
            outcome=receipt.reason or made,
            about=record.id,
            patient=record.patient,
            detail=record.kind,
        )


def _patient_of(tenant: Tenant, about: str | None) -> str | None:
    for collection in (tenant.appointments, tenant.visits, tenant.treatments, tenant.intake_requests):
        found = collection.get(about or "")
        if found is not None:
            patient: str | None = found.patient
            return patient
    return None
