"""The inbound events after which the service sends a webhook of a given type."""

import copy
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, cast

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from followup import EventInput
from followup._for_mockserver import EventType, OutboundEventType
from followup_mockserver.schema.timestamps import parse_timestamp
from followup_mockserver.strategies.arguments import digest_of
from followup_mockserver.strategies.events import event_of
from followup_mockserver.strategies.values import LONGEST_TEXT, value_of

Histories = SearchStrategy[list[EventInput]]

_TEXT = st.text(min_size=1, max_size=LONGEST_TEXT)


def history_of(type: OutboundEventType) -> Histories:
    """Return lists of inbound events, all of which a new organization can process."""
    match type:
        case "appointment.rescheduled":
            shifts = st.integers(-30, 30).filter(bool).map(lambda days: timedelta(days=days))
            return st.builds(_rescheduled, _event("appointment.created"), _event(type), shifts)
        case "appointment.cancelled":
            return st.builds(_cancelled, _event("appointment.created"), _event(type))
        case "visit.completed":
            attended = st.builds(_attended, _event("appointment.created"), _event(type), _TEXT)
            return _alone(type) | attended
        case "intake.created":
            return _alone("intake.requested")
        case "intake.ready":
            complete = st.fixed_dictionaries(
                dict.fromkeys(("fullName", "insurer", "address", "requestedService"), _TEXT)
            )
            return st.builds(_complete, _event("intake.requested"), _identity("dni"), _identity("phone"), complete)
        case "conversation.handoff" | "patient.silent":
            return st.builds(_with_phone, _event("patient.upserted"), _identity("phone"))
        case "webhook.ping":
            return st.builds(list)
    return _alone(cast("EventType", type))


def _event(type: EventType) -> SearchStrategy[EventInput]:
    return event_of(type, processable=True)


def _alone(type: EventType) -> Histories:
    return _event(type).map(lambda event: [event])


def _identity(name: str) -> SearchStrategy[str]:
    return cast("SearchStrategy[str]", value_of(str, name))


def _rescheduled(booking: EventInput, event: EventInput, shift: timedelta) -> list[EventInput]:
    start = parse_timestamp(event["data"]["appointment"]["startAt"]) + shift
    return [_changed(booking, appointment={**_id_of(event), "startAt": start.isoformat()}), event]


def _cancelled(booking: EventInput, event: EventInput) -> list[EventInput]:
    return [_changed(booking, appointment=_id_of(event)), event]


def _attended(booking: EventInput, event: EventInput, external_id: str) -> list[EventInput]:
    booked = _changed(booking, appointment={"externalId": external_id}, patient=event["data"]["patient"])
    return [booked, _changed(event, visit={"appointment": external_id})]


def _complete(event: EventInput, dni: str, phone: str, drawn: Mapping[str, str]) -> list[EventInput]:
    texts = dict(drawn)
    patient = {"fullName": texts.pop("fullName"), "dni": dni, "phone": phone}
    return [_changed(event, patient=patient, coverage={"insurer": texts.pop("insurer")}, **texts)]


def _with_phone(event: EventInput, phone: str) -> list[EventInput]:
    return [_changed(event, patient={"phone": phone})]


def _id_of(event: EventInput) -> dict[str, Any]:
    return {"externalId": event["data"]["appointment"]["externalId"]}


def _changed(event: EventInput, **changes: Any) -> EventInput:
    """Return an event with other data: objects are merged, other values replaced."""
    data = copy.deepcopy(dict(event["data"]))
    for name, value in changes.items():
        data[name] = {**data.get(name, {}), **value} if isinstance(value, dict) else value
    return {**event, "id": digest_of(event, changes), "data": data}
