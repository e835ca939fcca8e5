"""Test controls as plain Python: those of the clock, and all of them together. What caused what stands here, too.

The engine runs the jobs that are due.
"""

from datetime import datetime, timedelta

import attrs

from followup._for_mockserver import FrozenValue, clears_frames_of, format_timestamp
from followup_mockserver.control.bookings import BookingControls
from followup_mockserver.control.engine import Engine, Target
from followup_mockserver.control.organizations import NewOrganization, OrganizationControls
from followup_mockserver.control.people import PeopleControls
from followup_mockserver.control.traffic import CallControls, WebhookControls
from followup_mockserver.deliveries.mounts import Mounts
from followup_mockserver.world.schema.errors import LATEST_TIME, InvalidArgument, instant
from followup_mockserver.world.state.registry import Registry
from followup_mockserver.world.state.runs import Advanced
from followup_mockserver.world.state.tenant import Tenant
from followup_mockserver.world.state.tenant_access import TenantAccess

__all__ = ["ClockState", "Control", "NewOrganization", "PendingJob", "PendingReminder", "access_to"]

_REACHABLE = f"a number that keeps the clock before the year {LATEST_TIME.year}"


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ClockState(FrozenValue):
    """The mock's clock at one moment.

    Attributes:
        now: the mock's time, UTC.
        frozen: whether the clock stands still until a test advances it; otherwise it runs with real time.
    """

    now: datetime = attrs.field(repr=format_timestamp)
    frozen: bool


@attrs.frozen(kw_only=True, eq=False, repr=False)
class PendingJob(FrozenValue):
    """A job that is due later.

    Attributes:
        at: when it is due, on the mock's clock.
        kind: ``reminder``, ``post_visit``, ``intake``, ``stage``, ``treatment_end``, ``delivery`` or
            ``repeated_delivery``.
        about: id of the object that it concerns.
    """

    at: datetime = attrs.field(repr=format_timestamp)
    kind: str
    about: str


@attrs.frozen(kw_only=True, eq=False, repr=False)
class PendingReminder(FrozenValue):
    """A reminder that is due later. It is not sent if the patient has opted out by then.

    Attributes:
        appointment: id of the appointment.
        patient: id of the patient.
        send_at: when it is due, on the mock's clock.
    """

    appointment: str
    patient: str
    send_at: datetime = attrs.field(repr=format_timestamp)


class ClockControls:
    """Read and advance the clock, and list what is due later."""

    _access: TenantAccess
    _engine: Engine

    @property
    def clock(self) -> ClockState:
        """The mock's time, and whether the clock is frozen."""
        return self._access.read(lambda tenant: ClockState(now=tenant.now(), frozen=tenant.clock.frozen))

    @property
    def jobs(self) -> list[PendingJob]:
        """The jobs that are due later, in order of time: reminders, other messages, webhook attempts and so on."""
        return pending_jobs(self._access.tenant)

    @property
    def reminders(self) -> list[PendingReminder]:
        """The pending reminders of booked appointments, in order of time (specification, section 1)."""
        return pending_reminders(self._access.tenant)

    def advance(
        self,
        *,
        seconds: float = 0,
        minutes: float = 0,
        hours: float = 0,
        days: float = 0,
        to: datetime | str | None = None,
    ) -> Advanced:
        """Advance the clock, and run every job that becomes due.

        Jobs run in order of time, each with the clock at its own due time, and so do the jobs that they schedule. The
        call returns when all of them are done. Without arguments, it runs the jobs that are due now.

        Args:
            seconds: seconds to advance by. The four arguments are added up.
            minutes: minutes to advance by.
            hours: hours to advance by.
            days: days to advance by.
            to: time to advance to, instead of a duration; a time with an offset: 2030-05-17T14:30:00-03:00.

        Returns:
            The time afterwards, and the jobs that ran.

        Raises:
            RuntimeError: called from a webhook handler that another ``advance`` or ``step`` is waiting for, or in an
                event loop that it would block while ``advance_async`` or an application needs it.
            ValueError: a negative duration, a time in the past, an invalid time, or both a duration and a time.
            BaseException: in a ``MockService``, the exception of a mounted receiver. The attempt has been recorded, the
                clock shows its time, and what is still due stays due: call ``advance`` again to go on.
        """
        return self._engine.advance(*self._target(to, seconds=seconds, minutes=minutes, hours=hours, days=days))

    async def advance_async(
        self,
        *,
        seconds: float = 0,
        minutes: float = 0,
        hours: float = 0,
        days: float = 0,
        to: datetime | str | None = None,
    ) -> Advanced:
        """Do the same as ``advance`` in an asyncio task, without blocking the event loop.

        In a ``MockService``, mounted ASGI applications and coroutine functions run in the running event loop; functions
        and WSGI applications are called in its thread. If two tasks advance the clock at once, the second waits,
        and its duration begins when the first has ended.

        Args:
            seconds: seconds to advance by. The four arguments are added up.
            minutes: minutes to advance by.
            hours: hours to advance by.
            days: days to advance by.
            to: time to advance to, instead of a duration; a time with an offset: 2030-05-17T14:30:00-03:00.

        Returns:
            The time afterwards, and the jobs that ran.

        Raises:
            RuntimeError: called from a webhook handler that another ``advance`` or ``step`` is waiting for.
            ValueError: as ``advance``.
            BaseException: as ``advance``. If the task is cancelled during an attempt, that attempt has failed.
        """
        target = self._target(to, seconds=seconds, minutes=minutes, hours=hours, days=days)
        return await self._engine.advance_async(*target)

    def step(self) -> Advanced:
        """Advance the clock to the due time of the next job, and run that job only.

        Returns:
            The time afterwards, and the job that ran, if there was one.

        Raises:
            RuntimeError: as ``advance``.
            BaseException: as ``advance``.
        """
        return self._engine.advance(self._access.tenant, None)

    def _target(self, to: datetime | str | None, **parts: float) -> tuple[Tenant, Target]:
        """Record the call, and return the state of the organization and the instant to advance its clock to.

        A duration begins when the jobs do: if another thread or task is advancing the clock, both durations count.
        """
        tenant = self._access.tenant
        duration = _duration(**parts)
        if duration and to is not None:
            raise InvalidArgument("to", "omitted when a duration is passed")
        with tenant.lock:
            now = tenant.now()
            target = _later(now, duration) if to is None else _ahead(now, to)
            passed = {name: value for name, value in parts.items() if value} if to is None else {"to": target}
            tenant.journal.record_control("advance", now, None, passed)
        return tenant, (lambda now: _later(now, duration)) if to is None else lambda _: target

    @property
    def waits(self) -> list[float]:
        """The waits of the organization's clients so far, in seconds, in order; at most the last 10,000.

        A client of a ``MockService`` does not sleep: each of its waits advances the clock, and is listed here. Such are
        the waits before a retry, for the request rate of the client and between the rounds of ``send_all``, and the
        delays by faults, each up to the timeout of the client. Clients of a ``MockServer`` sleep, and are not listed.
        """
        return self._access.read(lambda tenant: list(tenant.waits))


@clears_frames_of
class Control(ClockControls, CallControls, WebhookControls, PeopleControls, BookingControls, OrganizationControls):
    """The test controls of one organization: what happens to the service outside its API.

    ``MockService`` and ``MockServer`` have these methods too; there they act on the default organization. Every list
    and object that they return is a copy: changing it does not change the mock.

    Args:
        registry: the tenants of the mock.
        engine: runs their jobs.
        mounts: the receivers in this process.
        key: an API key of the organization; None selects the default organization.
    """

    def __init__(self, registry: Registry, engine: Engine, mounts: Mounts, key: str | None = None) -> None:
        self._access = TenantAccess(registry, key)
        self._engine = engine
        self._mounts = mounts

    def organization(self, key: str) -> "Control":
        """Return the test controls of another organization.

        Args:
            key: any API key of the organization, also one that is revoked or expired. An unknown key raises a
                ``ServiceError`` (401) when the controls are used.

        Returns:
            Controls with the same methods, which act on that organization.
        """
        return Control(self._access.registry, self._engine, self._mounts, key)

    @property
    def _tenant(self) -> Tenant:
        return self._access.tenant


def access_to(control: Control) -> TenantAccess:
    """Return the access to the state behind these controls, for the control API and the dashboard."""
    return control._access


def pending_jobs(tenant: Tenant, limit: int | None = None) -> list[PendingJob]:
    """Return the jobs that are due later, in order of time; at most ``limit`` of them."""
    with tenant.lock:
        timers = tenant.scheduler.pending() if limit is None else tenant.scheduler.earliest(limit)
        return [PendingJob(at=timer.at, kind=timer.job.kind, about=timer.job.about) for timer in timers]


def pending_reminders(tenant: Tenant, appointment: str | None = None) -> list[PendingReminder]:
    """Return the pending reminders of one appointment or of all, in order of time."""
    with tenant.lock:
        pending = []
        for timer in tenant.scheduler.pending(about=appointment, kind="reminder"):
            booked = tenant.appointments.get(timer.job.about)
            assert booked is not None  # appointments are never removed
            pending.append(PendingReminder(appointment=booked.id, patient=booked.patient, send_at=timer.at))
        return pending


def _duration(**parts: float) -> timedelta:
    duration = timedelta()
    for argument, value in parts.items():
        # timedelta(days=True) would be a day.
        if isinstance(value, bool):
            raise InvalidArgument(argument, "a number")
        try:
            part = timedelta(**{argument: value})
            duration += part
        except (OverflowError, ValueError, TypeError):
            raise InvalidArgument(argument, _REACHABLE) from None
        if part < timedelta(0):
            raise InvalidArgument(argument, "0 or more: the clock never goes back")
    return duration


def _later(now: datetime, duration: timedelta) -> datetime:
    # Compared before it is added, since the sum may exceed what a datetime can hold.
    if duration > LATEST_TIME - now:
        raise InvalidArgument("seconds", _REACHABLE)
    return now + duration


def _ahead(now: datetime, to: datetime | str) -> datetime:
    target = instant("to", to)
    if target < now:
        raise InvalidArgument("to", f"the current time, {format_timestamp(now)}, or later: the clock never goes back")
    return target
