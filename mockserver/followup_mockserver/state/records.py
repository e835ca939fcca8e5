"""Records that are not resources of the API: messages to patients, and attempts to deliver webhooks."""

from datetime import datetime

import attrs

from followup._for_mockserver import format_timestamp


@attrs.frozen(kw_only=True)
class Message:
    """A message that the service sent to a patient. Its ``repr`` shows neither phone nor text.

    Attributes:
        patient: id of the patient; None for a contact of an intake request that has no patient yet.
        kind: ``reminder``, ``post_visit`` or ``intake``.
        about: id of the object that caused it.
    """

    patient: str | None
    phone: str = attrs.field(repr=False)
    kind: str
    text: str = attrs.field(repr=False)
    sent_at: datetime = attrs.field(repr=format_timestamp)
    about: str


@attrs.frozen(kw_only=True)
class Attempt:
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


@attrs.define(kw_only=True, eq=False)
class AttemptInProgress:
    """An attempt that has been taken from the scheduler, or started as a manual retry, and has not ended.

    A snapshot is taken as if such an attempt had not begun.

    Attributes:
        delivery: id of the delivery.
        trigger: as in ``Attempt``.
        counted: whether the delivery counts it already.
    """

    delivery: str
    trigger: str
    counted: bool = False
