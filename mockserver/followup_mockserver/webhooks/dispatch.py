"""Makes a delivery attempt: prepares and records it under the tenant's lock, and sends it without the lock."""

import threading
from typing import TYPE_CHECKING

from followup_mockserver.state.tenant import Tenant
from followup_mockserver.webhooks import deliveries
from followup_mockserver.webhooks.deliveries import DueAttempt
from followup_mockserver.webhooks.mounts import Mounts
from followup_mockserver.webhooks.sender import Sender

if TYPE_CHECKING:
    from followup_mockserver.webhooks.mounted_sender import MountedSender

NOTHING_TO_SEND = "nothing to send"


class Dispatcher:
    """Makes delivery attempts, to mounted applications or over sockets. Thread-safe.

    Args:
        mounts: the mounted applications.
        in_callers_thread: whether mounted applications run in the thread that calls ``attempt``.
        timeout: seconds that a receiver has to respond.
    """

    def __init__(self, mounts: Mounts, *, in_callers_thread: bool, timeout: float) -> None:
        self._mounts = mounts
        self._sender = Sender(timeout)
        self._in_callers_thread = in_callers_thread
        self._timeout = timeout
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
        receiver = self._mounts.receiver_for(prepared.url)
        outcome = self._sender.send(prepared) if receiver is None else self._to_mounted().send(receiver, prepared)
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

    def _to_mounted(self) -> "MountedSender":
        # Imported late, because it imports httpx and asyncio, and a mock of its own process has nothing mounted.
        from followup_mockserver.webhooks.mounted_sender import MountedSender

        with self._lock:
            if self._mounted_sender is None:
                self._mounted_sender = MountedSender(in_callers_thread=self._in_callers_thread, timeout=self._timeout)
                if self._closed:
                    self._mounted_sender.close()
            return self._mounted_sender
