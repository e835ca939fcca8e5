"""Makes a delivery attempt: prepares and records it under the tenant's lock, and sends it without the lock."""

import threading
from typing import TYPE_CHECKING

from followup_mockserver.schema.webhook_urls import without_query
from followup_mockserver.state.tenant import Tenant
from followup_mockserver.webhooks import deliveries
from followup_mockserver.webhooks.deliveries import DueAttempt, Outcome, PreparedAttempt
from followup_mockserver.webhooks.mounts import Mounts
from followup_mockserver.webhooks.sender import Sender

if TYPE_CHECKING:
    from followup_mockserver.webhooks.mounted_sender import MountedSender

NOTHING_TO_SEND = "nothing to send"

_URLS_LISTED = 10
"""An error lists at most this many mounted URLs."""


class Dispatcher:
    """Makes delivery attempts, to mounted applications or over sockets. Thread-safe.

    Args:
        mounts: the mounted applications.
        in_callers_thread: whether mounted applications run in the thread that calls ``attempt``.
        timeout: seconds that a receiver has to respond.
        network: whether webhooks for URLs at which nothing is mounted are sent over the network.
    """

    def __init__(self, mounts: Mounts, *, in_callers_thread: bool, timeout: float, network: bool) -> None:
        self._mounts = mounts
        self._sender = Sender(timeout)
        self._in_callers_thread = in_callers_thread
        self._timeout = timeout
        self._network = network
        self._lock = threading.Lock()
        self._mounted_sender: MountedSender | None = None
        self._closed = False

    def attempt(self, tenant: Tenant, due: DueAttempt) -> str:
        """Make an attempt, and return a summary of its outcome.

        Raises:
            ServiceError: 400: a manual retry for a disabled endpoint.
        """
        # Prepared only now, because the endpoint may have been disabled while the attempt waited for a worker.
        with tenant.lock:
            prepared = None if tenant.ended else deliveries.begin(tenant, due)
        if prepared is None:
            return NOTHING_TO_SEND
        outcome = self._send(prepared)
        with tenant.lock:
            summary = deliveries.finish(tenant, prepared, outcome)
            tenant.notify()
        return summary

    def close(self) -> None:
        """Close all connections; attempts in progress fail."""
        self._sender.close()
        with self._lock:
            self._closed = True
            if self._mounted_sender is not None:
                self._mounted_sender.close()

    def _send(self, prepared: PreparedAttempt) -> Outcome:
        receiver = self._mounts.receiver_for(prepared.url)
        if receiver is not None:
            return self._to_mounted().send(receiver, prepared)
        if self._network:
            return self._sender.send(prepared)
        return Outcome(status_code=None, error=self._nothing_mounted(prepared.url), seconds=0.0)

    def _nothing_mounted(self, url: str) -> str:
        urls = [without_query(each) for each in self._mounts.urls()]
        listed = ", ".join(urls[:_URLS_LISTED]) + (", …" if len(urls) > _URLS_LISTED else "")
        return (
            f"Nothing is mounted for {without_query(url)}; mounted: {listed or 'nothing'}. "
            "Use service.mount(), or MockService(allow_network=True)."
        )

    def _to_mounted(self) -> "MountedSender":
        # Imported late, because it imports httpx and asyncio, and a mock of its own process has nothing mounted.
        from followup_mockserver.webhooks.mounted_sender import MountedSender

        with self._lock:
            if self._mounted_sender is None:
                self._mounted_sender = MountedSender(in_callers_thread=self._in_callers_thread, timeout=self._timeout)
                if self._closed:
                    self._mounted_sender.close()
            return self._mounted_sender
