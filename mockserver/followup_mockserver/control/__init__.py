"""The test controls as plain Python: clock, faults, patients and staff in the hands of a test."""

from followup_mockserver.control.clock import ClockControls, ClockState, PendingJob
from followup_mockserver.control.faults import FaultControls
from followup_mockserver.control.observe import Observations, PendingReminder
from followup_mockserver.control.simulate import Simulation
from followup_mockserver.control.tenants import NewOrganization, OrganizationControls

__all__ = ["ClockState", "Control", "NewOrganization", "PendingJob", "PendingReminder"]


class Control(ClockControls, Observations, Simulation, FaultControls, OrganizationControls):
    """The test controls of one organization.

    These are also the methods of ``MockService`` and ``MockServer``, where they act on the default organization.
    """

    def organization(self, key: str) -> "Control":
        """Return the test controls of another organization.

        Args:
            key: any key of the organization. Whether it exists is checked when the controls are used.
        """
        return Control(self._registry, self._engine, self._mounts, key)
