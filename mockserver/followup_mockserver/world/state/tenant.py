"""A tenant: all the mutable state of one organization, behind one lock.

Code that reads or changes a tenant holds its lock. A reset replaces the whole tenant by a new one, so that no state can
remain. The modules of this package store and look up data; they neither send requests nor handle them.
"""

import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any, ClassVar, TypeVar

import attrs

import followup
from followup._for_mockserver import camel
from followup_mockserver.world.outcomes import Outcome, other
from followup_mockserver.world.settings import KeyRecord, Options, Organization
from followup_mockserver.world.state.clock import Clock, Job, Scheduler, Timer
from followup_mockserver.world.state.collection import Collection, IdFactory, attributes
from followup_mockserver.world.state.faults import Faults, WebhookFaults
from followup_mockserver.world.state.history import JOB_PREFIX, History, Receipt, Record
from followup_mockserver.world.state.idempotency import IdempotencyRecords, RateLimiter
from followup_mockserver.world.state.journal import EventRemarks, Journal, report
from followup_mockserver.world.state.records import AttemptInProgress, Attempts, Message


@attrs.frozen(kw_only=True, eq=False, repr=False)
class DomainEvent:
    """An event inside the service: something happened to an object.

    Attributes:
        type: an outbound event type (specification, section 6.2), or an internal one, which no webhook carries.
        subject: the object, an instance of one of the SDK's result classes.
        patient: the patient concerned, if there is one.
        details: further ``data`` of a webhook.
        change: what changed, without personal data, for the history; None: the status of the subject says it.
    """

    type: str
    subject: Any
    patient: followup.Patient | None = None
    details: Mapping[str, Any] = attrs.field(factory=dict)
    change: Outcome | None = None

    @property
    def name(self) -> str:
        """The name of the object in the ``data`` of a webhook, such as ``appointment``."""
        return "order" if self.type == "order.issued" else camel(self.subject.object)


T = TypeVar("T")

Subscriber = Callable[["Tenant", DomainEvent], Sequence[Receipt] | None]
"""Reacts to a domain event. One that sends it to webhook endpoints returns what became of it at each of them."""

_RESOLUTION = timedelta(milliseconds=1)
"""The resolution of timestamps on the wire."""

MAX_WAITS = 10_000
"""A tenant remembers at most this many waits, the most recent."""


class Tenant:
    """The state of one organization.

    Attributes:
        version: a number that increases with every change; unique across tenants.
        ended: whether a reset has replaced this tenant; if so, nothing is sent for it any more.
        lock: held while the state is read or changed; re-entrant.
        changed: notified after every change, for long polls (``?wait=``) and the engine.
        secrets: signing secrets by webhook endpoint id; the endpoint objects do not contain them.
        attempts: every attempt of every delivery.
        messages: messages to patients, oldest first.
        attempts_in_progress: the attempts of deliveries that have not ended.
        sends_webhooks: whether domain events are sent as webhooks.
        last_event_at: ``occurredAt`` of the newest webhook event; None before the first.
        history: what happened, and what caused it.
        remarks: what the latest request lost of its events.
        cause: id of the request, inbound event, job or control call that causes what happens now; None if nothing does.
            It is set only while the lock is held.
        at: the instant of what happens now, one for a request, job or control call, however many objects and records it
            makes. There is none outside of ``caused_by``, so that nothing is dated with the instant of something else.
        waits: the seconds of each wait of clients in this process, oldest first.

    Args:
        organization: the settings.
        keys: the API keys.
        options: the options of the mock.
        subscribers: functions that react to domain events, called in this order.
        wake: wakes the engine; called after a job was scheduled.
    """

    # One for all tenants: a long poll must not take the new tenant after a reset for the state that it knows.
    _versions: ClassVar["itertools.count[int]"] = itertools.count(1)

    def __init__(
        self,
        organization: Organization,
        keys: Sequence[KeyRecord],
        options: Options,
        subscribers: Sequence[Subscriber] = (),
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        self.organization = organization
        self.keys: dict[str, KeyRecord] = {key.value: key for key in keys}
        self.options = options
        self._subscribers = subscribers
        self._wake = wake
        self._timers_seen = 0
        self.version: int = next(self._versions)
        self.ended = False

        self.lock: threading.RLock = threading.RLock()
        self.changed: threading.Condition = threading.Condition(self.lock)
        self.clock: Clock = Clock(options.start_time)
        self.scheduler: Scheduler = Scheduler()
        self.ids: IdFactory = IdFactory(options.seed, organization.id)

        self.patients: Collection[followup.Patient] = Collection(attributes("phone", "dni", "external_id"))
        self.doctors: Collection[followup.Doctor] = Collection(attributes("active", "external_id", "full_name"))
        self.appointments: Collection[followup.Appointment] = Collection(attributes("patient", "status", "external_id"))
        self.visits: Collection[followup.Visit] = Collection(attributes("patient", "external_id"))
        self.intake_requests: Collection[followup.IntakeRequest] = Collection(attributes("status", "patient"))
        self.treatments: Collection[followup.Treatment] = Collection(attributes("patient", "active"))
        self.events: Collection[followup.Event] = Collection(
            {**attributes("type", "status", "source"), "origin": attrgetter("source", "source_ref")}
        )
        self.webhook_endpoints: Collection[followup.WebhookEndpoint] = Collection()
        self.webhook_deliveries: Collection[followup.WebhookDelivery] = Collection(
            attributes("webhook_endpoint", "status")
        )
        self.secrets: dict[str, str] = {}
        self.attempts: Attempts = Attempts()
        self.messages: list[Message] = []
        self.attempts_in_progress: list[AttemptInProgress] = []
        self.sends_webhooks: bool = True
        self.last_event_at: datetime | None = None

        self.history: History = History()
        self.cause: str | None = None
        self.at: datetime
        self.remarks: EventRemarks = EventRemarks()

        self.waits: deque[float] = deque(maxlen=MAX_WAITS)

        self.journal: Journal = Journal()
        self.faults: Faults = Faults(seed=options.seed)
        self.webhook_faults: WebhookFaults = WebhookFaults()
        self.idempotency: IdempotencyRecords = IdempotencyRecords(options.idempotency_hours)
        self.rate_limiter: RateLimiter = RateLimiter(options.rate_limit)

    def now(self) -> datetime:
        """Return the current time, cut to milliseconds as in responses."""
        now = self.clock.now()
        beyond = now.microsecond % 1000
        # A frozen clock has none, and ``replace`` would make up a third of the time that recording an event takes.
        return now.replace(microsecond=now.microsecond - beyond) if beyond else now

    def next_event_time(self) -> datetime:
        """Return the ``occurredAt`` of a new webhook event: the current time, but later than that of the last event.

        A receiver sorts events by this time, so no two events may share it, even while the clock is frozen.
        """
        now = self.at
        if self.last_event_at is not None and self.last_event_at >= now:
            now = self.last_event_at + _RESOLUTION
        self.last_event_at = now
        return now

    def publish(self, type: str, subject: Any, patient: followup.Patient | None, **more: Any) -> None:
        """Record a domain event, and pass it to every subscriber. The arguments are those of ``DomainEvent``."""
        event = DomainEvent(type=type, subject=subject, patient=patient, **more)
        receipts: list[Receipt] = []
        outcome = event.change or other(getattr(subject, "status", "created"))
        patient_id = None if patient is None else patient.id
        # Before the subscribers, whose effects follow it in the history; they fill the receipts of the record.
        self.note(type, subject.id, outcome, patient=patient_id, receipts=receipts)
        for react in self._subscribers:
            found = react(self, event)
            if found is not None:
                receipts += found

    def note(self, kind: str, id: str, outcome: Outcome | None = None, **fields: Any) -> Record:
        """Add a record of what happens now, because of the present cause, to the history, and return it.

        Args:
            kind: as in ``Record``.
            id: as in ``Record``.
            outcome: what became of it; None for the beginning of something.
            fields: the other fields of the record; ``cause`` replaces the present one.
        """
        record = Record(**{"at": self.at, "cause": self.cause, "kind": kind, "id": id, "outcome": outcome, **fields})
        self.history.records.append(record)
        return record

    @contextmanager
    def caused_by(self, cause: str | None, at: datetime | None = None) -> Iterator[None]:
        """Record this cause of all that happens in this block, at one instant. The caller holds the lock.

        Args:
            cause: id of the cause.
            at: the instant, by default the current one. A block within another one has the instant of that one.
        """
        before, self.cause = self.cause, cause
        is_outermost = not hasattr(self, "at")
        if is_outermost:
            self.at = at or self.now()
        try:
            yield
        finally:
            self.cause = before
            if is_outermost:
                del self.at

    def control(self, name: str, change: Callable[["Tenant"], T], about: str | None, arguments: Mapping[str, Any]) -> T:
        """Call a test control, which is the cause of all that follows from it, and return its result.

        A call that fails, or that neither causes anything nor concerns an object, leaves no record.

        Args:
            name: name of the control.
            change: what it does.
            about: id of the object that it changes; if None, that of the result, if it has one.
            arguments: its arguments, for the journal.
        """
        history = self.history
        record = history.begin_control(self.now(), name, about)
        concerns = None
        try:
            with self.caused_by(record.id, record.at):
                result = change(self)
            concerns = about or getattr(result, "id", None)
            report(self.journal.record_control(name, record.at, concerns, arguments))
        finally:
            if history.records[-1] is record:  # it has caused nothing
                if concerns is None:
                    history.drop(record)
                else:
                    history.records[-1] = attrs.evolve(record, about=concerns)
        return result

    # --- jobs ----------------------------------------------------------------------------------------------------

    def schedule(self, at: datetime, job: Job, hours: float | None = None) -> None:
        """Schedule a job, and record its cause.

        Args:
            at: when it is due.
            job: the job.
            hours: of a reminder, the hours before the start of the appointment.
        """
        number = self.scheduler.schedule(at, job).number
        self.note(job.kind, f"{JOB_PREFIX}{number}", about=job.about, due=at, hours=hours)

    def skip_job(self, job: Job, outcome: Outcome) -> None:
        """Record that a job is not scheduled, because the time at which it would have been due is past."""
        job_id = f"{JOB_PREFIX}{self.scheduler.next_number()}"
        self.note(job.kind, job_id, outcome, about=job.about, hours=outcome.hours)

    def cancel_jobs(self, about: str, outcome: Outcome, kind: str | None = None) -> int:
        """Cancel the jobs of an object, of one kind or of all, record the outcome, and return how many there were."""
        cancelled = self.scheduler.cancel_about(about, kind)
        for timer in cancelled:
            self.end_job(timer, outcome, self.cause)
        return len(cancelled)

    def end_job(self, timer: Timer, outcome: Outcome, by: str | None) -> None:
        """Record what became of a job.

        Args:
            timer: the job.
            outcome: what became of it.
            by: the control call that ran it, or the cause of its cancellation; None if it ran by itself.
        """
        job = timer.job
        job_id = f"{JOB_PREFIX}{timer.number}"
        self.note(job.kind, job_id, outcome, cause=by, about=job.about, due=timer.at)

    @contextmanager
    def without_webhooks(self) -> Iterator[None]:
        """Send no webhooks for the domain events in this block. The caller holds the lock."""
        before, self.sends_webhooks = self.sends_webhooks, False
        try:
            yield
        finally:
            self.sends_webhooks = before

    def notify(self) -> None:
        """Wake the threads that wait for a change, and the engine if jobs were scheduled. The caller holds the lock."""
        self.version = next(self._versions)
        self.changed.notify_all()
        if self._timers_seen != self.scheduler.scheduled:
            self._timers_seen = self.scheduler.scheduled
            self._wake()
