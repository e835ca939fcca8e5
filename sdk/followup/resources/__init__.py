"""The groups of operations. Each has a module with its result classes, its input dicts and its operations.

The event of a webhook has one too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the event of a webhook, which is in this package, needs no attrs
    from followup._core.operations import Resource


def all_groups() -> tuple[type[Resource], ...]:
    """Import and return the class of every group, in the order of the specification.

    The imports take time, so ``import followup`` does not make them.
    """
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

    records = AccountGroup, Patients, Doctors, Appointments, Visits, IntakeRequests, Treatments
    return (*records, Events, WebhookEndpoints, WebhookDeliveries)
