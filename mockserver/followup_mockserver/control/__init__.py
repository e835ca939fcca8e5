"""The test controls as plain Python: clock, faults, patients and staff in the hands of a test."""

from followup._for_mockserver import clears_frames_of
from followup_mockserver.control.bookings import BookingControls
from followup_mockserver.control.calls import CallControls
from followup_mockserver.control.clock import ClockControls, ClockState, PendingJob, PendingReminder
from followup_mockserver.control.conversations import ConversationControls
from followup_mockserver.control.display import state_of
from followup_mockserver.control.history import HistoryControls
from followup_mockserver.control.organizations import NewOrganization, OrganizationControls
from followup_mockserver.control.people import PeopleControls
from followup_mockserver.control.snapshot import SnapshotControls
from followup_mockserver.control.sources import SourceControls
from followup_mockserver.control.unused_faults import UnusedFaultControls
from followup_mockserver.control.waits import WaitControls
from followup_mockserver.control.webhooks import WebhookControls
from followup_mockserver.engine import Engine
from followup_mockserver.schema.errors import ServiceError
from followup_mockserver.state.access import TenantAccess
from followup_mockserver.state.registry import Registry
from followup_mockserver.state.tenant import Tenant
from followup_mockserver.webhooks.mounts import Mounts

__all__ = ["ClockState", "Control", "NewOrganization", "PendingJob", "PendingReminder", "access_to"]


@clears_frames_of
class Control(
    ClockControls,
    WaitControls,
    CallControls,
    UnusedFaultControls,
    WebhookControls,
    PeopleControls,
    ConversationControls,
    BookingControls,
    SourceControls,
    OrganizationControls,
    SnapshotControls,
    HistoryControls,
):
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
