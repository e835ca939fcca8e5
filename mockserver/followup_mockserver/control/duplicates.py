"""Possible duplicates: requests, inbound events and appointments that an integration seems to have sent twice.

An idempotency key protects a retry only if the retry sends the same key, and the id of an event only if it is made
once. The usual mistake is a new key or a new id for each attempt, which no service can recognize.
"""

from collections.abc import Collection, Hashable, Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

import attrs

from followup import Appointment
from followup_mockserver.gateway.operations import is_batch
from followup_mockserver.world.state.history import EVENT
from followup_mockserver.world.state.journal import JournalEntry, RecordedCall
from followup_mockserver.world.state.tenant import Tenant

WINDOW = timedelta(minutes=10)
"""Of the mock's clock: an equal request or event that comes later than this after the other is no duplicate."""

_KINDS = (EVENT, "appointment.created", "appointment.rescheduled")


class SuspectCall(NamedTuple):
    """A call that may be a duplicate.

    Attributes:
        entry: the call.
        other: id of the earlier call, event or appointment that it seems to repeat.
        number: the number of the earlier call; None if ``other`` is an event or an appointment.
    """

    entry: JournalEntry
    other: str
    number: int | None

    @property
    def is_harmless(self) -> bool:
        """Whether the repetition had no effect. A repeated batch has none, because its events keep their ids."""
        return self.number is not None and is_batch(self.entry.operation)


def suspect_calls(tenant: Tenant) -> dict[str, SuspectCall]:
    """Return the calls that may be duplicates by request id, newest first.

    These are calls that took effect and are equal to one under another idempotency key, and those that brought an
    event or booked an appointment that ``suspect_objects`` returns.
    """
    calls = [*tenant.journal.recorded_newest_first()]
    done = [call for call in reversed(calls) if call.outcome.fingerprint and not call.entry.replayed and was_done(call)]
    found = _repeated((call.entry.request_id, call.outcome.fingerprint, call.entry.at) for call in done)
    objects = suspect_objects(tenant)
    causes = _causes(tenant, objects)
    # Twice: what caused an appointment may be an inbound event, and what caused that is the call.
    causes |= _causes(tenant, causes.values())
    for suspect, other in objects.items():
        cause = causes.get(suspect, "")
        found.setdefault(causes.get(cause, cause), other)
    numbers = {call.entry.request_id: call.number for call in calls} if found else {}
    return {
        request: SuspectCall(call.entry, found[request], numbers.get(found[request]))
        for call in calls
        if (request := call.entry.request_id) in found
    }


def journal_of(tenant: Tenant) -> list[JournalEntry]:
    """Return the calls, newest first, with what they may be duplicates of."""
    others = {request: each.other for request, each in suspect_calls(tenant).items()}
    calls = ((each, others.get(each.request_id)) for each in tenant.journal.newest_first())
    return [each if other is None else attrs.evolve(each, possible_duplicate_of=other) for each, other in calls]


def suspect_objects(tenant: Tenant) -> dict[str, str]:
    """Return inbound events and appointments that may be duplicates, each with the earlier one, by their ids.

    These are events with the same type and data under another id, and appointments of a patient who has another one at
    the same start. Two types of procedure are two appointments; one without a type may be the same as any other.
    """
    sent = ((each.id, (each.type, repr(each.data)), each.received_at) for each in tenant.events if each.data)
    return {**_repeated(sent), **_booked_twice(tenant)}


def _booked_twice(tenant: Tenant) -> dict[str, str]:
    """Return the appointments that may be duplicates, each with an earlier one, by their ids."""
    found: dict[str, str] = {}
    booked: dict[tuple[str, datetime], list[Appointment]] = {}
    for each in tenant.appointments:
        if each.status != "cancelled":
            earlier = booked.setdefault((each.patient, each.start_at), [])
            for other in earlier:
                if len({other.type, each.type} - {None}) < 2:
                    found[each.id] = other.id
            earlier.append(each)
    return found


def twins_of(tenant: Tenant) -> dict[str, str]:
    """Return what ``suspect_objects`` returns, and the later one of each earlier one."""
    objects = suspect_objects(tenant)
    return {earlier: later for later, earlier in objects.items()} | objects


def _repeated(items: Iterable[tuple[str, Hashable, datetime]]) -> dict[str, str]:
    """Return the ids of items, oldest first, whose content an earlier item has within the window, with its id."""
    found: dict[str, str] = {}
    last: dict[Hashable, tuple[str, datetime]] = {}
    for item, content, at in items:
        earlier = last.get(content)
        if earlier is not None and at - earlier[1] <= WINDOW:
            found[item] = earlier[0]
        last[content] = item, at
    return found


def _causes(tenant: Tenant, ids: Collection[str]) -> dict[str, str]:
    """Return what caused inbound events, and what gave appointments their starts, by their ids."""
    if not ids:
        return {}
    wanted = {*ids}
    return {
        record.id: record.cause
        for record in tenant.history.records
        if record.id in wanted and record.cause is not None and record.kind in _KINDS
    }


def was_done(call: RecordedCall) -> bool:
    """Return whether the rule of the operation has run, whatever the client saw."""
    fault = call.outcome.fault
    if fault is not None and fault.kind != "delay":
        return fault.when == "after" and call.entry.error_code in (None, "fault")
    return call.entry.error_code is None
