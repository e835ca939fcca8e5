"""What the mock keeps beside the service's own resources: messages written to patients, and attempts to deliver."""

from datetime import datetime

import attrs


@attrs.frozen(kw_only=True)
class Message:
    """A message that the service wrote to a patient. ``repr`` shows neither phone nor text.

    Attributes:
        patient: id of the patient.
        kind: ``reminder``, ``post_visit`` or ``intake``.
        about: id of what caused it.
    """

    patient: str | None
    phone: str = attrs.field(repr=False)
    kind: str
    text: str = attrs.field(repr=False)
    sent_at: datetime
    about: str


@attrs.frozen(kw_only=True)
class Attempt:
    """One attempt to deliver a webhook.

    Attributes:
        delivery: id of the delivery.
        webhook_endpoint: id of the endpoint.
        number: 1 for the first.
        at: the mock's time of it.
        trigger: ``schedule``, ``manual`` for one that was asked for, or ``disturbance`` for the same event twice.
        status_code: HTTP status of the answer; None if there was none.
        seconds: how long it took, in real time.
        error: what went wrong; None if it succeeded.
        timestamp: the real time of sending that the webhook carried, in seconds since the epoch.
        signature: of the webhook.
    """

    delivery: str
    webhook_endpoint: str
    event_type: str
    number: int
    at: datetime
    trigger: str
    status_code: int | None
    seconds: float
    error: str | None
    timestamp: int
    signature: str
