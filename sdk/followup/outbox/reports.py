"""What an outbox reports: a drain, its status, and its failing and dead events."""

from datetime import datetime

import attrs

from followup.resources.event_batches import EventInput


@attrs.define(kw_only=True)
class DrainReport:
    """What a drain did.

    Attributes:
        sent: events that the service accepted, duplicates not included.
        duplicates: events that the service had accepted before, such as those of a relay that was killed.
        failed: times that an event was not accepted and waits for a retry.
        rejected: events that are dead now.
        remaining: events that still wait, for a retry too, or are in flight; those that a dead event holds and dead
            ones are not among them.
    """

    sent: int = 0
    duplicates: int = 0
    failed: int = 0
    rejected: int = 0
    remaining: int = 0


@attrs.frozen(kw_only=True)
class OutboxStatus:
    """The number of events of an outbox in each state.

    Attributes:
        waiting: events that will be sent, now or after a backoff, or after an earlier event of their subject.
        in_flight: events that a relay is sending.
        held: events that wait until a dead event of their subject is retried or discarded.
        dead: events that the service rejected.
        sent: events that the service accepted and that have not been purged.
        oldest_waiting_seconds: age of the oldest event that waits, is held or is in flight; None if there is none.
    """

    waiting: int
    in_flight: int
    held: int
    dead: int
    sent: int
    oldest_waiting_seconds: float | None


@attrs.frozen(kw_only=True)
class DeadEvent:
    """An event that the service rejected. ``repr`` shows neither its data nor its subject.

    Attributes:
        id: id of the event.
        event: the event as it was sent.
        subject: the subject, which may contain a phone or a document.
        error: the reason for the rejection.
        attempts: number of times that it was sent.
        recorded_at: time at which it was recorded, in UTC.
        died_at: time at which it was rejected, in UTC.
    """

    id: str
    event: EventInput = attrs.field(repr=False)
    subject: str = attrs.field(repr=False)
    error: str = attrs.field(repr=False)
    attempts: int
    recorded_at: datetime
    died_at: datetime


@attrs.frozen(kw_only=True)
class FailingEvent:
    """An event that was sent, not accepted, and waits for a retry. ``repr`` shows neither its data nor its subject.

    Attributes:
        id: id of the event.
        event: the event as it is sent.
        subject: the subject, which may contain a phone or a document. Later events of it wait.
        error: the reason for the latest failure.
        attempts: number of times that it was sent.
        recorded_at: time at which it was recorded, in UTC.
        next_attempt_at: time from which it is sent again, in UTC.
    """

    id: str
    event: EventInput = attrs.field(repr=False)
    subject: str = attrs.field(repr=False)
    error: str = attrs.field(repr=False)
    attempts: int
    recorded_at: datetime
    next_attempt_at: datetime
