"""Selects the records that belong to the chain of causes of one object, call, job, message, delivery or attempt."""

from collections.abc import Sequence

import attrs

from followup_mockserver.control.causes.occurrences import is_end, is_paired
from followup_mockserver.state.history import CONTROL, CONTROL_PREFIX, EVENT_PREFIX, JOB_PREFIX, Receipt, Record
from followup_mockserver.state.journal import REQUEST_ID_PREFIX
from followup_mockserver.state.tenant import Tenant

_NOBODY = ""
"""No record has this patient."""

_CAUSES = (REQUEST_ID_PREFIX, EVENT_PREFIX, JOB_PREFIX, CONTROL_PREFIX)
"""Prefixes of the ids of causes."""


@attrs.frozen
class Selection:
    """The selected records, and the objects whose calls belong to the chain.

    Attributes:
        records: the records, oldest first.
        objects: the ids of the objects; calls that create or change one of them belong to the chain.
    """

    records: Sequence[Record]
    objects: frozenset[str]


def select(tenant: Tenant, id: str) -> Selection:
    """Return the records of the chain of an id: what it is about or causes, and all causes of that."""
    objects = _objects(tenant, id)
    search = _Search(id, objects, [*tenant.history.records])
    while search.follow_effects():
        pass
    search.follow_causes()
    return Selection(search.found(), objects)


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

    def follow_effects(self) -> bool:
        """Choose the records about the objects, and those that the id has caused. Return whether to look again."""
        known, end_of_run = len(self._causes), self._id.startswith(CONTROL_PREFIX)
        patient = self._id if self._id.startswith("pat_") else _NOBODY
        has_receipts = self._id.startswith(("we_", "whd_"))
        objects, causes = self._objects, self._causes
        for position, record in enumerate(self._records):  # a full history has 50,000 records
            is_subject = record.id in objects or record.patient == patient
            is_effect = record.cause in causes
            if is_subject or is_effect:
                self._choose(position, record, record.receipts)
                if is_effect and is_paired(record):
                    causes.add(record.id)
            elif record.about in objects:
                self._choose(position, record, ())
            elif has_receipts and record.receipts and (receipts := self._receipts(record)):
                self._choose(position, record, receipts)
        return end_of_run and len(causes) > known

    def follow_causes(self) -> None:
        """Choose the causes of the chosen records, and what these are about if the id itself has caused nothing."""
        chosen = self._chosen.values()
        needed = {each.cause for each in chosen if not is_end(each)} | {each.id for each in chosen}
        for position in range(len(self._records) - 1, -1, -1):
            record = self._records[position]
            if record.id in needed and (is_paired(record) or record.kind == CONTROL):
                self._chosen.setdefault(position, record)
                if not is_end(record):
                    needed.add(record.cause)
        self._choose_subjects(needed)
        known = {each.id for each in self._chosen.values() if is_paired(each)}
        for position, record in enumerate(self._records):
            if record.id in known and is_paired(record):
                self._chosen.setdefault(position, record)

    def found(self) -> list[Record]:
        """Return the chosen records, oldest first."""
        return [self._chosen[position] for position in sorted(self._chosen)]

    def _choose(self, position: int, record: Record, receipts: Sequence[Receipt]) -> None:
        kept = len(receipts) == len(record.receipts)
        self._chosen[position] = record if kept else record._replace(receipts=receipts)
        self._objects.update(each.delivery for each in receipts if each.delivery is not None)

    def _receipts(self, record: Record) -> Sequence[Receipt]:
        """Return the receipts of an event at the endpoint, or for the delivery, that has the id."""
        return [each for each in record.receipts if self._id in (each.endpoint, each.delivery)]

    def _choose_subjects(self, needed: set[str | None]) -> None:
        """Choose the events that led to a message, a job or an attempt: those of its object, from the same causes."""
        subjects = {record.about for record in self._chosen.values() if record.id == self._id and record.about}
        if self._id.startswith((REQUEST_ID_PREFIX, CONTROL_PREFIX)) or not subjects:
            return
        for position, record in enumerate(self._records):
            if position in self._chosen or record.cause not in needed or is_paired(record):
                continue
            receipts = [each for each in record.receipts if each.delivery in subjects]
            if receipts or (record.id in subjects and record.kind != CONTROL):
                self._chosen[position] = record._replace(receipts=receipts)
