"""The groups of operations. Each has a module with its result classes, its input dicts and its operations.

The event of a webhook has one too.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the event of a webhook, which is in this package, needs no attrs
    from followup._core.operations import Resource

GROUPS = {
    "account": "AccountGroup",
    "patients": "Patients",
    "doctors": "Doctors",
    "appointments": "Appointments",
    "visits": "Visits",
    "intake_requests": "IntakeRequests",
    "treatments": "Treatments",
    "events": "Events",
    "webhook_endpoints": "WebhookEndpoints",
    "webhook_deliveries": "WebhookDeliveries",
}
"""The class of each group, by its module and attribute of the clients, in the order of the specification."""


def group_class(name: str) -> type[Resource]:
    """Import and return the class of a group."""
    group: type[Resource] = getattr(import_module(f"{__name__}.{name}"), GROUPS[name])
    return group


def _modules_for_freezers() -> None:
    """Name the modules above for PyInstaller, cx_Freeze and Nuitka, which look for imports. This is never called."""
    from followup.resources import (  # noqa: F401
        account,
        appointments,
        doctors,
        events,
        intake_requests,
        patients,
        treatments,
        visits,
        webhook_deliveries,
        webhook_endpoints,
        webhook_event,
    )


def all_groups() -> tuple[type[Resource], ...]:
    """Import and return the class of every group.

    The imports take time, so they are made by the constructor of a client, which calls this, and not by
    ``import followup``.
    """
    return tuple(map(group_class, GROUPS))
