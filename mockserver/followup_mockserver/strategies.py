"""Hypothesis strategies: arguments of all 32 operations, and webhooks as the service sends them.

They need the extra ``testing``, which installs Hypothesis. The arguments are derived from the declarations of the
operations, and the webhooks are made by the rules of the mock.
"""

try:
    import hypothesis as _hypothesis  # noqa: F401
except ModuleNotFoundError as _error:
    if _error.name != "hypothesis":
        raise
    from followup._for_mockserver import installation

    raise ImportError(
        f"{__name__} needs Hypothesis, which is not installed: {installation('testing')}", name="hypothesis"
    ) from None

import functools
import inspect
import json
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, cast, get_args

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from followup import DoctorInput, EventInput, PatientInput, WebhookDelivery, inbound
from followup import _for_mockserver as sdk
from followup._for_mockserver import OutboundEventType
from followup_mockserver.deliveries import EVERY_TYPE, OUTBOUND_TYPES, body_of, headers_of
from followup_mockserver.gateway.operations import OPERATIONS
from followup_mockserver.lab.values import LONGEST_TEXT, Values, arguments, digest_of, identified, input_dict, value_of
from followup_mockserver.rules import appointments, doctors, patients, triggered_events, webhook_endpoints
from followup_mockserver.rules.events import process
from followup_mockserver.service import SUBSCRIBERS
from followup_mockserver.world.settings import NOT_YET_SENT, Options
from followup_mockserver.world.state.tenant import DomainEvent, Tenant

__all__ = ["operation", "signed_webhook", "webhook_event"]

Call = tuple[tuple[Any, ...], dict[str, Any]]
"""Positional and keyword arguments."""

TYPES: tuple[sdk.EventType, ...] = get_args(sdk.EventType)


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
    keywords = arguments(
        {each.name: each.kinds for each in named},
        [each.name for each in named if each.required],
        declaration.one_of,
        nullable=declaration.method != "PATCH",
    )
    if not declaration.idempotent:
        return st.tuples(positional, keywords)
    return st.builds(
        functools.partial(_with_key, name), positional, keywords, st.sampled_from(["omitted", None, "key"])
    )


def _positional(parameter: sdk.Parameter) -> Values:
    if parameter.place == "path":
        return value_of(parameter.kinds)
    batches = st.lists(events(), min_size=1, max_size=sdk.MAX_EVENTS_PER_BATCH)
    return events() | batches | batches.map(tuple)


def _with_key(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], key: str | None) -> Call:
    if key == "omitted":
        return args, kwargs
    return args, {**kwargs, "idempotency_key": key and f"{key} {digest_of(name, args, kwargs)}"}


def events() -> SearchStrategy[EventInput]:
    """Return events of all types. The objects with their ids need not exist."""
    return st.one_of([event_of(each) for each in TYPES])


@functools.cache
def event_of(type: sdk.EventType, patient: tuple[str, ...] = ()) -> SearchStrategy[EventInput]:
    """Return events of one type.

    Args:
        type: the type.
        patient: fields of the patient, of which an event has at least one; then a new organization can process it,
            because all other objects that it refers to exist. Empty: the objects need not exist.
    """
    build: Callable[..., EventInput] = getattr(inbound, type.replace(".", "_"))
    declared = inspect.unwrap(build)
    kinds = {name: each for name, each in sdk.kinds_in(declared).items() if name not in ("id", "return")}
    parameters = inspect.signature(declared).parameters
    required = [name for name in kinds if parameters[name].default is inspect.Parameter.empty]
    # The id of a doctor who does not exist makes an event invalid.
    replaced = _existing(patient) if patient else {"doctor": input_dict(DoctorInput)}
    replaced = {name: each for name, each in replaced.items() if name in kinds}
    drawn = arguments(kinds, required, vars(build)["one_of"], replaced=replaced)
    return st.builds(functools.partial(_built, build), drawn, versioned=st.booleans())


def _built(build: Callable[..., EventInput], drawn: dict[str, Any], *, versioned: bool) -> EventInput:
    event = build(**drawn, id=digest_of(build.__name__, drawn))
    if drawn.get("occurred_at") is not None:
        event["occurred_at"] = drawn["occurred_at"]  # as it was drawn: a datetime or a string
    if versioned:
        event["schema_version"] = sdk.SCHEMA_VERSION
    return event


def _existing(patient: tuple[str, ...]) -> dict[str, SearchStrategy[Any]]:
    # The agent, which is the source of some events, books with active doctors only.
    roster = st.sampled_from([{"external_id": f"D-{number}"} for number in range(1, len(doctors.ROSTER))])
    return {
        "patient": identified(PatientInput, patient),
        "doctor": roster.map(dict) | input_dict(DoctorInput),
        "appointment": st.none(),
    }


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
    return _deliveries(type).map(body_of)


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
    body, timestamp = body_of(delivery), int(time.time())
    signature = sdk.sign(body, secret, timestamp)
    return body, headers_of(event_type=delivery.event_type, number=number, timestamp=timestamp, signature=signature)


def _deliveries(type: OutboundEventType | None) -> SearchStrategy[WebhookDelivery]:
    if type is None:
        return st.one_of([_deliveries_of(each) for each in OUTBOUND_TYPES])
    if type not in OUTBOUND_TYPES:
        raise ValueError(f"there is no event type {type!r}; the types are {', '.join(OUTBOUND_TYPES)}")
    return _deliveries_of(type)


_EARLIEST, _LATEST = datetime(2020, 1, 1), datetime(2099, 1, 1)  # noqa: DTZ001 - the strategy adds the time zone

_CAUSES: Mapping[OutboundEventType, sdk.EventType] = {
    "appointment.rescheduled": "appointment.created",
    "appointment.cancelled": "appointment.created",
    "intake.created": "intake.requested",
    "intake.ready": "intake.requested",
    "conversation.handoff": "patient.upserted",
    "patient.silent": "patient.upserted",
    "webhook.ping": "patient.upserted",
}
"""The inbound events before webhooks that no inbound event of the same type causes."""


@functools.cache
def _deliveries_of(type: OutboundEventType) -> SearchStrategy[WebhookDelivery]:
    cause = _CAUSES.get(type) or cast("sdk.EventType", type)
    return st.builds(
        functools.partial(_delivery, type),
        now=st.datetimes(_EARLIEST, _LATEST, timezones=st.just(UTC)),
        livemode=st.booleans(),
        # A patient without a phone neither falls silent nor is handed off.
        event=event_of(cause, ("phone", "dni") if cause == type else ("phone",)),
        source=st.sampled_from(get_args(sdk.EventSource)),
        opted_out=st.booleans(),
        days=st.integers(1, 30),
        reason=st.none() | st.text(min_size=1, max_size=LONGEST_TEXT),
    )


def _delivery(type: OutboundEventType, *, opted_out: bool, **drawn: Any) -> WebhookDelivery:
    """Let the mock send a webhook from a new organization, and return its delivery."""
    options = Options(start_time=drawn["now"], seed=int(digest_of(type, opted_out, drawn), 16))
    settings = {"livemode": drawn["livemode"], "activated_events": NOT_YET_SENT}
    subscribers = (_opt_out, *SUBSCRIBERS) if opted_out else SUBSCRIBERS
    tenant = Tenant(options.organization("org_strategies", **settings), (), options, subscribers)
    with tenant.lock, tenant.caused_by(None):
        doctors.add_roster(tenant)
        webhook_endpoints.create(tenant, url="https://clinic.example/webhooks", enabled_events=[EVERY_TYPE])
        result = process(
            tenant, json.loads(sdk.Events.create.call((drawn["event"],), {}).content or ""), drawn["source"]
        )
        assert result.accepted, result.error
        match type:
            case "appointment.rescheduled":
                (booked,) = tenant.appointments
                appointments.update(tenant, booked, start_at=booked.start_at + timedelta(days=drawn["days"]))
            case "appointment.cancelled":
                appointments.cancel(tenant, *tenant.appointments, reason=drawn["reason"])
            case "conversation.handoff":
                patients.hand_off(tenant, [*tenant.patients][-1], reason=drawn["reason"])
            case "patient.silent":
                patients.fall_silent(tenant, [*tenant.patients][-1])
            case "intake.ready" | "webhook.ping":
                triggered_events.send(tenant, type, None)
        return [each for each in tenant.webhook_deliveries if each.event_type == type][-1]


def _opt_out(tenant: Tenant, event: DomainEvent) -> None:
    """Opt every patient out as soon as they exist."""
    if event.name == "patient" and event.patient is not None:
        patients.set_service_fields(tenant, event.patient, opted_out=True)
