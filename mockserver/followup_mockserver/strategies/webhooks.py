"""Webhooks as the service sends them: the rules of the mock make each one, from random events."""

import functools
import json
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, get_args

import attrs
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from followup import EventInput, WebhookDelivery
from followup._for_mockserver import MAX_WEBHOOK_ATTEMPTS, Events, EventSource, OutboundEventType, sign
from followup_mockserver.options import Options
from followup_mockserver.rules import conversations, doctors, events, patients, webhook_endpoints
from followup_mockserver.service import SUBSCRIBERS
from followup_mockserver.settings import NOT_YET_SENT
from followup_mockserver.state.tenant import Tenant
from followup_mockserver.strategies.arguments import digest_of
from followup_mockserver.strategies.histories import history_of
from followup_mockserver.strategies.operations import operation
from followup_mockserver.strategies.values import LONGEST_TEXT
from followup_mockserver.webhooks import requests
from followup_mockserver.webhooks.subscriptions import EVERY_TYPE, OUTBOUND_TYPES


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
    return _deliveries(type).map(requests.body_of)


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
    body, timestamp = requests.body_of(delivery), int(time.time())
    signature = sign(body, secret, timestamp)
    return body, requests.headers_of(
        event_type=delivery.event_type, number=number, timestamp=timestamp, signature=signature
    )


def _deliveries(type: OutboundEventType | None) -> SearchStrategy[WebhookDelivery]:
    if type is None:
        return st.one_of([_deliveries_of(each) for each in OUTBOUND_TYPES])
    if type not in OUTBOUND_TYPES:
        raise ValueError(f"there is no event type {type!r}; the types are {', '.join(OUTBOUND_TYPES)}")
    return _deliveries_of(type)


@attrs.frozen(kw_only=True)
class _Setup:
    """A new organization, and what happens in it before a webhook is sent.

    Attributes:
        now: time of the service.
        livemode: whether it is a production organization.
        history: the inbound events, oldest first.
        source: source of the events.
        opted_out: whether the patients of the events had opted out before.
        endpoint: description, subscription and URL of the webhook endpoint.
        reason: reason of a handoff.
    """

    now: datetime
    livemode: bool
    history: Sequence[EventInput]
    source: EventSource
    opted_out: bool
    endpoint: Mapping[str, Any]
    reason: str | None


_ENDPOINT = {"url": "https://clinic.example/webhooks", "enabled_events": [EVERY_TYPE]}
_EARLIEST, _LATEST = datetime(2020, 1, 1), datetime(2099, 1, 1)  # noqa: DTZ001 - the strategy adds the time zone


@functools.cache
def _deliveries_of(type: OutboundEventType) -> SearchStrategy[WebhookDelivery]:
    setups = st.builds(
        _Setup,
        now=st.datetimes(_EARLIEST, _LATEST, timezones=st.just(UTC)),
        livemode=st.booleans(),
        history=history_of(type),
        source=st.sampled_from(get_args(EventSource)),
        opted_out=st.booleans(),
        # The bodies of other types do not show these.
        endpoint=_endpoints() if type == "webhook.ping" else st.just(_ENDPOINT),
        reason=st.none() | st.text(max_size=LONGEST_TEXT) if type == "conversation.handoff" else st.none(),
    )
    return setups.map(functools.partial(_delivery, type))


def _endpoints() -> SearchStrategy[dict[str, Any]]:
    shown = ("url", "enabled_events", "description")
    return operation("webhook_endpoints.create").map(
        lambda call: {name: call[1][name] for name in shown if name in call[1]}
    )


def _delivery(type: OutboundEventType, setup: _Setup) -> WebhookDelivery:
    """Let the mock send a webhook, and return its delivery."""
    options = Options(start_time=setup.now, seed=int(digest_of(type, setup), 16))
    settings = {"livemode": setup.livemode, "activated_events": NOT_YET_SENT}
    tenant = Tenant(options.organization("org_strategies", **settings), (), options, SUBSCRIBERS)
    with tenant.lock:
        doctors.add_roster(tenant)
        webhook_endpoints.create(tenant, **setup.endpoint)
        if setup.opted_out:
            _opt_out(tenant, setup)
        for event in setup.history:
            _process(tenant, event, setup)
        _end(tenant, type, setup)
        return [each for each in tenant.webhook_deliveries if each.event_type == type][-1]


def _opt_out(tenant: Tenant, setup: _Setup) -> None:
    """Add the patients of the events, who have opted out."""
    for event in setup.history:
        if "patient" in event["data"]:
            data = {"patient": event["data"]["patient"]}
            _process(tenant, {"id": digest_of(event), "type": "patient.upserted", "data": data}, setup)
    for patient in tenant.patients:
        patients.set_service_fields(tenant, patient, opted_out=True)


def _process(tenant: Tenant, event: EventInput, setup: _Setup) -> None:
    sent = Events.create.call((event,), {}).content
    assert sent is not None
    result = events.process(tenant, json.loads(sent), setup.source)
    assert result.accepted, result.error


def _end(tenant: Tenant, type: OutboundEventType, setup: _Setup) -> None:
    """Cause the webhook, if no inbound event causes it."""
    match type:
        case "conversation.handoff":
            conversations.hand_off(tenant, [*tenant.patients][-1], reason=setup.reason)
        case "patient.silent":
            conversations.fall_silent(tenant, [*tenant.patients][-1])
        case "webhook.ping":
            (endpoint,) = tenant.webhook_endpoints
            webhook_endpoints.ping(tenant, endpoint)
