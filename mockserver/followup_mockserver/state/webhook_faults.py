"""Webhook faults: deliveries that fail as the specification warns, or as an attacker or a slow network makes them."""

from typing import Literal, get_args

import attrs

from followup._for_mockserver import EventType, ServiceEventType
from followup_mockserver.schema.checks import choice, field, number, optional, whole

LONGEST_WEBHOOK_FAULT = 30 * 24 * 3600
"""Seconds."""

WebhookFaultKind = Literal["duplicate", "reorder", "late", "wrong_signature", "old_signature"]

_TYPES = (*get_args(EventType), *get_args(ServiceEventType))


# Checked when it is made, and not as it counts down to its end.
@attrs.define(kw_only=True, on_setattr=attrs.setters.NO_OP)
class WebhookFault:
    """A webhook fault: how the next deliveries go wrong.

    Attributes:
        kind: ``duplicate``: the first attempt arrives twice, and the response to the repetition is ignored;
            ``reorder``: held until the next delivery to the same endpoint has been sent; ``late``: first sent after
            ``seconds``; ``wrong_signature``, ``old_signature``: the first attempt has an invalid or an expired
            signature, later ones a valid one.
        type: only deliveries of this event type; None for any.
        times: how many deliveries.
        seconds: how late; for ``reorder``, how long at most; for ``old_signature``, how old.

    Raises:
        ValueError: an invalid argument; the message names it.
    """

    kind: WebhookFaultKind = field(choice(get_args(WebhookFaultKind)))
    type: str | None = field(optional(choice(_TYPES)), None)
    times: int = field(whole(1), 1)
    seconds: float = field(number(0, LONGEST_WEBHOOK_FAULT, unit="seconds"), 600.0)


class WebhookFaults:
    """The webhook faults that wait for their deliveries, and those that apply to a delivery."""

    def __init__(self) -> None:
        self._waiting: list[WebhookFault] = []
        self._by_delivery: dict[str, WebhookFault] = {}
        self._held_by_endpoint: dict[str, str] = {}
        """Id of the delivery that is held until another one to the same webhook endpoint has overtaken it."""
        self._held_by_overtaker: dict[str, str] = {}
        """The same once the other delivery is queued, by that one's id."""

    def add(self, fault: WebhookFault) -> None:
        self._waiting.append(fault)

    def clear(self) -> None:
        """Remove those that still wait."""
        self._waiting.clear()

    def all(self) -> list[WebhookFault]:
        """Those that still wait, oldest first."""
        return list(self._waiting)

    def match(self, delivery: str, event_type: str) -> WebhookFault | None:
        """Return the webhook fault that applies to a new delivery, if any, and count it."""
        for fault in self._waiting:
            if fault.type in (None, event_type):
                fault.times -= 1
                if fault.times <= 0:
                    self._waiting.remove(fault)
                self._by_delivery[delivery] = fault
                return fault
        return None

    def of(self, delivery: str) -> WebhookFault | None:
        """The webhook fault that applies to this delivery."""
        return self._by_delivery.get(delivery)

    def hold(self, endpoint: str, delivery: str) -> None:
        """Hold a delivery until the next one to its endpoint has overtaken it."""
        self._held_by_endpoint[endpoint] = delivery

    def overtake(self, endpoint: str, delivery: str) -> None:
        """Have a new delivery overtake the one that is held for its endpoint, if any."""
        held = self._held_by_endpoint.pop(endpoint, None)
        if held is not None:
            self._held_by_overtaker[delivery] = held

    def release(self, overtaker: str) -> str | None:
        """Release the delivery that this one has overtaken; returns its id."""
        return self._held_by_overtaker.pop(overtaker, None)
