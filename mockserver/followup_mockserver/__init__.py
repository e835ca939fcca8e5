"""The patient follow-up service in memory, to test against."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from followup_mockserver.control import ClockState, NewOrganization, PendingJob, PendingReminder
    from followup_mockserver.schema.errors import ServiceError
    from followup_mockserver.server import MockServer
    from followup_mockserver.service import MockService
    from followup_mockserver.settings import KeyRecord
    from followup_mockserver.state.journal import JournalEntry
    from followup_mockserver.state.records import Attempt, Message
    from followup_mockserver.state.request_faults import Fault
    from followup_mockserver.state.runs import Advanced, JobRun

__all__ = [
    "Advanced",
    "Attempt",
    "ClockState",
    "Fault",
    "JobRun",
    "JournalEntry",
    "KeyRecord",
    "Message",
    "MockServer",
    "MockService",
    "NewOrganization",
    "PendingJob",
    "PendingReminder",
    "ServiceError",
]

_MODULES = {
    "control": ("ClockState", "NewOrganization", "PendingJob", "PendingReminder"),
    "state.runs": ("Advanced", "JobRun"),
    "schema.errors": ("ServiceError",),
    "state.request_faults": ("Fault",),
    "state.journal": ("JournalEntry",),
    "settings": ("KeyRecord",),
    "state.records": ("Attempt", "Message"),
    "server": ("MockServer",),
    "service": ("MockService",),
}


if not TYPE_CHECKING:  # a type checker would take every misspelt name for one that is found here

    def __getattr__(name: str) -> Any:
        # Imported when they are used: the command must start, and say which extra is missing, without Flask; and a test
        # run that has the pytest plugin installed must not pay for a mock that it does not use.
        for module, names in _MODULES.items():
            if name in names:
                try:
                    return getattr(importlib.import_module(f"{__name__}.{module}"), name)
                except ModuleNotFoundError as error:
                    raise _needs_extra(error) from None
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _needs_extra(error: ModuleNotFoundError) -> ImportError:
    """The error of an import without the extra, with the command that installs it."""
    command = "python -m pip install 'followup[mockserver]'"
    return ImportError(f"{__name__} needs {error.name}, which is not installed: {command}", name=error.name)
