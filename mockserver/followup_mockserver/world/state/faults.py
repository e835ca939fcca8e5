"""Fault injection: planned failures of calls and of single inbound events, and of webhook deliveries."""

import random
import secrets
from collections.abc import Callable, Iterable
from typing import Any, Generic, Literal, TypeVar, get_args

import attrs

from followup._for_mockserver import EventType, ServiceEventType, Value
from followup_mockserver.world.schema import errors as checks
from followup_mockserver.world.schema.errors import InvalidArgument, optional
from followup_mockserver.world.state.records import copied

FaultKind = Literal["status", "delay", "disconnect", "truncate", "event"]
FaultMoment = Literal["before", "after"]

FAULT_PREFIX = "flt_"

EVERY_OPERATION = "*"

OPERATION_OF_EVENTS = "events.create"
"""The only operation whose faults can be of kind ``event``."""

INJECTED = "This error was injected by a fault."

LONGEST_FAULT = 24 * 3600
"""The longest delay, and the longest ``Retry-After``, of a fault, in seconds."""

_seconds = checks.number(0, LONGEST_FAULT, unit="seconds")


# Validated when it is created, but not while ``times`` counts down to 0.
@attrs.define(kw_only=True, eq=False, repr=False, on_setattr=attrs.setters.NO_OP)
class Fault(Value):
    """A planned failure of calls.

    Attributes:
        id: id of the fault; empty until it is added.
        operation: name of the operation, or ``*`` for all.
        kind: ``status`` responds with an error, and ``delay`` responds late. ``disconnect`` drops the connection
            without a response, ``truncate`` in the middle of it. ``event`` lets single events of a batch end
            ``failed`` (operation ``events.create`` only).
        status: HTTP status, for kind ``status``.
        seconds: length of the delay, for kind ``delay``.
        times: number of calls, or of events, that the fault still applies to; null for all.
        when: whether the call fails ``before`` the operation is carried out, or ``after``.
        skip: number of calls, or of events, that the fault still lets pass first.
        probability: probability of applying to a call, or to an event, 0 to 1.
        retry_after: seconds in the ``Retry-After`` header, for kind ``status``.
        optional: whether the test may end without a match.
        matched: number of calls, or of events, that the fault has applied to.
        skipped: number of calls, or of events, that the fault has let pass because of ``skip``.

    Raises:
        ValueError: an invalid argument; the message names it.
    """

    id: str = ""
    operation: str
    kind: FaultKind = checks.field(checks.one_of(get_args(FaultKind)))
    status: int = checks.field(checks.integer(400, 599, "an HTTP status from 400 to 599"), 500)
    seconds: float = checks.field(_seconds, 0.0)
    times: int | None = checks.field(optional(checks.integer(1, expected="1 or more, or null for all calls")), 1)
    when: FaultMoment = checks.field(checks.one_of(get_args(FaultMoment)), "before")
    skip: int = checks.field(checks.integer(0), 0)
    probability: float = checks.field(checks.number(0, 1), 1.0)
    retry_after: float | None = checks.field(optional(_seconds), None)
    optional: bool = checks.field(checks.boolean, False)
    matched: int = checks.field(checks.integer(0), 0)
    skipped: int = checks.field(checks.integer(0), 0)

    def __attrs_post_init__(self) -> None:
        if self.kind == "delay" and self.seconds == 0:
            expected = f"more than 0 and at most {LONGEST_FAULT} seconds for a fault of kind delay"
            raise InvalidArgument("seconds", expected)
        if self.kind == "event" and self.operation != OPERATION_OF_EVENTS:
            raise InvalidArgument("operation", f"{OPERATION_OF_EVENTS} for a fault of kind event")
        if self.kind == "event" and self.when != "before":
            raise InvalidArgument("when", "before for a fault of kind event")


LONGEST_WEBHOOK_FAULT = 30 * 24 * 3600
"""The longest delay, and the greatest age of a signature, in seconds."""

WebhookFaultKind = Literal["duplicate", "reorder", "late", "wrong_signature", "old_signature"]

_TYPES = (*get_args(EventType), *get_args(ServiceEventType))


# Validated when it is created, but not while ``times`` counts down to 0.
@attrs.define(kw_only=True, eq=False, repr=False, on_setattr=attrs.setters.NO_OP)
class WebhookFault(Value):
    """A planned failure of webhook deliveries.

    Attributes:
        id: id of the fault; empty until it is added.
        kind: ``duplicate`` sends the first attempt twice, and ignores the response to the repetition. ``reorder`` holds
            the delivery until the next one to the same endpoint has been sent. ``late`` delays the first attempt.
            ``wrong_signature`` and ``old_signature`` give the first attempt an invalid or an expired signature; later
            ones are valid.
        type: event type of the deliveries that the fault applies to; by default any.
        times: number of deliveries that the fault still applies to.
        seconds: the delay for ``late``, the longest delay for ``reorder``, the age of the signature for
            ``old_signature``.
        optional: whether the test may end without a match.
        matched: number of deliveries that the fault has applied to.

    Raises:
        ValueError: an invalid argument; the message names it.
    """

    id: str = ""
    kind: WebhookFaultKind = checks.field(checks.one_of(get_args(WebhookFaultKind)))
    type: str | None = checks.field(optional(checks.one_of(_TYPES)), None)
    times: int = checks.field(checks.integer(1), 1)
    seconds: float = checks.field(checks.number(0, LONGEST_WEBHOOK_FAULT, unit="seconds"), 600.0)
    optional: bool = checks.field(checks.boolean, False)
    matched: int = checks.field(checks.integer(0), 0)


F = TypeVar("F", Fault, WebhookFault)


@attrs.define(kw_only=True, eq=False, repr=False)
class _Planned(Generic[F]):
    """Faults that still apply to future calls or deliveries.

    Attributes:
        pending: the faults, oldest first.
    """

    pending: list[F] = attrs.field(factory=list)

    def remove(self, id: str) -> F | None:
        """Remove a fault, and return it; None if there is none with this id."""
        found = next((each for each in self.pending if each.id == id), None)
        if found is not None:
            self.pending.remove(found)
        return found

    def unused(self) -> list[F]:
        """Return the faults that have matched nothing, except optional ones."""
        return [copied(each) for each in self.pending if not (each.matched or each.optional)]

    def _count(self, fault: F) -> None:
        fault.matched += 1
        if fault.times is not None:
            fault.times -= 1
            if fault.times <= 0:
                self.pending.remove(fault)


def _random_if_none(seed: int | None) -> int:
    return secrets.randbits(64) if seed is None else seed


@attrs.define(kw_only=True, eq=False, repr=False)
class Faults(_Planned[Fault]):
    """The faults of one organization.

    Attributes:
        seed: seed of the random numbers for ``probability``, a whole number of any size; None: a random one.
        draws: how many random numbers have been drawn.
    """

    seed: Any = attrs.field(converter=_random_if_none, validator=checks.validator(checks.integer()))
    draws: int = 0
    pending: list[Fault] = attrs.field(factory=list)

    def unused(self) -> list[Fault]:
        """Return the faults that have matched nothing, except optional ones and those that depend on chance."""
        return [each for each in super().unused() if each.probability >= 1]

    def match(self, operation: str) -> Fault | None:
        """Return the fault that applies to a call of this operation, if any, and count the call."""
        operations = (operation, EVERY_OPERATION)
        return self._match(lambda fault: fault.kind != "event" and fault.operation in operations)

    def match_event(self) -> Fault | None:
        """Return the fault that applies to the next event of a batch, if any, and count the event."""
        return self._match(lambda fault: fault.kind == "event")

    def _match(self, concerns: Callable[[Fault], bool]) -> Fault | None:
        for fault in self.pending:
            if not concerns(fault):
                continue
            if fault.skip > 0:
                fault.skip -= 1
                fault.skipped += 1
            elif fault.probability >= 1 or self._draw() < fault.probability:
                self._count(fault)
                return fault
        return None

    def _draw(self) -> float:
        """Return the next random number, 0 to 1."""
        self.draws += 1
        # Made anew from seed and count, so that a snapshot can continue the sequence. Python keeps what ``random``
        # returns for a seed between versions.
        return random.Random(f"{self.seed}/{self.draws}").random()  # noqa: S311 - a test, no secret


@attrs.define(kw_only=True, eq=False, repr=False)
class WebhookFaults(_Planned[WebhookFault]):
    """The webhook faults of one organization, and the deliveries that they apply to.

    Attributes:
        applied: the webhook fault that applies to a delivery, by delivery id.
        held_by_endpoint: id of the delivery that is held until a later one to the endpoint has been sent, by endpoint
            id.
        held_by_overtaker: id of the delivery that is held, by the id of the later delivery, once that is queued.
    """

    pending: list[WebhookFault] = attrs.field(factory=list)
    applied: dict[str, WebhookFault] = attrs.field(factory=dict)
    held_by_endpoint: dict[str, str] = attrs.field(factory=dict)
    held_by_overtaker: dict[str, str] = attrs.field(factory=dict)

    def match(self, delivery: str, event_type: str) -> WebhookFault | None:
        """Return the webhook fault that applies to a new delivery, if any, and count the delivery."""
        for fault in self.pending:
            if fault.type in (None, event_type):
                # As it is now: the fault counts down, and may apply to other deliveries.
                self.applied[delivery] = copied(fault)
                self._count(fault)
                return fault
        return None

    def overtake(self, endpoint: str, delivery: str) -> None:
        """Record that a new delivery will be sent before the one that is held for its endpoint, if any."""
        held = self.held_by_endpoint.pop(endpoint, None)
        if held is not None:
            self.held_by_overtaker[delivery] = held


WSGIApp = Callable[[dict[str, Any], Any], Iterable[bytes]]


class ConnectionDropped(ConnectionError):
    """Raised by the application to drop the connection without the rest of the response, as a fault requires."""


class ResponseTooLate(ConnectionDropped):
    """Raised by the application when the client has left, or stopped waiting in virtual time, before the response."""


READ_TIMEOUT = "followup_mockserver.read_timeout"
"""Key of the WSGI environment: after how many seconds the client stops waiting for a response; absent: never."""

CLIENT_HAS_LEFT = "followup_mockserver.client_has_left"
"""Key of the WSGI environment: a function that returns whether the client has closed the connection; absent: never."""
