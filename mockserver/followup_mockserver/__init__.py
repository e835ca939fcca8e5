"""A mock of the patient follow-up service, in memory, for tests and development.

``MockService`` runs in the test's own process, ``MockServer`` listens on a socket, and ``followup-mock serve`` runs a
``MockServer`` from the command line. The pytest plugin has fixtures for the first two.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from followup_mockserver.control import ClockState, NewOrganization, PendingJob, PendingReminder
    from followup_mockserver.control.occurrences import HistoryEntry
    from followup_mockserver.pytest_plugin.django_project import DjangoProject as DjangoProject
    from followup_mockserver.pytest_plugin.environment import MockEnvironment, RejectedRequest
    from followup_mockserver.service import MockService
    from followup_mockserver.service.server import MockServer
    from followup_mockserver.world.schema.errors import ServiceError
    from followup_mockserver.world.settings import KeyRecord, MockOptions
    from followup_mockserver.world.state.faults import Fault, WebhookFault
    from followup_mockserver.world.state.journal import JournalEntry
    from followup_mockserver.world.state.records import Attempt, Message
    from followup_mockserver.world.state.runs import Advanced, JobRun

_MODULES = {
    "control": "ClockState NewOrganization PendingJob PendingReminder",
    "control.occurrences": "HistoryEntry",
    "pytest_plugin.django_project": "DjangoProject",
    "pytest_plugin.environment": "MockEnvironment RejectedRequest",
    "service.server": "MockServer",
    "service": "MockService",
    "world.schema.errors": "ServiceError",
    "world.settings": "KeyRecord MockOptions",
    "world.state.faults": "Fault WebhookFault",
    "world.state.journal": "JournalEntry",
    "world.state.records": "Attempt Message",
    "world.state.runs": "Advanced JobRun",
}
"""The public names of each module."""

# Without the class that needs Django, because `import *` imports all of these.
__all__ = ["Advanced", "Attempt", "ClockState", "Fault", "HistoryEntry", "JobRun", "JournalEntry"]
__all__ += ["KeyRecord", "Message", "MockEnvironment", "MockOptions", "MockServer", "MockService", "NewOrganization"]
__all__ += ["PendingJob", "PendingReminder", "RejectedRequest", "ServiceError", "WebhookFault"]


if not TYPE_CHECKING:  # to whom a name that is misspelt has to be an error

    def __getattr__(name: str) -> Any:
        # Imported on first use: the command has to start without Flask, to report which extra is missing, and a test
        # run with the pytest plugin should not load a mock that it does not use.
        for module, names in _MODULES.items():
            if name in names.split():
                try:
                    return getattr(importlib.import_module(f"{__name__}.{module}"), name)
                except ModuleNotFoundError as error:
                    if error.name == "django":
                        raise
                    from followup._for_mockserver import installation

                    text = f"{__name__} needs {error.name}, which is not installed: {installation('mockserver')}"
                    raise ImportError(text, name=error.name) from None
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
