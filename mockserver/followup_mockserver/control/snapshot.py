"""Snapshots: save the state, and replace it by a saved one."""

from typing import Any

from followup_mockserver.state.access import TenantAccess
from followup_mockserver.state.snapshots.reading import SnapshotSource


class SnapshotControls:
    """Save and restore the state."""

    _access: TenantAccess

    def save(self) -> dict[str, Any]:
        """Return the state as JSON-compatible data.

        On a ``MockService`` or ``MockServer`` this is the state of the whole mock, on the controls that
        ``organization(key)`` returned that of the organization. The state consists of the organizations with their
        settings, all records, the clock, the pending jobs, deliveries and attempts, messages, idempotency keys, faults,
        the history, and what the next ids depend on; it does not contain the journal and the windows of the rate limit.
        A request or a delivery attempt that is in progress counts as not yet begun.

        The data contains personal data, API keys and signing secrets.

        Returns:
            A new dict, for ``json.dump``, ``restore`` and ``MockService.load``.
        """
        return self._access.save()

    def restore(self, state: SnapshotSource) -> None:
        """Replace the state by a saved one. Nothing of the current state remains, and none of its webhooks is sent.

        On a ``MockService`` or ``MockServer`` this replaces all organizations. The options of the mock, its mounted
        applications and the state that ``reset`` returns to stay as they are.

        On the controls that ``organization(key)`` returned it replaces the state of that organization by a snapshot of
        one organization. If that is the same organization, its API keys are restored as well. A snapshot of another
        organization can be loaded into any number of organizations: each keeps its own id and API keys.

        Args:
            state: the data that ``save`` returned, its JSON text (``str`` or ``bytes``), or the path of a file with
                this text (``pathlib.Path``).

        Raises:
            OSError: the file cannot be read.
            ServiceError: 409: an API key in the snapshot belongs to another organization.
            ValueError: an invalid snapshot, or one of a newer version of followup; the message names the place, and
                nothing has changed.
        """
        self._access.restore(state)
