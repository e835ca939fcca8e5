"""The chain of causes of an object, for tests that ask why something happened, or did not."""

from followup_mockserver.control import causes
from followup_mockserver.control.causes import HistoryEntry
from followup_mockserver.state.access import TenantAccess, existing


class HistoryControls:
    """Explain what happened, and why."""

    _access: TenantAccess

    def explain(self, id: str, /) -> list[HistoryEntry]:
        """Return the chain of causes of an object, a delivery, a message or a request, in time order.

        The chain contains what happened to an object, what became of its jobs, messages and webhooks, the reasons why
        something was not sent, and what caused each of these. Each ``cause`` is the ``id`` of an entry before it.

        Args:
            id: id of an object of the API, or of a request (``req_…``), an inbound event (``evt_…``), a job
                (``job_…``), a call of a test control (``ctl_…``), a message (``msg_…``), a webhook delivery (``whd_…``)
                or one of its attempts (``whd_….1``).

        Returns:
            The entries. The history keeps the last 50,000 records; of what is older, only part of the chain is left.

        Raises:
            ServiceError: 404: there is no such id.
        """
        tenant = self._access.tenant
        with tenant.lock:
            return existing(causes.explain(tenant, id), "id in the history")
