"""Test controls as plain Python, what caused what, and the engine that runs the jobs that are due."""

from followup._for_mockserver import clears_frames_of, format_timestamp
from followup_mockserver.control.bookings import BookingControls
from followup_mockserver.control.clock import ClockControls, ClockState, PendingJob, PendingReminder
from followup_mockserver.control.engine import Engine
from followup_mockserver.control.occurrences import counted
from followup_mockserver.control.organizations import NewOrganization, OrganizationControls
from followup_mockserver.control.people import PeopleControls
from followup_mockserver.control.traffic import CallControls, WebhookControls
from followup_mockserver.deliveries.mounts import Mounts
from followup_mockserver.world.schema.errors import ServiceError
from followup_mockserver.world.state.registry import Registry
from followup_mockserver.world.state.tenant import Tenant
from followup_mockserver.world.state.tenant_access import TenantAccess

__all__ = ["ClockState", "Control", "NewOrganization", "PendingJob", "PendingReminder", "access_to", "state_of"]


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

    def __repr__(self) -> str:
        try:
            tenant = self._tenant
        except ServiceError:
            return "<Control of an unknown API key>"
        return f"<Control of {tenant.organization.id}, {state_of(tenant)}>"


def access_to(control: Control) -> TenantAccess:
    """Return the access to the state behind these controls, for the control API and the dashboard."""
    return control._access


def state_of(tenant: Tenant) -> str:
    """Return the time of the clock, and how many calls, jobs and so on there are.

    It does not wait for the lock of the tenant, because a debugger calls ``repr`` while other threads stand still.
    """
    counts = {
        "API call": len(tenant.journal),
        "pending job": len(tenant.scheduler),
        "delivery": len(tenant.webhook_deliveries),
        "message": len(tenant.messages),
        "fault": len(tenant.faults.pending) + len(tenant.webhook_faults.pending),
    }
    clock = f"{format_timestamp(tenant.now())}{' (frozen)' if tenant.clock.frozen else ''}"
    return ", ".join([clock, *(counted(number, name) for name, number in counts.items() if number)])
