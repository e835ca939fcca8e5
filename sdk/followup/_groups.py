"""The groups of operations of a client, each created on first access.

Type checkers and editors read ``_groups.pyi`` instead, which ``tools/group_stubs.py`` generates from the declarations.
It has the methods of each group for either client, in a form that every editor understands.
"""

from typing import TYPE_CHECKING

from followup._declarations.lazy import lazy
from followup._declarations.operations import Caller

if TYPE_CHECKING:
    from followup.resources.account import AccountGroup
    from followup.resources.appointments import Appointments
    from followup.resources.doctors import Doctors
    from followup.resources.events import Events
    from followup.resources.intake_requests import IntakeRequests
    from followup.resources.patients import Patients
    from followup.resources.treatments import Treatments
    from followup.resources.visits import Visits
    from followup.resources.webhook_deliveries import WebhookDeliveries
    from followup.resources.webhook_endpoints import WebhookEndpoints


class _Groups:
    """The ten groups. The constructor of a client has imported their modules already."""

    @lazy
    def account(self: Caller) -> "AccountGroup":
        """The organization of the API key."""
        from followup.resources.account import AccountGroup

        return AccountGroup(self)

    @lazy
    def patients(self: Caller) -> "Patients":
        """The patients of the organization."""
        from followup.resources.patients import Patients

        return Patients(self)

    @lazy
    def doctors(self: Caller) -> "Doctors":
        """The organization's roster of doctors."""
        from followup.resources.doctors import Doctors

        return Doctors(self)

    @lazy
    def appointments(self: Caller) -> "Appointments":
        """Appointments and their reminders."""
        from followup.resources.appointments import Appointments

        return Appointments(self)

    @lazy
    def visits(self: Caller) -> "Visits":
        """Attended visits; each starts a post-visit follow-up."""
        from followup.resources.visits import Visits

        return Visits(self)

    @lazy
    def intake_requests(self: Caller) -> "IntakeRequests":
        """Requests to admit patients to follow-up; the service completes their data by messaging app."""
        from followup.resources.intake_requests import IntakeRequests

        return IntakeRequests(self)

    @lazy
    def treatments(self: Caller) -> "Treatments":
        """Treatments in the patients' records."""
        from followup.resources.treatments import Treatments

        return Treatments(self)

    @lazy
    def events(self: Caller) -> "Events":
        """Inbound events: what happened in the organization's systems."""
        from followup.resources.events import Events

        return Events(self)

    @lazy
    def webhook_endpoints(self: Caller) -> "WebhookEndpoints":
        """Endpoints of yours that the service sends webhooks to."""
        from followup.resources.webhook_endpoints import WebhookEndpoints

        return WebhookEndpoints(self)

    @lazy
    def webhook_deliveries(self: Caller) -> "WebhookDeliveries":
        """Deliveries of webhooks to the endpoints, with their attempts."""
        from followup.resources.webhook_deliveries import WebhookDeliveries

        return WebhookDeliveries(self)


SyncGroups = AsyncGroups = _Groups
