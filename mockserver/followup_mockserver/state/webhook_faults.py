"""Fault injection for webhooks: deliveries that arrive late, twice, out of order, or with an invalid signature."""

from typing import Literal, get_args

import attrs

from followup._for_mockserver import EventType, ServiceEventType
from followup_mockserver.schema.checks import boolean, field, integer, number, one_of, optional
from followup_mockserver.state.copies import copied

LONGEST_WEBHOOK_FAULT = 30 * 24 * 3600
"""The longest delay, and the greatest age of a signature, in seconds."""

WebhookFaultKind = Literal["duplicate", "reorder", "late", "wrong_signature", "old_signature"]

_TYPES = (*get_args(EventType), *get_args(ServiceEventType))


# Validated when it is created, but not while ``times`` counts down to 0.
@attrs.define(kw_only=True, on_setattr=attrs.setters.NO_OP)
class WebhookFault:
    """A planned failure of webhook deliveries.

    Attributes:
        id: id of the fault; empty until it is added.
        kind: ``duplicate``: the first attempt is sent twice, and the response to the repetition is ignored;
            ``reorder``: the delivery is held until the next one to the same endpoint has been sent; ``late``: the first
            attempt is delayed; ``wrong_signature``, ``old_signature``: the first attempt has an invalid or an expired
            signature, and later ones a valid signature.
        type: event type of the deliveries that the fault applies to; None for any.
        times: number of deliveries that the fault still applies to.
        seconds: the delay for ``late``, the longest delay for ``reorder``, the age of the signature for
            ``old_signature``.
        optional: whether the test may end without a match.
        matched: number of deliveries that the fault has applied to.

    Raises:
        ValueError: an invalid argument; the message names it.
    """

    id: str = ""
    kind: WebhookFaultKind = field(one_of(get_args(WebhookFaultKind)))
    type: str | None = field(optional(one_of(_TYPES)), None)
    times: int = field(integer(1), 1)
    seconds: float = field(number(0, LONGEST_WEBHOOK_FAULT, unit="seconds"), 600.0)
    optional: bool = field(boolean, False)
    matched: int = field(integer(0), 0)


class WebhookFaults:
    """The webhook faults of one organization, and the deliveries that they apply to.

    Attributes:
        applied: the webhook fault that applies to a delivery, by delivery id.
        held_by_endpoint: id of the delivery that is held until a later one to the endpoint has been sent, by endpoint
            id.
        held_by_overtaker: id of the delivery that is held, by the id of the later delivery, once that is queued.
    """

    def __init__(self) -> None:
        self._pending: list[WebhookFault] = []
        self.applied: dict[str, WebhookFault] = {}
        self.held_by_endpoint: dict[str, str] = {}
        self.held_by_overtaker: dict[str, str] = {}

    def copy(self) -> "WebhookFaults":
        """Return independent webhook faults, which apply to the same deliveries from now on."""
        twin = WebhookFaults()
        twin._pending = copied(self._pending)
        twin.applied = copied(self.applied)
        twin.held_by_endpoint = self.held_by_endpoint.copy()
        twin.held_by_overtaker = self.held_by_overtaker.copy()
        return twin

    def __len__(self) -> int:
        return len(self._pending)

    def add(self, fault: WebhookFault) -> None:
        """Add a webhook fault."""
        self._pending.append(fault)

    def clear(self) -> None:
        """Remove the webhook faults that apply to future deliveries."""
        self._pending.clear()

    def remove(self, id: str) -> WebhookFault | None:
        """Remove a webhook fault, and return it; None if there is none with this id."""
        found = next((each for each in self._pending if each.id == id), None)
        if found is not None:
            self._pending.remove(found)
        return found

    def all(self) -> list[WebhookFault]:
        """Return the webhook faults that apply to future deliveries, oldest first."""
        return list(self._pending)

    def unused(self) -> list[WebhookFault]:
        """Return the webhook faults that have matched no delivery, except optional ones."""
        return [copied(each) for each in self._pending if not (each.matched or each.optional)]

    def match(self, delivery: str, event_type: str) -> WebhookFault | None:
        """Return the webhook fault that applies to a new delivery, if any, and count the delivery."""
        for fault in self._pending:
            if fault.type in (None, event_type):
                fault.matched += 1
                fault.times -= 1
                if fault.times <= 0:
                    self._pending.remove(fault)
                self.applied[delivery] = fault
                return fault
        return None

    def of(self, delivery: str) -> WebhookFault | None:
        """Return the webhook fault that applies to a delivery; None if there is none."""
        return self.applied.get(delivery)

    def hold(self, endpoint: str, delivery: str) -> None:
        """Hold a delivery until the next one to its endpoint has been sent."""
        self.held_by_endpoint[endpoint] = delivery

    def overtake(self, endpoint: str, delivery: str) -> None:
        """Record that a new delivery will be sent before the one that is held for its endpoint, if any."""
        held = self.held_by_endpoint.pop(endpoint, None)
        if held is not None:
            self.held_by_overtaker[delivery] = held

    def release(self, overtaker: str) -> str | None:
        """Release the delivery that is held until ``overtaker`` has been sent, and return its id, if any."""
        return self.held_by_overtaker.pop(overtaker, None)
