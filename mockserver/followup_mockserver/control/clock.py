"""The mock's clock: what time it is, what is due, and how a test advances it."""

from datetime import datetime, timedelta

import attrs

from followup._for_mockserver import format_timestamp
from followup_mockserver.control.tenants import OrganizationControls
from followup_mockserver.schema.checks import END_OF_TIME, instant
from followup_mockserver.schema.errors import InvalidArgument
from followup_mockserver.state.runs import Advanced
from followup_mockserver.state.tenant import Tenant

_REACHABLE = f"a number, and end before the year {END_OF_TIME.year}"


@attrs.frozen(kw_only=True)
class ClockState:
    """The current time, and whether the clock is frozen."""

    now: datetime
    frozen: bool


@attrs.frozen(kw_only=True)
class PendingJob:
    """A job that is due later."""

    at: datetime
    kind: str
    about: str


class ClockControls(OrganizationControls):
    """Read and advance the clock."""

    @property
    def clock(self) -> ClockState:
        """The current time, and whether the clock is frozen."""
        tenant = self._tenant
        with tenant.lock:
            return ClockState(now=tenant.now(), frozen=tenant.clock.frozen)

    @property
    def jobs(self) -> list[PendingJob]:
        """The jobs that are due later, in order."""
        return pending_jobs(self._tenant)

    def advance(
        self,
        *,
        seconds: float = 0,
        minutes: float = 0,
        hours: float = 0,
        days: float = 0,
        to: datetime | str | None = None,
    ) -> Advanced:
        """Advance the clock, and run everything that becomes due, in time order, each job at its own due time.

        Returns when all jobs, and all that they caused, are done. Without arguments the clock is not advanced: the
        jobs that are due now run.

        Args:
            seconds: a distance, added to the other three.
            minutes: a distance, added to the other three.
            hours: a distance, added to the other three.
            days: a distance, added to the other three.
            to: the time to advance to, instead of a distance; an aware datetime or an ISO 8601 string.

        Returns:
            The time, and the jobs that ran.

        Raises:
            ValueError: a negative distance, a time in the past, an invalid time, or both a distance and a time.
        """
        tenant = self._tenant
        distance = _distance(seconds=seconds, minutes=minutes, hours=hours, days=days)
        if distance and to is not None:
            raise InvalidArgument("to", "omitted when a distance is passed")
        with tenant.lock:
            target = _later(tenant.clock.now(), distance) if to is None else _ahead(tenant.now(), to)
        return self._engine.advance(tenant, target)

    def step(self) -> Advanced:
        """Run exactly the next job, with the clock advanced to its due time.

        Returns:
            The time, and the job that ran.
        """
        return self._engine.step(self._tenant)


def pending_jobs(tenant: Tenant, limit: int | None = None) -> list[PendingJob]:
    """Return the jobs that are due later, in order; at most ``limit`` of them."""
    with tenant.lock:
        timers = tenant.scheduler.pending() if limit is None else tenant.scheduler.earliest(limit)
        return [PendingJob(at=timer.at, kind=timer.job.kind, about=timer.job.about) for timer in timers]


def _distance(**parts: float) -> timedelta:
    distance = timedelta()
    for argument, value in parts.items():
        try:
            part = timedelta(**{argument: value})
            distance += part
        except (OverflowError, ValueError, TypeError):
            raise InvalidArgument(argument, _REACHABLE) from None
        if part < timedelta(0):
            raise InvalidArgument(argument, "0 or more: time never goes back")
    return distance


def _later(now: datetime, distance: timedelta) -> datetime:
    if distance > END_OF_TIME - now:
        raise InvalidArgument("seconds", _REACHABLE)
    return now + distance


def _ahead(now: datetime, to: datetime | str) -> datetime:
    target = instant("to", to)
    if target < now:
        raise InvalidArgument("to", f"{format_timestamp(now)}, which it is now, or later: time never goes back")
    return target
