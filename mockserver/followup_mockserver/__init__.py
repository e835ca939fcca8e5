"""A mock of the patient follow-up service, in memory, for tests and development.

``MockService`` runs in the test's own process, ``MockServer`` listens on a socket, and ``followup-mock serve`` runs a
``MockServer`` from the command line. The pytest plugin has fixtures for the first two. Type checkers and
editors read ``__init__.pyi`` instead.
"""

import importlib
from typing import Any

_MODULES = {
    "control.occurrences": ("HistoryEntry",),
    "control": ("ClockState", "NewOrganization", "PendingJob", "PendingReminder"),
    "world.state.runs": ("Advanced", "JobRun"),
    "world.schema.errors": ("ServiceError",),
    "world.state.faults": ("Fault", "WebhookFault"),
    "world.state.journal": ("JournalEntry",),
    "world.state.records": ("Attempt", "Message"),
    "world.settings": ("KeyRecord", "MockOptions"),
    "pytest_plugin.django_project": ("DjangoProject",),
    "pytest_plugin.environment": ("MockEnvironment", "RejectedRequest"),
    "service.server": ("MockServer",),
    "service.service": ("MockService",),
}
"""The public names of each module."""

__all__ = sorted(name for names in _MODULES.values() for name in names)


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
    if error.name == "django":
        return error
    from followup._for_mockserver import installation

    text = f"{__name__} needs {error.name}, which is not installed: {installation('mockserver')}"
    return ImportError(text, name=error.name)
