"""Webhook requests: genuine ones, signed as the service signs them, and forged ones."""

import time
from collections.abc import Mapping

import attrs

from followup import WebhookDelivery
from followup._for_mockserver import SIGNATURE_HEADER, sign
from followup_mockserver.webhooks import requests


@attrs.frozen(kw_only=True)
class WebhookRequest:
    """A request to the receiver.

    Attributes:
        event: id of the event, by which the receiver deduplicates.
        headers: the request headers.
        body: the raw body.
    """

    event: str
    headers: Mapping[str, str] = attrs.field(repr=False)
    body: bytes = attrs.field(repr=False)

    def without_signature(self) -> "WebhookRequest":
        """Return this request without the header of the signature."""
        return attrs.evolve(self, headers={k: v for k, v in self.headers.items() if k != SIGNATURE_HEADER})

    def with_uppercase_signature(self) -> "WebhookRequest":
        """Return this request with uppercase hexadecimal digits in its signature."""
        scheme, equals, digits = self.headers[SIGNATURE_HEADER].partition("=")
        return attrs.evolve(self, headers={**self.headers, SIGNATURE_HEADER: f"{scheme}{equals}{digits.upper()}"})


def signed(
    delivery: WebhookDelivery, secret: str, *, body: bytes | None = None, age: int = 0, number: int = 1
) -> WebhookRequest:
    """Return the request that delivers an event, signed now.

    Args:
        delivery: the event.
        secret: the signing secret.
        body: the raw body; default: the one that the service sends.
        age: seconds by which its timestamp is in the past; negative for the future.
        number: number of the attempt.
    """
    body = requests.body_of(delivery) if body is None else body
    timestamp = int(time.time()) - age
    headers = requests.headers_of(
        event_type=delivery.event_type,
        number=number,
        timestamp=timestamp,
        signature=sign(body, secret, timestamp),
    )
    return WebhookRequest(event=delivery.id, headers=headers, body=body)
