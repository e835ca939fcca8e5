"""The chain of causes of an id, in time order: every cause precedes what it has caused."""

from collections.abc import Iterable, Sequence
from itertools import count

import attrs

from followup_mockserver.control.causes import occurrences
from followup_mockserver.control.causes.occurrences import HistoryEntry, Occurrence
from followup_mockserver.control.causes.selection import Selection, select
from followup_mockserver.state.collection import Collection
from followup_mockserver.state.history import Record
from followup_mockserver.state.jobs import AskForMissingData, SendPostVisitMessage, SendReminder
from followup_mockserver.state.journal import REQUEST_ID_PREFIX, RecordedCall
from followup_mockserver.state.tenant import Tenant


def explain(tenant: Tenant, id: str) -> list[HistoryEntry] | None:
    """Return the chain of causes of an id, in time order. The caller holds the lock.

    Each ``cause`` is the ``id`` of an entry that precedes it.

    Args:
        tenant: the state of the organization.
        id: id of an object of the API, a request, an inbound event, a job, a control call, a message, a delivery or an
            attempt.

    Returns:
        The entries; none if the history has dropped them. None if there is no such id.
    """
    found = occurrences_of(tenant, id)
    return [each.entry for each in found] if found or _exists(tenant, id) else None


def occurrences_of(tenant: Tenant, id: str) -> list[Occurrence]:
    """Return the chain of causes of an id as occurrences; see ``explain``."""
    selection = select(tenant, id)
    found = [*occurrences.of_records(tenant, selection.records)]
    return _in_order(found, _requests(tenant, id, selection, found))


def outbound_events(tenant: Tenant) -> list[Record]:
    """Return the events that the service sends to webhook endpoints, newest first, with their receipts.

    Events that nobody received are among them. The caller holds the lock.
    """
    return [record for record in reversed(tenant.history.records) if record.receipts]


def messages_not_sent(tenant: Tenant) -> list[Occurrence]:
    """Return the reminders and other messages that were not sent or not scheduled, oldest first.

    Those that were cancelled or moved are not among them. The caller holds the lock.
    """
    kinds = (SendReminder.kind, SendPostVisitMessage.kind, AskForMissingData.kind)
    records = [record for record in tenant.history.records if record.kind in kinds]
    return [each for each in occurrences.of_records(tenant, records) if each.outcome.startswith("not ")]


def _requests(tenant: Tenant, id: str, selection: Selection, found: Sequence[Occurrence]) -> list[Occurrence]:
    """Return the requests of a chain, in the order of the calls: its causes, and calls that changed its object."""
    causes = {record.cause for record in selection.records} | {id}
    wanted = {each for each in causes if each is not None and each.startswith(REQUEST_ID_PREFIX)}
    calls: dict[str, RecordedCall] = {}
    for call in tenant.journal.recorded_newest_first():
        entry, outcome = call.entry, call.outcome
        if entry.request_id in wanted or (outcome.about in selection.objects and entry.method != "GET"):
            calls[entry.request_id] = call
            wanted |= {entry.request_id} if outcome.replay_of is None else {entry.request_id, outcome.replay_of}
    effects: dict[str, list[Occurrence]] = {}
    for each in found:
        if each.cause in wanted:
            effects.setdefault(each.cause, []).append(each)
    lost = [occurrences.lost_request(each, effects[each]) for each in wanted if each not in calls and each in effects]
    kept = [occurrences.of_call(call) for call in reversed(calls.values())]
    return [*lost, *(_moved_before(each, effects.get(each.id, ())) for each in kept)]


def _moved_before(request: Occurrence, effects: Iterable[Occurrence]) -> Occurrence:
    """Return a request at a time before its effects: the journal has the time of its response."""
    return attrs.evolve(request, at=min([request.at, *(each.at for each in effects)]))


def _in_order(found: Sequence[Occurrence], requests: Sequence[Occurrence]) -> list[Occurrence]:
    """Return all occurrences in time order, and those of the same time in the order in which they happened."""
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for position, each in enumerate(found):
        if each.cause is not None:
            first.setdefault(each.cause, position)
            last[each.cause] = position
    order: dict[int, tuple[float, int]] = {id(each): (position, 0) for position, each in enumerate(found)}
    previous = -1.0
    for number, request in zip(count(1), requests):
        before = first.get(request.id)
        order[id(request)] = (previous + 0.5 if before is None else before - 0.5, number)
        previous = last.get(request.id, previous)
    ordered = sorted([*found, *requests], key=lambda each: (each.at, order[id(each)]))
    return _causes_first(ordered)


def _causes_first(ordered: Sequence[Occurrence]) -> list[Occurrence]:
    """Return occurrences with each cause before its effects.

    A cause that is not among them is unknown, and so is one of those that cause each other, as in a snapshot that
    somebody has edited.
    """
    causes: dict[str | None, Occurrence] = {
        each.id: each for each in ordered if each.kind == occurrences.REQUEST or _can_cause(each)
    }
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


def _can_cause(occurrence: Occurrence) -> bool:
    return occurrence.kind in ("event", "control") or occurrence.id.startswith("job_")


def _exists(tenant: Tenant, id: str) -> bool:
    collections = [each for each in vars(tenant).values() if isinstance(each, Collection)]
    if id == tenant.organization.id or any(id in each for each in collections):
        return True
    attempts = tenant.attempts.of(id.partition(".")[0])
    return any(f"{each.delivery}.{each.number}" == id for each in attempts) or any(
        each.id == id for each in tenant.messages
    )
