"""What a test observes: reminders, messages, API calls, webhook deliveries and their attempts."""

import itertools
from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

import attrs

from followup import WebhookDelivery
from followup_mockserver.control.tenants import OrganizationControls, existing
from followup_mockserver.state.clock import RealTime
from followup_mockserver.state.copies import copied
from followup_mockserver.state.jobs import SendReminder
from followup_mockserver.state.journal import JournalEntry
from followup_mockserver.state.records import Attempt, Message
from followup_mockserver.state.tenant import Tenant

T = TypeVar("T")


@attrs.frozen(kw_only=True)
class PendingReminder:
    """A reminder that is due later; it is not sent to a patient who has opted out by then."""

    appointment: str
    patient: str
    send_at: datetime


class Observations(OrganizationControls):
    """Lists of what has happened, and of the reminders to come. They are copies: changing one changes nothing else."""

    @property
    def reminders(self) -> list[PendingReminder]:
        """The pending reminders, in order; one of a patient who has opted out by then is not sent."""
        return pending_reminders(self._tenant)

    @property
    def messages(self) -> list[Message]:
        """The messages written to patients so far, oldest first."""
        tenant = self._tenant
        with tenant.lock:
            return list(tenant.messages)

    @property
    def requests(self) -> list[JournalEntry]:
        """The API calls so far, newest first; the last 10,000."""
        tenant = self._tenant
        with tenant.lock:
            return list(tenant.journal.newest_first())

    @property
    def deliveries(self) -> list[WebhookDelivery]:
        """The webhook deliveries, newest first."""
        tenant = self._tenant
        with tenant.lock:
            return copied([*reversed([*tenant.webhook_deliveries])])

    def attempts(self, id: str, /) -> list[Attempt]:
        """Return every attempt of a delivery, in order.

        Args:
            id: of the delivery.

        Raises:
            ServiceError: there is no such delivery.
        """
        tenant = self._tenant
        with tenant.lock:
            existing(tenant.webhook_deliveries.get(id), "webhook delivery")
            return list(tenant.attempts.get(id, ()))

    def _wait_until(self, look: Callable[[Tenant], tuple[bool, T]], seconds: float, hand_out: Callable[[T], T]) -> T:
        ends = RealTime.monotonic() + seconds
        while True:
            tenant = self._tenant  # anew each time, for a reset replaces it
            with tenant.lock:
                satisfied, found = look(tenant)
                left = ends - RealTime.monotonic()
                if satisfied or left <= 0 or self._engine.stopped:
                    return hand_out(found)
                if tenant is self._tenant:
                    tenant.changed.wait(left)


def pending_reminders(tenant: Tenant, appointment: str | None = None) -> list[PendingReminder]:
    """Return the pending reminders of one appointment or of all, in order."""
    with tenant.lock:
        pending = []
        for timer in tenant.scheduler.pending(about=appointment, kind=SendReminder.kind):
            of = tenant.appointments.get(timer.job.about)
            assert of is not None  # appointments are never removed
            pending.append(PendingReminder(appointment=of.id, patient=of.patient, send_at=timer.at))
        return pending


def all_attempts(tenant: Tenant) -> list[Attempt]:
    """Return every attempt of every delivery, in order of time."""
    with tenant.lock:
        return sorted(itertools.chain.from_iterable(tenant.attempts.values()), key=lambda each: each.at)


def wait_until(
    control: Observations,
    look: Callable[[Tenant], tuple[bool, T]],
    seconds: float,
    hand_out: Callable[[T], T] = copied,
) -> T:
    """Look at the state until it is as wanted, or the time is up.

    Args:
        control: whose state; a reset may replace it meanwhile.
        look: returns whether the state is as wanted, and what was found; runs under the lock after each change.
        seconds: of real time, at most; stopping the mock ends the wait too.
        hand_out: copies what was found, under the lock; records that never change need no deep copy.

    Returns:
        What the last look found, handed out.
    """
    return control._wait_until(look, seconds, hand_out)
