"""The event of a webhook (specification, section 6.2, Request body).

It is an attrs class for those who ask (``attrs.fields``, ``attrs.evolve``), but is made, compared and shown without
attrs, so that a receiver of webhooks needs the standard library alone.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeAlias, TypeVar, overload, runtime_checkable

import followup
from followup._core.codec.wire import WireError, parse_timestamp, short
from followup._core.plain import Late

if TYPE_CHECKING:
    from followup._core import api_rules as rules
    from followup._core.results import Model

    M = TypeVar("M", bound=Model)
else:
    rules = Late("followup._core.api_rules")

_Record: TypeAlias = "followup.Patient | followup.Doctor | followup.Appointment | followup.Visit | followup.Treatment"
_Message: TypeAlias = "followup.IntakeRequest | followup.Event | followup.WebhookEndpoint | followup.WebhookDelivery"
Retrieved: TypeAlias = "_Record | _Message"


@runtime_checkable
class Headers(Protocol):
    """The headers of a request in any framework: a dict, or an object with the ``items()`` method of a dict."""

    def items(self) -> Iterable[tuple[Any, Any]]:
        """Return pairs of header name and value."""
        ...


class _Fields:
    """The fields of the event for attrs, made when something asks for them."""

    def __get__(self, instance: object, owner: type) -> Any:
        import attrs

        from followup._core.results import personal

        options = {"object": attrs.field(default="event"), "data": personal(), "extra": personal(attrs.Factory(dict))}
        fields = {name: options.get(name) or attrs.field() for name in ("extra", *_WIRE_NAMES)}
        made = attrs.make_class(owner.__name__, fields, kw_only=True)
        owner.__attrs_attrs__ = attrs.fields(made)  # type: ignore[attr-defined]
        return owner.__attrs_attrs__  # type: ignore[attr-defined]


class WebhookEvent:
    """The event that a webhook delivers (specification, section 6.2, Request body). ``repr`` does not show its data.

    The same event may be delivered twice, and events may be delivered out of order: deduplicate by ``id``, and order by
    ``occurred_at``.

    Attributes:
        id: id of the delivery, the same in every attempt.
        object: ``event``.
        type: one of the outbound event types, such as ``appointment.created``.
        api_version: dated version of the body.
        livemode: true in production, false in the test environment.
        occurred_at: time at which the event happened.
        ref: id of the object that triggered the event.
        data: data of the event with camelCase keys, as it was received.
        extra: fields that this version of the package does not know, by JSON name.
    """

    __slots__ = (
        "__weakref__", "api_version", "data", "extra", "id", "livemode", "object", "occurred_at", "ref", "type",
    )  # fmt: skip
    __attrs_attrs__: ClassVar[Any] = _Fields()

    id: rules.WebhookDeliveryId
    object: Literal["event"]
    type: rules.OutboundEventType
    api_version: str
    livemode: bool
    occurred_at: datetime
    ref: str
    data: Mapping[str, Any]
    extra: Mapping[str, Any]

    def __init__(
        self,
        *,
        id: rules.WebhookDeliveryId,
        object: Literal["event"] = "event",
        type: rules.OutboundEventType,
        api_version: str,
        livemode: bool,
        occurred_at: datetime,
        ref: str,
        data: Mapping[str, Any],
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        self.id = id
        self.object = object
        self.type = type
        self.api_version = api_version
        self.livemode = livemode
        self.occurred_at = occurred_at
        self.ref = ref
        self.data = data
        self.extra = {} if extra is None else extra

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, WebhookEvent):
            return NotImplemented
        return all(getattr(self, each) == getattr(other, each) for each in ("extra", *_WIRE_NAMES))

    def __repr__(self) -> str:
        names = [name for name in _WIRE_NAMES if name not in ("object", "data")]
        return f"WebhookEvent({', '.join(f'{name}={short(getattr(self, name))}' for name in names)})"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dict of their own, with snake_case keys and Python values.

        Objects and lists within are dicts and lists, the time is an aware ``datetime``. Fields that this version of the
        package does not know have their JSON names, unless a known field has the name.
        """
        from followup._core.results import Model

        return Model.to_dict(self)  # type: ignore[arg-type]

    def to_json(self) -> str:
        """Return the event as JSON text, as on the wire: camelCase names, the time as an ISO 8601 string.

        Fields that this version of the package does not know are included.
        """
        from followup._core.results import Model

        return Model.to_json(self)  # type: ignore[arg-type]

    @property
    def patient(self) -> followup.Patient | None:
        """The patient in the data, as of the event; None if the data has none, or only part of one."""
        return _decoded(self.data, "patient", followup.Patient)

    @property
    def appointment(self) -> followup.Appointment | None:
        """The appointment in the data, as of the event; None if the data has none, or only part of one."""
        return _decoded(self.data, "appointment", followup.Appointment)

    @property
    def visit(self) -> followup.Visit | None:
        """The visit in the data, as of the event; None if the data has none, or only part of one."""
        return _decoded(self.data, "visit", followup.Visit)

    @property
    def treatment(self) -> followup.Treatment | None:
        """The treatment in the data, as of the event; None if the data has none, or only part of one."""
        return _decoded(self.data, "treatment", followup.Treatment)

    @property
    def intake_request(self) -> followup.IntakeRequest | None:
        """The intake request in the data, as of the event; None if the data has none, or only part of one."""
        return _decoded(self.data, "intakeRequest", followup.IntakeRequest)

    @overload
    def retrieve(self, client: followup.FollowUp) -> Retrieved: ...
    @overload
    def retrieve(self, client: followup.AsyncFollowUp) -> Coroutine[Any, Any, Retrieved]: ...
    def retrieve(self, client: followup.FollowUp | followup.AsyncFollowUp) -> Any:
        """Retrieve the object that ``ref`` names as it is now, which may be newer than the event.

        Args:
            client: the client to call the service with; an ``AsyncFollowUp`` returns an awaitable.

        Returns:
            The object, of the class that belongs to the prefix of ``ref``: an ``Appointment`` for ``apt_``.

        Raises:
            ValueError: ``ref`` is not the id of an object that can be retrieved.
            NotFoundError: the object does not exist any more.
        """
        from followup._core.operations import declarations_of, group_name
        from followup.resources import all_groups

        for group in all_groups():
            name = group_name(group)
            operation = declarations_of(group).get(f"{name}.retrieve")
            if operation and operation.id_prefix and self.ref.startswith(operation.id_prefix.prefix):
                return getattr(client, name).retrieve(self.ref)
        raise ValueError("ref is not the id of an object that can be retrieved")


def _decoded(data: Mapping[str, Any], key: str, cls: type[M]) -> M | None:
    from followup._core.codec.decode import decode

    try:
        return decode(cls, data.get(key))
    except WireError:
        return None


_JSON_TYPES = {str: "a string", bool: "a boolean", dict: "an object"}
_WIRE_NAMES = {
    "id": ("id", str),
    "object": ("object", str),
    "type": ("type", str),
    "api_version": ("apiVersion", str),
    "livemode": ("livemode", bool),
    "occurred_at": ("occurredAt", str),
    "ref": ("ref", str),
    "data": ("data", dict),
}
"""The JSON name and type of each field, in the order of the specification."""


def decode_event(raw: Any) -> WebhookEvent:
    """Decode the parsed JSON of a webhook's body.

    Raises:
        WireError: it is not an event; its path names the field.
    """
    if raw.__class__ is not dict:
        raise WireError("", "is not an object")
    others = dict(raw)
    fields: dict[str, Any] = {}
    for name, (wire_name, kind) in _WIRE_NAMES.items():
        if wire_name in others:
            value = fields[name] = others.pop(wire_name)
            if value.__class__ is not kind:
                raise WireError(wire_name, f"is not {_JSON_TYPES[kind]}")
        elif name != "object":
            raise WireError(wire_name, "is missing")
    try:
        fields["occurred_at"] = parse_timestamp(fields["occurred_at"])
    except ValueError:
        fields["occurred_at"] = None
    if fields["occurred_at"] is None:  # raised outside the handler, because the original error holds the value
        raise WireError("occurredAt", "is not a timestamp")
    return WebhookEvent(**fields, extra=others)
