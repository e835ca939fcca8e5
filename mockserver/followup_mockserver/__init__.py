"""A mock of the patient follow-up service, in memory, for tests and development.

``MockService`` runs in the test's own process, ``MockServer`` listens on a socket, and ``followup-mock serve`` runs a
``MockServer`` from the command line. The pytest plugin has fixtures for the first two.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from followup_mockserver.control import ClockState, NewOrganization, PendingJob, PendingReminder
    from followup_mockserver.control.occurrences import HistoryEntry
    from followup_mockserver.pytest_plugin.environment import MockEnvironment, RejectedRequest
    from followup_mockserver.schema.errors import ServiceError
    from followup_mockserver.service.server import MockServer
    from followup_mockserver.service.service import MockService
    from followup_mockserver.settings.options import MockOptions
    from followup_mockserver.settings.settings import KeyRecord
    from followup_mockserver.state.faults import Fault, WebhookFault
    from followup_mockserver.state.journal import JournalEntry
    from followup_mockserver.state.records import Attempt, Message
    from followup_mockserver.state.runs import Advanced, JobRun

__all__ = [
    "Advanced",
    "Attempt",
    "ClockState",
    "Fault",
    "HistoryEntry",
    "JobRun",
    "JournalEntry",
    "KeyRecord",
    "Message",
    "MockEnvironment",
    "MockOptions",
    "MockServer",
    "MockService",
    "NewOrganization",
    "PendingJob",
    "PendingReminder",
    "RejectedRequest",
    "ServiceError",
    "WebhookFault",
]

_MODULES = {
    "control.occurrences": ("HistoryEntry",),
    "control": ("ClockState", "NewOrganization", "PendingJob", "PendingReminder"),
    "state.runs": ("Advanced", "JobRun"),
    "schema.errors": ("ServiceError",),
    "state.faults": ("Fault", "WebhookFault"),
    "state.journal": ("JournalEntry",),
    "settings.settings": ("KeyRecord",),
    "state.records": ("Attempt", "Message"),
    "settings.options": ("MockOptions",),
    "pytest_plugin.environment": ("MockEnvironment", "RejectedRequest"),
    "service.server": ("MockServer",),
    "service.service": ("MockService",),
}


if not TYPE_CHECKING:  # with it, a type checker would accept every misspelt name

    def __getattr__(name: str) -> Any:
        # Imported on first use: the command has to start without Flask, to report which extra is missing, and a test
        # run with the pytest plugin should not load a mock that it does not use.
        for module, names in _MODULES.items():
            if name in names:
                try:
                    return getattr(importlib.import_module(f"{__name__}.{module}"), name)
                except ModuleNotFoundError as error:
                    raise _needs_extra(error) from None
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _needs_extra(error: ModuleNotFoundError) -> ImportError:
    """Return the error for a missing extra, with the command that installs it."""
    command = "python -m pip install 'followup[mockserver]'"
    return ImportError(f"{__name__} needs {error.name}, which is not installed: {command}", name=error.name)
