"""Webhooks as the service sends them: the rules of the mock make each one, from random inbound events."""

import copy
import functools
import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, cast, get_args

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from followup import EventInput, WebhookDelivery
from followup._for_mockserver import MAX_WEBHOOK_ATTEMPTS, Events, EventSource, EventType, OutboundEventType, sign
from followup_mockserver.rules import doctors, events, patients, webhook_endpoints
from followup_mockserver.schema.formats import parse_timestamp
from followup_mockserver.service.service import SUBSCRIBERS
from followup_mockserver.settings.options import Options
from followup_mockserver.settings.settings import NOT_YET_SENT
from followup_mockserver.state.tenant import DomainEvent, Tenant
from followup_mockserver.strategies.operations import event_of, operation
from followup_mockserver.strategies.values import LONGEST_TEXT, digest_of, value_of
from followup_mockserver.webhooks import payloads
from followup_mockserver.webhooks.payloads import EVERY_TYPE, OUTBOUND_TYPES

_Histories = SearchStrategy[list[EventInput]]

_TEXT = st.text(min_size=1, max_size=LONGEST_TEXT)


def webhook_event(type: OutboundEventType | None = None) -> SearchStrategy[bytes]:
    """Return raw bodies of webhooks, as the service sends them (specification, section 6.2).

    The mock itself makes them, from random events of a new organization. Two different bodies have different ids, so a
    receiver that has seen one does not take another for its repetition.

    Args:
        type: event type; all 13 if omitted.

    Returns:
        A strategy for bodies.

    Raises:
        ValueError: there is no such event type.
    """
    return _deliveries(type).map(payloads.body_of)


def signed_webhook(secret: str, type: OutboundEventType | None = None) -> SearchStrategy[tuple[bytes, dict[str, str]]]:
    """Return webhooks with their headers, signed at the time at which each is drawn.

    Args:
        secret: the signing secret of the endpoint.
        type: event type; all 13 if omitted.

    Returns:
        A strategy for pairs of body and headers.

    Raises:
        ValueError: there is no such event type, or the secret is empty.
    """
    if not isinstance(secret, str) or not secret:
        raise ValueError("secret must be a non-empty string, such as the secret of a webhook endpoint")
    return st.builds(functools.partial(_signed, secret), _deliveries(type), st.integers(1, MAX_WEBHOOK_ATTEMPTS))


def _signed(secret: str, delivery: WebhookDelivery, number: int) -> tuple[bytes, dict[str, str]]:
    body, timestamp = payloads.body_of(delivery), int(time.time())
    signature = sign(body, secret, timestamp)
    return body, payloads.headers_of(
        event_type=delivery.event_type, number=number, timestamp=timestamp, signature=signature
    )


def _deliveries(type: OutboundEventType | None) -> SearchStrategy[WebhookDelivery]:
    if type is None:
        return st.one_of([_deliveries_of(each) for each in OUTBOUND_TYPES])
    if type not in OUTBOUND_TYPES:
        raise ValueError(f"there is no event type {type!r}; the types are {', '.join(OUTBOUND_TYPES)}")
    return _deliveries_of(type)


_ENDPOINT = {"url": "https://clinic.example/webhooks", "enabled_events": [EVERY_TYPE]}
_EARLIEST, _LATEST = datetime(2020, 1, 1), datetime(2099, 1, 1)  # noqa: DTZ001 - the strategy adds the time zone


@functools.cache
def _deliveries_of(type: OutboundEventType) -> SearchStrategy[WebhookDelivery]:
    return st.builds(
        functools.partial(_delivery, type),
        now=st.datetimes(_EARLIEST, _LATEST, timezones=st.just(UTC)),
        livemode=st.booleans(),
        history=_history_of(type),
        source=st.sampled_from(get_args(EventSource)),
        opted_out=st.booleans(),
        # The bodies of other types do not show these.
        endpoint=_endpoints() if type == "webhook.ping" else st.just(_ENDPOINT),
        reason=st.none() | st.text(max_size=LONGEST_TEXT) if type == "conversation.handoff" else st.none(),
    )


def _endpoints() -> SearchStrategy[dict[str, Any]]:
    shown = ("url", "enabled_events", "description")
    return operation("webhook_endpoints.create").map(
        lambda call: {name: call[1][name] for name in shown if name in call[1]}
    )


def _delivery(type: OutboundEventType, *, opted_out: bool, **drawn: Any) -> WebhookDelivery:
    """Let the mock send a webhook from a new organization, in which these events happened, and return its delivery."""
    options = Options(start_time=drawn["now"], seed=int(digest_of(type, opted_out, drawn), 16))
    settings = {"livemode": drawn["livemode"], "activated_events": NOT_YET_SENT}
    subscribers = (_opt_out, *SUBSCRIBERS) if opted_out else SUBSCRIBERS
    tenant = Tenant(options.organization("org_strategies", **settings), (), options, subscribers)
    with tenant.lock:
        doctors.add_roster(tenant)
        webhook_endpoints.create(tenant, **drawn["endpoint"])
        for event in drawn["history"]:
            result = events.process(tenant, json.loads(Events.create.call((event,), {}).content or ""), drawn["source"])
            assert result.accepted, result.error
        _end(tenant, type, drawn["reason"])
        return [each for each in tenant.webhook_deliveries if each.event_type == type][-1]


def _opt_out(tenant: Tenant, event: DomainEvent) -> None:
    """Opt every patient out as soon as they exist."""
    if event.name == "patient" and event.patient is not None:
        patients.set_service_fields(tenant, event.patient, opted_out=True)


def _end(tenant: Tenant, type: OutboundEventType, reason: str | None) -> None:
    """Cause the webhook, if no inbound event causes it."""
    match type:
        case "conversation.handoff":
            patients.hand_off(tenant, [*tenant.patients][-1], reason=reason)
        case "patient.silent":
            patients.fall_silent(tenant, [*tenant.patients][-1])
        case "webhook.ping":
            (endpoint,) = tenant.webhook_endpoints
            webhook_endpoints.ping(tenant, endpoint)


def _history_of(type: OutboundEventType) -> _Histories:
    """Return lists of inbound events, all of which a new organization can process."""
    match type:
        case "appointment.rescheduled":
            shifts = st.integers(-30, 30).filter(bool).map(lambda days: timedelta(days=days))
            return st.builds(_rescheduled, _event("appointment.created"), _event(type), shifts)
        case "appointment.cancelled":
            return st.builds(_cancelled, _event("appointment.created"), _event(type))
        case "visit.completed":
            attended = st.builds(_attended, _event("appointment.created"), _event(type), _TEXT)
            return _event(type).map(_alone) | attended
        case "intake.created":
            return _event("intake.requested").map(_alone)
        case "intake.ready":
            complete = st.fixed_dictionaries(
                dict.fromkeys(("fullName", "insurer", "address", "requestedService"), _TEXT)
            )
            return st.builds(_complete, _event("intake.requested"), _identity("dni"), _identity("phone"), complete)
        case "conversation.handoff" | "patient.silent":
            return st.builds(_with_phone, _event("patient.upserted"), _identity("phone"))
        case "webhook.ping":
            return st.builds(list)
    return _event(cast("EventType", type)).map(_alone)


_event = functools.partial(event_of, processable=True)


def _alone(event: EventInput) -> list[EventInput]:
    return [event]


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
