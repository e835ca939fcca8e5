"""The messages between a clinic and the service: arguments of the 32 operations, inbound events, and webhooks.

The functions of ``followup.inbound`` build the events, and the rules of the mock make the webhooks.
"""

import functools
import hashlib
import inspect
import json
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, timedelta, timezone
from types import MappingProxyType
from typing import Any, cast, get_args

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from followup import DoctorInput, EventInput, PatientInput, WebhookDelivery, inbound
from followup import _for_mockserver as sdk
from followup._for_mockserver import OutboundEventType
from followup_mockserver.deliveries import EVERY_TYPE, OUTBOUND_TYPES, body_of, headers_of
from followup_mockserver.gateway.operations import OPERATIONS
from followup_mockserver.rules import appointments, doctors, patients, triggered_events, webhook_endpoints
from followup_mockserver.rules.events import process
from followup_mockserver.rules.patients import IN_EVENTS
from followup_mockserver.service import SUBSCRIBERS
from followup_mockserver.world.settings import NOT_YET_SENT, Options
from followup_mockserver.world.state.collection import ALPHABET
from followup_mockserver.world.state.tenant import DomainEvent, Tenant

Values = SearchStrategy[Any]
Fields = Mapping[str, sdk.Kinds]
"""The kinds of values of parameters, or of the keys of a dict, by name."""

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
            because all other objects that it refers to exist. None: the objects need not exist.
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
_LONGEST_TEXT = 40

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
        reason=st.none() | st.text(min_size=1, max_size=_LONGEST_TEXT),
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


# --- values, derived from the annotations of the SDK's declarations ---------------------------------------------------

NOTHING: Mapping[str, Values] = MappingProxyType({})

_CURSORS = ("starting_after", "ending_before")
_MOST_ITEMS = 4

_PHONES = ("+54 9 11 5555-{:04}", "+549115555{:04}", "+1 (202) 555-01{:02}", "+120255501{:02}", "+44 7700 900{:03}")
"""With a country code: without one, a number would be valid or not depending on the organization's country."""

_DOCUMENTS = st.integers(1_000_000, 99_999_999)
_TEXTS: Mapping[str, SearchStrategy[str]] = {
    "phone": st.builds(str.format, st.sampled_from(_PHONES), st.integers(0, 99)),
    "dni": _DOCUMENTS.map(str) | _DOCUMENTS.map(lambda each: f"{each:,}".replace(",", ".")),
}
"""Phones and documents by the name of their parameter, because they have rules that their annotation lacks."""

_HOST = r"(clinic|patient|correo)\.example"
_FORMATS: Mapping[str, SearchStrategy[str]] = {
    "email": st.from_regex(rf"[a-z0-9]{{1,12}}@{_HOST}", fullmatch=True),
    "https-url": st.from_regex(rf"https://{_HOST}(:[1-9][0-9]{{0,3}})?(/[a-z0-9]{{1,12}}){{0,3}}", fullmatch=True),
}
"""Their hosts can belong to nobody (RFC 2606), so that nothing that a test generates reaches a person."""

_ZONES = (
    UTC,
    *map(sdk.zone_of, ("America/Argentina/Buenos_Aires", "America/Sao_Paulo", "Europe/Madrid", "Asia/Kathmandu")),
)
_MOST_MINUTES = 14 * 60
"""The largest offset of a time zone that is in use."""

_FIRST, _LAST = datetime(1900, 1, 2), datetime(2099, 12, 30)  # noqa: DTZ001 - the strategies add the time zone


def arguments(
    kinds: Fields,
    required: Iterable[str],
    one_of: Mapping[str, tuple[str, ...]],
    *,
    nullable: bool = True,
    replaced: Mapping[str, Values] = NOTHING,
) -> SearchStrategy[dict[str, Any]]:
    """Return keyword arguments of a function; most parameters are those of ``dictionary``.

    Args:
        kinds: the kinds of its parameters.
        required: names of the required ones.
        one_of: the parameters of which at least one is needed, with at least one of these keys.
        nullable: whether others may be None.
        replaced: values to use instead of those of the kinds.
    """
    if not one_of:
        return dictionary(kinds, required, nullable=nullable, replaced=replaced).map(_with_one_cursor)
    sufficient = {name: _with_one(kinds[name], keys) for name, keys in one_of.items()}
    return st.one_of(
        [dictionary(kinds, [name], replaced={name: each, **replaced}) for name, each in sufficient.items()]
    )


def _with_one(kinds: sdk.Kinds, keys: tuple[str, ...]) -> Values:
    """Return the input dicts, or lists of them, in which one has at least one of these keys."""
    (declared,) = kinds.inputs
    one = identified(declared, keys)
    if (items := kinds.any_of[0].items) is None:
        return one
    return st.builds(lambda first, rest: [first, *rest], one, st.lists(value_of(items), max_size=2))


def digest_of(*parts: object) -> str:
    """Return a digest that equal arguments share.

    An idempotency key, or the id of an event, that ends with the digest of the arguments beside it never belongs to two
    different requests, whatever Hypothesis varies: the service would reject or ignore the second.
    """
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:24]


def _with_one_cursor(drawn: dict[str, Any]) -> dict[str, Any]:
    after, before = _CURSORS
    if drawn.get(after) is not None and drawn.get(before) is not None:
        del drawn[before]
    return drawn


def value_of(kinds: sdk.Kinds, name: str = "") -> Values:
    """Return valid values of these kinds, other than None, for a parameter or key of this name."""
    return st.one_of([_values_of(each, name) for each in kinds.intended])


def _values_of(kind: sdk.Kind, name: str) -> Values:
    match kind.form:
        case "choice":
            return st.sampled_from(kind.values)
        case "input":
            # A reference to a patient needs a field by which the service finds or creates them.
            return identified(PatientInput, IN_EVENTS) if kind.type is PatientInput else input_dict(kind.type)
        case "mapping":
            return json_objects()
        case "list" if kind.items is not None:
            return _sequence(value_of(kind.items), kind.marks)
    if kind.type is str:
        return _TEXTS[name] if name in _TEXTS else _text(kind.marks)
    return _integer(kind.marks) if kind.type is int else _SCALARS[kind.type]()


def dictionary(
    kinds: Fields, required: Iterable[str], *, nullable: bool = True, replaced: Mapping[str, Values] = NOTHING
) -> SearchStrategy[dict[str, Any]]:
    """Return dicts with values of these kinds.

    Args:
        kinds: the kinds.
        required: names of the keys that are present, and not None.
        nullable: whether every other key may be None, which means that it is omitted; if not, only those whose kinds
            include None, which then has a meaning.
        replaced: values to use instead of those of the kinds.
    """
    values = {name: replaced[name] if name in replaced else value_of(each, name) for name, each in kinds.items()}
    always = {name: values.pop(name) for name in required}
    optional = {name: st.none() | each if nullable or kinds[name].nullable else each for name, each in values.items()}
    return st.fixed_dictionaries(always, optional=optional)


@functools.cache
def input_dict(declared: Any, *required: str) -> SearchStrategy[dict[str, Any]]:
    """Return dicts of the declared ``TypedDict``, in which these keys are present as well."""
    kinds = sdk.kinds_in(declared)
    return dictionary(kinds, {name: None for name, each in kinds.items() if each.required} | dict.fromkeys(required))


@functools.cache
def identified(declared: Any, names: tuple[str, ...]) -> SearchStrategy[dict[str, Any]]:
    """Return dicts of the declared ``TypedDict`` with at least one of these keys."""
    return st.one_of([input_dict(declared, name) for name in names])


@functools.cache
def json_objects() -> SearchStrategy[dict[str, Any]]:
    """Return JSON objects."""
    numbers = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
    values: Values = st.recursive(
        st.none() | st.booleans() | numbers | st.text(max_size=_LONGEST_TEXT),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=3),
        max_leaves=5,
    )
    return st.dictionaries(st.text(max_size=12), values, max_size=3)


def _days() -> Values:
    days = st.dates(_FIRST.date(), _LAST.date())
    return days | days.map(date.isoformat)


def _sequence(items: Values, marks: Iterable[object]) -> Values:
    least, most = 0, _MOST_ITEMS
    for mark in marks:
        match mark:
            case sdk.MinItems(items=number):
                least = number
            case sdk.Limits(minimum=least, maximum=most):
                pass
    lists = st.lists(items, min_size=least, max_size=most)
    return lists | lists.map(tuple)


def _text(marks: Iterable[object]) -> SearchStrategy[str]:
    least = 0
    for mark in marks:
        match mark:
            case sdk.IdPrefix(prefix=prefix):
                return st.text(ALPHABET, min_size=1, max_size=24).map(prefix.__add__)
            case sdk.Format(name=name):
                return _FORMATS[name]
            case sdk.MinLength(characters=number):
                least = number
    return st.text(min_size=least, max_size=_LONGEST_TEXT)


def _integer(marks: Iterable[object]) -> SearchStrategy[int]:
    for mark in marks:
        match mark:
            case sdk.Limits(minimum=least, maximum=most):
                return st.integers(least, most)
            case sdk.Constant(value=value):
                return st.just(value)
    return st.integers(0, 2**31)


@functools.cache
def _times() -> Values:
    """Return datetimes in several time zones, with historical offsets and gaps, and RFC 3339 timestamps."""
    fixed = st.integers(-_MOST_MINUTES, _MOST_MINUTES).map(lambda each: timezone(timedelta(minutes=each)))
    texts = st.datetimes(_FIRST, _LAST, timezones=st.just(UTC) | fixed).map(datetime.isoformat)
    with_z = texts.map(lambda text: text.replace("+00:00", "Z"))
    return st.datetimes(_FIRST, _LAST, timezones=st.sampled_from(_ZONES) | fixed) | texts | with_z


_SCALARS: Mapping[Any, Callable[[], Values]] = {bool: st.booleans, datetime: _times, date: _days}
