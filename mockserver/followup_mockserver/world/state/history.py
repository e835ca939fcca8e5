"""The history of an organization: what happened, and what caused it, in the order in which it happened.

A cause is the id of a request (``req_…``), an inbound event (``evt_…``), a job (``job_…``) or a call of a test control
(``ctl_…``). The history is append-only: what begins and ends at different times, such as a job, has two records with
the same id. ``followup_mockserver.control.causes`` turns records into the chain of causes of an object.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from datetime import datetime

import attrs

from followup_mockserver.world.outcomes import Outcome, other

LENGTH = 50_000
"""Number of records that are kept; older ones are dropped. A call leaves about five, and the journal has 10,000."""

CONTROL_PREFIX = "ctl_"
JOB_PREFIX = "job_"
EVENT_PREFIX = "evt_"

CONTROL = "control"
EVENT = "event"
EVENT_RESENT = "event.resent"
MESSAGE = "message"
DELIVERY = "webhook_delivery"
ATTEMPT = "attempt"


@attrs.define(eq=False, repr=False)
class Receipt:
    """What became of an outbound event at one endpoint.

    Attributes:
        endpoint: id of the endpoint; None if the reason concerns no single one.
        delivery: id of the delivery; None if none was made.
        reason: why no delivery was made; None if one was.
    """

    endpoint: str | None
    delivery: str | None
    reason: Outcome | None


@attrs.define(eq=False, repr=False)
class Record:
    """Something that happened. It has no names, phones, texts or keys, and never changes.

    It is not frozen, because a call makes several of them, and frozen objects take longer to make.

    Attributes:
        at: when it happened, by the mock's clock.
        kind: the type of a domain event, the kind of a job, or one of the constants of this module.
        id: id of the job, inbound event, control call, message or attempt; for a domain event the id of its object.
        cause: id of the cause; for the end of a job, the control call that ran it, or the cause of its cancellation;
            None if there is none.
        outcome: what became of it; None for the beginning of something that ends later.
        about: id of the object concerned, if it is not ``id``.
        patient: id of the patient concerned, where the record alone knows it.
        due: when a job is due.
        hours: of a reminder, the hours before the start of the appointment.
        receipts: what became of an outbound event, by endpoint.
    """

    at: datetime
    kind: str
    id: str
    cause: str | None = None
    outcome: Outcome | None = None
    about: str | None = None
    patient: str | None = None
    due: datetime | None = None
    hours: float | None = None
    receipts: Sequence[Receipt] = ()


class History:
    """The most recent records of an organization, oldest first.

    Attributes:
        records: the records. Appending to them drops the oldest beyond the limit.
        controls: the number of the last control call.

    Args:
        records: the records to begin with.
        controls: the number of the last control call.
    """

    def __init__(self, records: Iterable[Record] = (), controls: int = 0) -> None:
        self.records: deque[Record] = deque(records, maxlen=LENGTH)
        self.controls: int = controls

    def copy(self) -> "History":
        """Return an independent history with the same records, which never change."""
        return History(self.records, self.controls)

    def begin_control(self, at: datetime, name: str, about: str | None = None) -> Record:
        """Record the beginning of a call of a test control, which gets the next id."""
        self.controls += 1
        control = f"{CONTROL_PREFIX}{self.controls}"
        record = Record(at=at, kind=CONTROL, id=control, outcome=other(name), about=about)
        self.records.append(record)
        return record

    def drop(self, record: Record) -> None:
        """Drop the last record again, because nothing came of it."""
        if record.kind == CONTROL:
            # A control that did nothing must not shift the ids of later ones: two runs of a test would differ.
            self.controls -= 1
        self.records.remove(record)
