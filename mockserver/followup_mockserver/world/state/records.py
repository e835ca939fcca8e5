"""Messages to patients and attempts to deliver webhooks, which are no resources of the API; copies of records."""

import copy
import functools
import itertools
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, timedelta
from types import NoneType
from typing import Any, Literal, TypeVar

import attrs

from followup import NOT_GIVEN, ResponseInfo, WebhookDelivery, WebhookEndpoint
from followup._for_mockserver import FrozenValue, format_timestamp

MESSAGE_PREFIX = "msg_"


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Message(FrozenValue):
    """A message that the service sent to a patient. Its ``repr`` shows neither phone nor text.

    Attributes:
        id: id of the message.
        patient: id of the patient; None for a contact of an intake request that has no patient yet.
        kind: ``reminder``, ``post_visit`` or ``intake``.
        about: id of the object that caused it.
    """

    id: str
    patient: str | None
    phone: str = attrs.field(repr=False)
    kind: str
    text: str = attrs.field(repr=False)
    sent_at: datetime = attrs.field(repr=format_timestamp)
    about: str


LONGEST_RESPONSE_BODY = 4_096
"""Bytes that are kept of the body of a receiver's response."""


def _beginning_of_body(body: bytes) -> bytes:
    return body[:LONGEST_RESPONSE_BODY]


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ReceiverResponse(FrozenValue):
    """The response of a receiver to an attempt: its head, and the beginning of its body. Its ``repr`` shows neither.

    Attributes:
        status_line: such as ``HTTP/1.1 500 Internal Server Error``.
        headers: values by names in lower case. Values of the same name are joined by a comma.
        body: at most the first 4 KiB.
        body_is_whole: whether ``body`` is the whole body.
    """

    status_line: str = attrs.field(repr=False)
    headers: Mapping[str, str] = attrs.field(repr=False)
    body: bytes = attrs.field(repr=lambda body: f"<{len(body)} bytes>", converter=_beginning_of_body)
    body_is_whole: bool


def joined_headers(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return headers by names in lower case; values of the same name are joined by a comma."""
    headers: dict[str, str] = {}
    for name, value in pairs:
        name = name.lower()
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Attempt(FrozenValue):
    """One attempt to deliver a webhook. Its ``repr`` omits the details of the request.

    Attributes:
        delivery: id of the delivery.
        webhook_endpoint: id of the endpoint.
        number: 1 for the first.
        at: when it was made, by the mock's clock.
        trigger: ``schedule``, ``manual`` for a manual retry, or ``disturbance`` for the repetition that a webhook fault
            of kind ``duplicate`` causes.
        status_code: HTTP status of the response; None if there was no response.
        seconds: how long it took, in real time.
        error: the reason for the failure; None if it succeeded.
        timestamp: the timestamp header of the webhook: the real time of sending, in seconds since the epoch.
        signature: the signature header of the webhook.
        traceback: the traceback of the exception that a mounted receiver raised; None if it raised none.
        response: the response of the receiver; None if there was none in time.
    """

    delivery: str
    webhook_endpoint: str = attrs.field(repr=False)
    event_type: str
    number: int
    at: datetime = attrs.field(repr=format_timestamp)
    trigger: str
    status_code: int | None
    seconds: float = attrs.field(repr=False)
    error: str | None
    timestamp: int = attrs.field(repr=False)
    signature: str = attrs.field(repr=False)
    traceback: str | None = attrs.field(default=None, repr=False)
    response: ReceiverResponse | None = attrs.field(default=None, repr=False)


Trigger = Literal["schedule", "manual", "disturbance"]


@attrs.define(kw_only=True, eq=False, repr=False)
class AttemptInProgress:
    """An attempt that has been taken from the scheduler, or started as a manual retry, and has not ended.

    It may wait for a worker; its content is determined when it begins. A snapshot is taken as if it had not begun.

    Attributes:
        delivery: the delivery.
        endpoint: the endpoint of the delivery.
        trigger: as in ``Attempt``.
        cause: id of the job or the control call that makes it.
        counted: whether the delivery counts it already.
    """

    delivery: WebhookDelivery = attrs.field(repr=False)
    endpoint: WebhookEndpoint = attrs.field(repr=False)
    trigger: Trigger
    cause: str | None
    counted: bool = False


class Attempts:
    """The attempts of an organization's deliveries."""

    def __init__(self) -> None:
        self._by_delivery: dict[str, list[Attempt]] = {}

    def add(self, attempt: Attempt) -> None:
        """Record an attempt."""
        self._by_delivery.setdefault(attempt.delivery, []).append(attempt)

    def of(self, delivery: str) -> list[Attempt]:
        """Return the attempts of a delivery, oldest first."""
        return list(self._by_delivery.get(delivery, ()))

    def remove(self, delivery: str) -> None:
        """Remove the attempts of a delivery."""
        self._by_delivery.pop(delivery, None)

    def copy(self) -> "Attempts":
        """Return an independent copy."""
        twin = Attempts()
        twin._by_delivery = {delivery: list(attempts) for delivery, attempts in self._by_delivery.items()}
        return twin

    def __iter__(self) -> Iterator[Attempt]:
        """Iterate over all attempts, delivery by delivery."""
        return itertools.chain.from_iterable(self._by_delivery.values())


T = TypeVar("T")

_IMMUTABLE = frozenset({str, bytes, int, float, bool, NoneType, datetime, date, timedelta, ResponseInfo})


def copied(value: T) -> T:
    """Return a copy of a record, a list or a mapping, and of everything mutable in it.

    ``copy.deepcopy`` does the same and takes several times as long, because it handles objects that contain themselves.
    """
    kind = type(value)
    return value if kind in _IMMUTABLE else _copied(value, kind)


def _copied(value: Any, kind: Any) -> Any:
    # The class of each item is tested here too: a call for every text and number would double the time.
    if kind is dict:
        return {
            name: each if (inner := type(each)) in _IMMUTABLE else _copied(each, inner) for name, each in value.items()
        }
    if kind is list:
        return [each if (inner := type(each)) in _IMMUTABLE else _copied(each, inner) for each in value]
    names = _names(kind)
    if not names:
        return value
    result = copy.copy(value)
    for name in names:
        each = getattr(value, name)
        inner = type(each)
        if inner not in _IMMUTABLE:
            # Not ``setattr``, which frozen classes reject.
            object.__setattr__(result, name, _copied(each, inner))
    return result


@functools.cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in attrs.fields(kind)) if attrs.has(kind) else ()


def passed(**arguments: Any) -> dict[str, Any]:
    """Return copies of the arguments that were not omitted."""
    return {name: copied(value) for name, value in arguments.items() if value is not NOT_GIVEN}
