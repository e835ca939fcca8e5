"""The chain of causes of an id: what happened, what caused it, and what did not happen and why.

The chain is in time order: every cause precedes what it has caused.
"""

import json
from collections.abc import Iterable, Iterator, Sequence, Set
from operator import attrgetter

import attrs

from followup._for_mockserver import redacted
from followup_mockserver.control import occurrences
from followup_mockserver.control.occurrences import Occurrence
from followup_mockserver.world.outcomes import Kind, Outcome
from followup_mockserver.world.state import history
from followup_mockserver.world.state.history import Receipt, Record
from followup_mockserver.world.state.journal import REQUEST_ID_PREFIX, RecordedCall
from followup_mockserver.world.state.tenant import Tenant

_CAUSES = (REQUEST_ID_PREFIX, history.EVENT_PREFIX, history.JOB_PREFIX, history.CONTROL_PREFIX)
"""Prefixes of the ids of causes."""


def explain(tenant: Tenant, id: str) -> list[Occurrence] | None:
    """Return the chain of causes of an id, in time order. The caller holds the lock.

    Each ``cause`` is the ``id`` of an entry that precedes it.

    Args:
        tenant: the state of the organization.
        id: id of an object of the API, a request, an inbound event, a job, a control call, a message, a delivery or an
            attempt.

    Returns:
        The occurrences; None if the history has none.
    """
    found = occurrences_of(tenant, id)
    for position, each in enumerate(found, start=1):
        if each.id == id and each.kind == occurrences.REQUEST:
            return [*found[:position], *_invalid_events(tenant, each), *found[position:]]
    return found or None


def occurrences_of(tenant: Tenant, id: str) -> list[Occurrence]:
    """Return the chain of causes of an id as occurrences; see ``explain``."""
    objects = _objects(tenant, id)
    records = _Search(id, objects, [*tenant.history.records]).found()
    found = [*occurrences.of_records(tenant, records)]
    return _in_order(found, _requests(tenant, objects, {id, *(each.cause for each in records)}, found))


def occurrences_among(tenant: Tenant, records: Iterable[Record], requests: Sequence[Occurrence]) -> list[Occurrence]:
    """Return records and requests as occurrences in time order, each after its cause if that is among them.

    Args:
        tenant: the state of the organization.
        records: some records of the history; of a job or an inbound event, one is enough.
        requests: some requests, in the order of the calls.
    """
    chosen = {each.id if occurrences.is_paired(each) else id(each) for each in records}
    whole = [each for each in tenant.history.records if chosen & {id(each), each.id}]
    return _in_order([*occurrences.of_records(tenant, whole)], requests)


def _requests(
    tenant: Tenant, objects: Set[str], causes: Iterable[str | None], found: Sequence[Occurrence]
) -> list[Occurrence]:
    """Return the requests of a chain, in the order of the calls: its causes, and calls that changed its objects."""
    wanted = {each for each in causes if each is not None and each.startswith(REQUEST_ID_PREFIX)}
    calls: dict[str, RecordedCall] = {}
    for call in tenant.journal.recorded_newest_first():
        entry, outcome = call.entry, call.outcome
        if entry.request_id in wanted or (outcome.about in objects and entry.method != "GET"):
            calls[entry.request_id] = call
            wanted |= {entry.request_id} if outcome.replay_of is None else {entry.request_id, outcome.replay_of}
    effects: dict[str, list[Occurrence]] = {}
    for each in found:
        if each.cause in wanted:
            effects.setdefault(each.cause, []).append(each)
    # The journal is shorter than the history, and no part of a snapshot.
    lost = [_lost_request(each, effects[each]) for each in wanted if each not in calls and each in effects]
    kept = [occurrences.of_call(call) for call in reversed(calls.values())]
    return [*lost, *kept]


def _in_order(found: Sequence[Occurrence], requests: Sequence[Occurrence]) -> list[Occurrence]:
    """Return all occurrences in time order, and those of the same time in the order in which they happened.

    Among what happened at the same time, a request and those before it precede the first effect of that request.
    """
    numbers = {each.id: number for number, each in enumerate(requests)}
    ordered: list[Occurrence] = []
    placed = 0
    for each in sorted(found, key=attrgetter("at")):
        last = numbers.get(each.cause or "", -1)
        # A clock that stands gives many calls one instant, so their numbers decide within it.
        while placed < len(requests) and (requests[placed].at, placed) <= (each.at, last):
            ordered.append(requests[placed])
            placed += 1
        ordered.append(each)
    return _causes_first([*ordered, *requests[placed:]])


def _causes_first(ordered: Sequence[Occurrence]) -> list[Occurrence]:
    """Return occurrences with each cause before its effects.

    A cause that is not among them is unknown, and so is one of those that cause each other, as in a snapshot that
    somebody has edited.
    """
    causing = (each for each in ordered if each.kind == occurrences.REQUEST or _can_cause(each))
    causes: dict[str | None, Occurrence] = {each.id: each for each in causing}
    placed: set[int] = set()
    found = []
    for occurrence in ordered:
        chain: dict[int, Occurrence] = {}
        each: Occurrence | None = occurrence
        while each is not None and id(each) not in placed and id(each) not in chain:
            chain[id(each)] = each
            each = causes.get(each.cause)
        for each in reversed(chain.values()):
            cause = causes.get(each.cause)
            is_known = cause is not None and id(cause) in placed
            found.append(each if is_known else attrs.evolve(each, cause=None))
            placed.add(id(each))
    return found


def _invalid_events(tenant: Tenant, request: Occurrence) -> Iterator[Occurrence]:
    """Iterate over the invalid events of a batch, which are not stored, under their ids as they were sent.

    Args:
        tenant: the state of the organization. It keeps the response of a call for some time.
        request: the call that sent the batch.
    """
    entry = tenant.journal.find(request.id)
    details = tenant.journal.details(entry) if entry is not None and entry.refused else None
    if details is None or not details.response_is_whole:
        return
    for position, each in enumerate(json.loads(details.response_body).get("results", ())):
        if each["status"] == "invalid":
            outcome = Outcome(Kind.INVALID, redacted(each["error"]))
            name = each["id"] or f"events[{position}]"
            yield Occurrence(at=request.at, kind=history.EVENT, id=name, cause=request.id, outcome=outcome)


def _lost_request(request_id: str, effects: Iterable[Occurrence]) -> Occurrence:
    """Return the occurrence of a request that the journal does not hold, at the time of its first effect."""
    at = min(each.at for each in effects)
    return Occurrence(at=at, kind=occurrences.REQUEST, id=request_id, cause=None, outcome=Outcome(Kind.NOT_IN_JOURNAL))


def _can_cause(occurrence: Occurrence) -> bool:
    return occurrence.kind in (history.EVENT, history.CONTROL) or occurrence.id.startswith(history.JOB_PREFIX)


# --- the records of a chain ----------------------------------------------------------------------------------


def _objects(tenant: Tenant, id: str) -> frozenset[str]:
    """Return an id and, if it is a patient's, the ids of the patient's objects."""
    if id not in tenant.patients:
        return frozenset((id,))
    collections = (tenant.appointments, tenant.visits, tenant.treatments, tenant.intake_requests)
    return frozenset((id, *(each.id for every in collections for each in every.find_all("patient", id))))


class _Search:
    """The search for the records of one chain.

    Causes precede their effects in the history, so one pass forwards finds all effects, and one backwards all causes.
    Only the effects of jobs that a control call has run need a second pass, because that is known when a job ends.
    """

    def __init__(self, id: str, objects: frozenset[str], records: Sequence[Record]) -> None:
        self._id = id
        self._records = records
        self._objects = set(objects)
        self._causes = {id} if id.startswith(_CAUSES) else set[str]()
        self._chosen: dict[int, Record] = {}

    def found(self) -> list[Record]:
        """Return the records of what the id is about or causes, and of all causes of that, oldest first."""
        while self._follow_effects():
            pass
        self._follow_causes()
        return [self._chosen[position] for position in sorted(self._chosen)]

    def _follow_effects(self) -> bool:
        """Choose the records about the objects, and those that the id has caused. Return whether to look again."""
        known, end_of_run = len(self._causes), self._id.startswith(history.CONTROL_PREFIX)
        patient = self._id if self._id.startswith("pat_") else ""  # that of no record
        has_receipts = self._id.startswith(("we_", "whd_"))
        objects, causes = self._objects, self._causes
        for position, record in enumerate(self._records):  # a full history has 50,000 records
            is_subject = record.id in objects or record.patient == patient
            is_effect = record.cause in causes
            if is_subject or is_effect:
                self._choose(position, record, record.receipts)
                if is_effect and occurrences.is_paired(record):
                    causes.add(record.id)
            elif record.about in objects:
                self._choose(position, record, ())
            elif has_receipts and record.receipts and (receipts := self._receipts(record)):
                self._choose(position, record, receipts)
        return end_of_run and len(causes) > known

    def _follow_causes(self) -> None:
        """Choose the causes of the chosen records, and what these are about if the id itself has caused nothing."""
        chosen = self._chosen.values()
        needed = {each.cause for each in chosen if not occurrences.is_end(each)} | {each.id for each in chosen}
        for position in range(len(self._records) - 1, -1, -1):
            record = self._records[position]
            if record.id in needed and (occurrences.is_paired(record) or record.kind == history.CONTROL):
                self._chosen.setdefault(position, record)
                if not occurrences.is_end(record):
                    needed.add(record.cause)
        self._choose_subjects(needed)
        known = {each.id for each in self._chosen.values() if occurrences.is_paired(each)}
        for position, record in enumerate(self._records):
            if record.id in known and occurrences.is_paired(record):
                self._chosen.setdefault(position, record)

    def _choose(self, position: int, record: Record, receipts: Sequence[Receipt]) -> None:
        kept = len(receipts) == len(record.receipts)
        self._chosen[position] = record if kept else attrs.evolve(record, receipts=receipts)
        self._objects.update(each.delivery for each in receipts if each.delivery is not None)

    def _receipts(self, record: Record) -> Sequence[Receipt]:
        return [each for each in record.receipts if self._id in (each.endpoint, each.delivery)]

    def _choose_subjects(self, needed: set[str | None]) -> None:
        """Choose the events that led to a message, a job or an attempt: those of its object, from the same causes."""
        subjects = {record.about for record in self._chosen.values() if record.id == self._id and record.about}
        if self._id.startswith((REQUEST_ID_PREFIX, history.CONTROL_PREFIX)) or not subjects:
            return
        for position, record in enumerate(self._records):
            if position in self._chosen or record.cause not in needed or occurrences.is_paired(record):
                continue
            receipts = [each for each in record.receipts if each.delivery in subjects]
            if receipts or (record.id in subjects and record.kind != history.CONTROL):
                self._chosen[position] = attrs.evolve(record, receipts=receipts)
