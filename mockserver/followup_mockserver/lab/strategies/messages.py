"""The messages between a clinic and the service: arguments of the 32 operations, inbound events, and webhooks.

The functions of ``followup.inbound`` build the events, and the rules of the mock make the webhooks.
"""

import copy
import functools
import inspect
import json
import string
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, cast, get_args

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from followup import DoctorInput, EventInput, NotGiven, PatientInput, WebhookDelivery, inbound
from followup import _for_mockserver as sdk
from followup._for_mockserver import OutboundEventType
from followup_mockserver.deliveries import payloads
from followup_mockserver.gateway.contract.operations import OPERATIONS
from followup_mockserver.lab.strategies import values
from followup_mockserver.rules import doctors, patients, webhook_endpoints
from followup_mockserver.rules.events import process
from followup_mockserver.service.service import SUBSCRIBERS
from followup_mockserver.world.schema.formats import parse_timestamp
from followup_mockserver.world.settings import NOT_YET_SENT, Options
from followup_mockserver.world.state.tenant import DomainEvent, Tenant

Call = tuple[tuple[Any, ...], dict[str, Any]]
"""Positional and keyword arguments."""

_VISIBLE = string.digits + string.ascii_letters + string.punctuation
_LONGEST_KEY_PREFIX = 200

TYPES: tuple[sdk.EventType, ...] = get_args(sdk.EventType)
_LONGEST_ID_PREFIX = 20


def operation(name: str) -> SearchStrategy[Call]:
    """Return valid arguments of an operation, for ``FollowUp`` and ``AsyncFollowUp``.

    Each draw is a pair: the positional and the keyword arguments. The arguments are valid by form, so neither the SDK
    nor the service rejects them for their form. The objects with their ids and cursors need not exist, so a call may
    end with ``resource_missing``. All parameters and types that the operation accepts occur: omitted arguments and
    None, ids and objects, aware datetimes in several time zones and ISO strings, batches with events of all types.
    E-mail addresses and URLs have hosts that nobody can own.

    An idempotency key is drawn together with the other arguments, so that no two different calls have the same.

    Args:
        name: name of the operation, such as ``patients.create`` (specification, section 4).

    Returns:
        A strategy for pairs ``(args, kwargs)``.

    Raises:
        ValueError: there is no such operation.
    """
    if name not in OPERATIONS:
        raise ValueError(f"there is no operation {name!r}; the operations are {', '.join(OPERATIONS)}")
    return _calls(name)


@functools.cache
def _calls(name: str) -> SearchStrategy[Call]:
    declaration = OPERATIONS[name].declaration
    named = [each for each in declaration.parameters if each.place in ("query", "body")]
    positional = st.tuples(*[_positional(each) for each in declaration.parameters if each not in named])
    keywords = values.arguments(
        {each.name: each.kinds for each in named},
        [each.name for each in named if each.required],
        nullable=declaration.method != "PATCH",
    )
    if not declaration.idempotent:
        return st.tuples(positional, keywords)
    return st.builds(functools.partial(_with_key, name), positional, keywords, _key_prefixes())


def _positional(parameter: sdk.Parameter) -> values.Values:
    if parameter.place == "path":
        return values.value_of(parameter.kinds)
    batches = st.lists(events(), min_size=1, max_size=sdk.MAX_EVENTS_PER_BATCH)
    return events() | batches | batches.map(tuple)


def _with_key(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], prefix: str | None | NotGiven) -> Call:
    if isinstance(prefix, NotGiven):
        return args, kwargs
    key = None if prefix is None else f"{prefix}{values.digest_of(name, args, kwargs)}"
    return args, {**kwargs, "idempotency_key": key}


@functools.cache
def _key_prefixes() -> SearchStrategy[str | None | NotGiven]:
    """Return what precedes the digest in a key; None for None as key, NOT_GIVEN for an omitted one."""
    first = st.text(_VISIBLE, min_size=1, max_size=1)
    rest = st.text(_VISIBLE + " ", max_size=_LONGEST_KEY_PREFIX)
    return st.just(sdk.NOT_GIVEN) | st.none() | st.builds(str.__add__, first, rest)


def events() -> SearchStrategy[EventInput]:
    """Return events of all types. The objects with their ids need not exist."""
    return st.one_of([event_of(each) for each in TYPES])


@functools.cache
def event_of(type: sdk.EventType, *, processable: bool = False) -> SearchStrategy[EventInput]:
    """Return events of one type.

    Args:
        type: the type.
        processable: whether all objects that an event refers to exist in a new organization, or are created.
    """
    build: Callable[..., EventInput] = getattr(inbound, type.replace(".", "_"))
    declared = inspect.unwrap(build)
    annotations = {name: each for name, each in sdk.annotations_of(declared).items() if name not in ("id", "return")}
    parameters = inspect.signature(declared).parameters
    required = [name for name in annotations if parameters[name].default is inspect.Parameter.empty]
    # The id of a doctor who does not exist makes an event invalid.
    replaced = _existing() if processable else {"doctor": values.input_dict(DoctorInput)}
    drawn = values.arguments(
        annotations, required, replaced={name: replaced[name] for name in replaced if name in annotations}
    )
    return st.builds(
        functools.partial(_built, build), drawn, st.text(max_size=_LONGEST_ID_PREFIX), versioned=st.booleans()
    )


def _built(build: Callable[..., EventInput], drawn: dict[str, Any], prefix: str, *, versioned: bool) -> EventInput:
    event = build(**drawn, id=prefix + values.digest_of(build.__name__, drawn))
    if drawn.get("occurred_at") is not None:
        event["occurred_at"] = drawn["occurred_at"]  # as it was drawn: a datetime or a string
    if versioned:
        event["schema_version"] = sdk.SCHEMA_VERSION
    return event


def _existing() -> dict[str, SearchStrategy[Any]]:
    # The agent, which is the source of some events, books with active doctors only.
    roster = st.sampled_from([{"external_id": f"D-{number}"} for number in range(1, len(doctors.ROSTER))])
    return {
        "patient": values.identified(PatientInput, ("phone", "dni")),
        "doctor": roster.map(dict) | values.input_dict(DoctorInput),
        "appointment": st.none(),
    }


_Histories = SearchStrategy[list[EventInput]]

_TEXT = st.text(min_size=1, max_size=values.LONGEST_TEXT)


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
    return st.builds(functools.partial(_signed, secret), _deliveries(type), st.integers(1, sdk.MAX_WEBHOOK_ATTEMPTS))


def _signed(secret: str, delivery: WebhookDelivery, number: int) -> tuple[bytes, dict[str, str]]:
    body, timestamp = payloads.body_of(delivery), int(time.time())
    signature = sdk.sign(body, secret, timestamp)
    return body, payloads.headers_of(
        event_type=delivery.event_type, number=number, timestamp=timestamp, signature=signature
    )


def _deliveries(type: OutboundEventType | None) -> SearchStrategy[WebhookDelivery]:
    if type is None:
        return st.one_of([_deliveries_of(each) for each in payloads.OUTBOUND_TYPES])
    if type not in payloads.OUTBOUND_TYPES:
        raise ValueError(f"there is no event type {type!r}; the types are {', '.join(payloads.OUTBOUND_TYPES)}")
    return _deliveries_of(type)


_ENDPOINT = {"url": "https://clinic.example/webhooks", "enabled_events": [payloads.EVERY_TYPE]}
_EARLIEST, _LATEST = datetime(2020, 1, 1), datetime(2099, 1, 1)  # noqa: DTZ001 - the strategy adds the time zone


@functools.cache
def _deliveries_of(type: OutboundEventType) -> SearchStrategy[WebhookDelivery]:
    return st.builds(
        functools.partial(_delivery, type),
        now=st.datetimes(_EARLIEST, _LATEST, timezones=st.just(UTC)),
        livemode=st.booleans(),
        history=_history_of(type),
        source=st.sampled_from(get_args(sdk.EventSource)),
        opted_out=st.booleans(),
        # The bodies of other types do not show these.
        endpoint=_endpoints() if type == "webhook.ping" else st.just(_ENDPOINT),
        reason=st.none() | st.text(max_size=values.LONGEST_TEXT) if type == "conversation.handoff" else st.none(),
    )


def _endpoints() -> SearchStrategy[dict[str, Any]]:
    shown = ("url", "enabled_events", "description")
    return operation("webhook_endpoints.create").map(
        lambda call: {name: call[1][name] for name in shown if name in call[1]}
    )


def _delivery(type: OutboundEventType, *, opted_out: bool, **drawn: Any) -> WebhookDelivery:
    """Let the mock send a webhook from a new organization, in which these events happened, and return its delivery."""
    options = Options(start_time=drawn["now"], seed=int(values.digest_of(type, opted_out, drawn), 16))
    settings = {"livemode": drawn["livemode"], "activated_events": NOT_YET_SENT}
    subscribers = (_opt_out, *SUBSCRIBERS) if opted_out else SUBSCRIBERS
    tenant = Tenant(options.organization("org_strategies", **settings), (), options, subscribers)
    with tenant.lock, tenant.caused_by(None):
        doctors.add_roster(tenant)
        webhook_endpoints.create(tenant, **drawn["endpoint"])
        for event in drawn["history"]:
            result = process(tenant, json.loads(sdk.Events.create.call((event,), {}).content or ""), drawn["source"])
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
    return _event(cast("sdk.EventType", type)).map(_alone)


_event = functools.partial(event_of, processable=True)


def _alone(event: EventInput) -> list[EventInput]:
    return [event]


def _identity(name: str) -> SearchStrategy[str]:
    return cast("SearchStrategy[str]", values.value_of(str, name))


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
    return {**event, "id": values.digest_of(event, changes), "data": data}
