"""The groups of operations. Each has a module with its result classes, its input dicts and its operations."""

from followup._declarations.operations import Resource


def all_groups() -> tuple[type[Resource], ...]:
    """Import and return the class of every group, in the order of the specification.

    The imports take time, so they are made by the constructor of a client, which calls this, and not by
    ``import followup``.
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

    return (
        AccountGroup,
        Patients,
        Doctors,
        Appointments,
        Visits,
        IntakeRequests,
        Treatments,
        Events,
        WebhookEndpoints,
        WebhookDeliveries,
    )
