"""Inbound events (specification, sections 4 and 6.1): each is processed on its own, by the rules of the resources."""

from collections.abc import Mapping
from typing import Any

from followup import Event, EventBatch, EventInput, EventOutcome, EventResult
from followup._for_mockserver import MAX_EVENTS_PER_BATCH, EventResultStatus, EventSource, encode
from followup_mockserver.rules.event_effects import Effect, effects, patient_of_order, without_nulls
from followup_mockserver.world.outcomes import Kind, Outcome, other
from followup_mockserver.world.schema.errors import ServiceError, invalid
from followup_mockserver.world.schema.shapes import shape_of
from followup_mockserver.world.schema.validation import LENIENT, STRICT
from followup_mockserver.world.state.faults import INJECTED
from followup_mockserver.world.state.history import EVENT, EVENT_PREFIX, EVENT_RESENT
from followup_mockserver.world.state.tenant import Tenant

MAX_IGNORED_KEYS = 100
"""Keys of one call that the journal names."""

ENVELOPE = shape_of(EventInput)


def create(tenant: Tenant, *, body: Any) -> EventBatch:
    """Process one event, an array of events, or an object with an array under ``events``.

    Raises:
        ServiceError: no event was accepted: 400 if all were invalid, else 500. The body of the error has the results.
    """
    events = _checked(body, reject_unknown=tenant.options.refuse_unknown_fields)
    is_one = events == [body]
    results = [process(tenant, raw, path="" if is_one else f"events[{n}].") for n, raw in enumerate(events)]
    del tenant.remarks.ignored_keys[MAX_IGNORED_KEYS:]
    if any(result.accepted for result in results):
        return EventBatch(object="event_batch", results=results)
    detail = _detail(results)
    if all(result.status == "invalid" for result in results):
        raise ServiceError(400, "invalid_request_error", "events_invalid", "No event is valid.", body=detail)
    raise ServiceError(500, "api_error", "events_failed", "No event could be processed.", body=detail)


def all_failed(events: list[Any], reason: str) -> dict[str, Any]:
    """Return the results that accompany the error in the body of a 500 when no event was processed."""
    return _detail([EventResult(id=_id_of(raw) or "", accepted=False, status="failed", error=reason) for raw in events])


def _detail(results: list[EventResult]) -> dict[str, Any]:
    return {"object": "event_batch", "results": encode(results)}


def events_in(body: Any) -> list[Any]:
    """Return the events in a body, valid or not: one, an array, or an array under ``events``; none in another form."""
    events = body.get("events", [body]) if isinstance(body, dict) else body
    return events if isinstance(events, list) else []


def _checked(body: Any, *, reject_unknown: bool) -> list[Any]:
    """Return the events in a body.

    Raises:
        ServiceError: 400: the body has none of the three forms, or too many events.
    """
    others = [key for key in body if key != "events"] if isinstance(body, dict) and "events" in body else []
    if others and reject_unknown:
        raise invalid("parameter_unknown", "There is no such field next to events.", others[0])
    events = events_in(body)
    if not 1 <= len(events) <= MAX_EVENTS_PER_BATCH:
        message = f"This must be an event, or an array of 1 to {MAX_EVENTS_PER_BATCH} events."
        raise invalid("parameter_invalid", message, "events")
    return events


def process(tenant: Tenant, raw: Any, source: EventSource = "api", path: str = "") -> EventResult:
    """Process one event. It is identified by its source and its id in that source.

    Args:
        tenant: the organization.
        raw: the event, as the request has it.
        source: its source.
        path: its path in the body of the request, with which the paths of its keys in the journal begin.
    """
    known = tenant.events.find("origin", (source, _id_of(raw)))
    if known is not None and known.status != "failed":
        # Before any validation: an event that was accepted is a duplicate by its id, whatever its other fields are now.
        if (known.type, without_nulls(known.data)) != (raw.get("type"), without_nulls(raw.get("data"))):
            about = None if known.result is None else known.result.id
            tenant.note(EVENT_RESENT, known.id, Outcome(Kind.CHANGED_DUPLICATE), about=about)
            tenant.remarks.changed_duplicates.append(known.source_ref)
        return EventResult(id=known.source_ref, accepted=True, status="duplicate", event=known.id, result=known.result)
    reject_unknown = tenant.options.refuse_unknown_fields
    try:
        event = ENVELOPE.argument_of(raw, STRICT if reject_unknown else LENIENT)
        effect = effects()[event["type"]]
        data, ignored = effect.parse(event["data"], reject_mistaken=reject_unknown)
    except ServiceError as error:
        return EventResult(id=_id_of(raw) or "", accepted=False, status="invalid", error=str(error))
    result = _apply(tenant, event, effect, data, known, source)
    if result.accepted:
        tenant.remarks.ignored_keys.extend(f"{path}{each}" for each in ignored)
    return result


def _id_of(raw: Any) -> str | None:
    source_ref = raw.get("id") if isinstance(raw, Mapping) else None
    return source_ref if isinstance(source_ref, str) else None


def _apply(
    tenant: Tenant, event: Any, effect: Effect, data: Any, stored: Event | None, source: EventSource
) -> EventResult:
    status: EventResultStatus = "unhandled"
    outcome, problem, code = None, None, None
    event_id = tenant.ids.new(EVENT_PREFIX) if stored is None else stored.id
    begun = tenant.note(EVENT, event_id)
    # A fault is planned for calls, and an event of another source is none.
    if source == "api" and tenant.faults.pending and tenant.faults.match_event() is not None:
        status, problem, code = "failed", INJECTED, "fault"
    elif effect.apply is not None:
        try:
            with tenant.caused_by(event_id):
                produced = effect.apply(tenant, data, source)
            status, outcome = "processed", EventOutcome(object=produced.object, id=produced.id)
        except ServiceError as error:
            # An event that can never succeed is not stored. Any other problem may be gone when it is sent again.
            # The path is that in the event: it is stored with the event, whose position in the batch is not.
            problem = str(error.under("data"))
            if _is_permanent(error):
                tenant.history.drop(begun)
                return EventResult(id=event["id"], accepted=False, status="invalid", error=problem)
            status, code = "failed", error.code
    stored = _store(tenant, event, event_id, stored, source, status=status, result=outcome, error=problem)
    result_id = None if outcome is None else outcome.id
    tenant.note(EVENT, event_id, _history_outcome(status, code), cause=None, about=result_id)
    if status == "unhandled":
        # Once it is stored, because ``ref`` of the webhook names it.
        patient = patient_of_order(tenant, stored.data)
        with tenant.caused_by(event_id):
            tenant.publish(stored.type, stored, patient)
    return EventResult(
        id=event["id"], accepted=status != "failed", status=status, event=stored.id, result=outcome, error=problem
    )


def _history_outcome(status: EventResultStatus, code: str | None) -> Outcome:
    if code is not None:
        return Outcome(Kind.FAILED, code)
    return Outcome(Kind.PROCESSED) if status == "processed" else other(status)


def _is_permanent(error: ServiceError) -> bool:
    """Return whether an event that has this problem can never succeed: not even once something unknown is created."""
    is_doctor = (error.param or "").rpartition(".")[2] == "doctor" and error.code == "resource_missing"
    return is_doctor or error.code.startswith("parameter_") or error.code == "appointment_not_modifiable"


def _store(
    tenant: Tenant, event: Any, event_id: str, stored: Event | None, source: EventSource, **outcome: Any
) -> Event:
    now = tenant.at
    fields = {
        "type": event["type"],
        "data": event["data"],
        "occurred_at": event.get("occurred_at", now if stored is None else stored.occurred_at),
        "processed_at": None if outcome["status"] == "failed" else now,
        **outcome,
    }
    if stored is not None:
        tenant.events.update(stored, **fields)
        return stored
    stored = Event(id=event_id, object="event", source=source, source_ref=event["id"], received_at=now, **fields)
    tenant.events.add(stored)
    return stored
