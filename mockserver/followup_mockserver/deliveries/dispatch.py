"""Makes delivery attempts: prepares and records each under the tenant's lock, and sends it without the lock.

Code that makes attempts is a generator: it yields each attempt, and is resumed with its result. ``Dispatcher.drive``
sends the attempts of such a generator from synchronous code, ``Dispatcher.drive_async`` from a coroutine.
"""

import threading
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from followup_mockserver import deliveries
from followup_mockserver.deliveries import AttemptResult, PreparedAttempt
from followup_mockserver.deliveries.mounts import Mounts
from followup_mockserver.deliveries.socket_sender import Sender
from followup_mockserver.world.schema.formats import without_query
from followup_mockserver.world.state.outcomes import Kind, Outcome
from followup_mockserver.world.state.records import AttemptInProgress
from followup_mockserver.world.state.tenant import Tenant

if TYPE_CHECKING:
    from followup_mockserver.deliveries.mounted_sender import MountedSender

T = TypeVar("T")

Sending = Generator[PreparedAttempt, AttemptResult, T]
"""Code that makes attempts, and returns a ``T``."""

NOTHING_TO_SEND = Outcome(Kind.NOTHING_TO_SEND)


class Attempted(NamedTuple):
    """An attempt that has been recorded.

    Attributes:
        outcome: its outcome.
        raised: the exception that is raised out of ``advance``; None if there is none.
    """

    outcome: Outcome
    raised: BaseException | None = None


class Dispatcher:
    """Makes delivery attempts, to mounted applications or over sockets. Thread-safe.

    Args:
        mounts: the mounted applications.
        in_process: whether mounted applications run in the thread that drives the attempts, and their exceptions are
            raised.
        timeout: seconds that a receiver has to respond.
        network: whether webhooks for URLs at which nothing is mounted are sent over the network.
    """

    def __init__(self, mounts: Mounts, *, in_process: bool, timeout: float, network: bool) -> None:
        self._mounts = mounts
        self._sender = Sender(timeout)
        self._in_process = in_process
        self._timeout = timeout
        self._network = network
        self._lock = threading.Lock()
        self._mounted_sender: MountedSender | None = None
        self._closed = False

    def attempt(self, tenant: Tenant, due: AttemptInProgress) -> Sending[Attempted]:
        """Make an attempt, and record its outcome.

        Raises:
            ServiceError: 400: a manual retry for a disabled endpoint.
        """
        # Prepared only now, because the endpoint may have been disabled while the attempt waited for a worker.
        with tenant.lock:
            prepared = None if tenant.ended else deliveries.begin(tenant, due)
        if prepared is None:
            return Attempted(NOTHING_TO_SEND)
        result = yield prepared
        with tenant.lock:
            outcome = deliveries.finish(tenant, prepared, result)
            tenant.notify()
        return Attempted(outcome, result.raised)

    def drive(self, sending: Sending[T]) -> T:
        """Send the attempts of a generator one after the other, and return its result."""
        try:
            prepared = next(sending)
            while True:
                prepared = sending.send(self._send(prepared))
        except StopIteration as end:
            return cast("T", end.value)

    async def drive_async(self, sending: Sending[T]) -> T:
        """Do the same in a coroutine: asynchronous receivers run in the running event loop."""
        result: Any = None
        try:
            while True:
                result = await self._send_async(sending.send(result))
        except StopIteration as end:
            return cast("T", end.value)

    def check_thread(self) -> None:
        """Check that no application runs in the event loop of this thread, which ``drive`` would block.

        Raises:
            RuntimeError: one does.
        """
        if self._mounted_sender is not None:
            self._mounted_sender.check_thread()

    def close(self) -> None:
        """Shut the applications down, and close all connections, so that attempts over the network fail.

        A synchronous mounted receiver cannot be interrupted: its thread, a daemon, ends when it returns or times out.
        """
        self._sender.close()
        with self._lock:
            self._closed = True
            mounted_sender = self._mounted_sender
        if mounted_sender is not None:
            mounted_sender.close()

    async def close_async(self) -> None:
        """Shut down the applications in the running event loop."""
        if self._mounted_sender is not None:
            await self._mounted_sender.close_async()

    def _send(self, prepared: PreparedAttempt) -> AttemptResult:
        try:
            mount = self._mounts.at(prepared.url)
            if mount is not None:
                return self._to_mounted().send(mount, prepared)
            return self._sender.send(prepared) if self._network else self._nothing_mounted(prepared.url)
        except BaseException as error:  # noqa: BLE001 - raised again when the attempt has been recorded
            return _interrupted(error)

    async def _send_async(self, prepared: PreparedAttempt) -> AttemptResult:
        try:
            mount = self._mounts.at(prepared.url)
            if mount is not None:
                return await self._to_mounted().send_async(mount, prepared)
            if self._network:
                import asyncio  # late, because a mock of its own process does not need it

                return await asyncio.to_thread(self._sender.send, prepared)
            return self._nothing_mounted(prepared.url)
        except BaseException as error:  # noqa: BLE001
            return _interrupted(error)

    def _nothing_mounted(self, url: str) -> AttemptResult:
        urls = [without_query(each) for each in self._mounts.urls()]
        return AttemptResult(Outcome(Kind.NOTHING_MOUNTED, without_query(url), names=(*urls,) or ("nothing",)), 0.0)

    def _to_mounted(self) -> "MountedSender":
        # Imported late, because it imports httpx and asyncio, and a mock of its own process has nothing mounted.
        from followup_mockserver.deliveries.mounted_sender import MountedSender

        with self._lock:
            if self._mounted_sender is None:
                self._mounted_sender = MountedSender(in_process=self._in_process, timeout=self._timeout)
                if self._closed:
                    self._mounted_sender.close()
            return self._mounted_sender


def _interrupted(error: BaseException) -> AttemptResult:
    """Return the result of an attempt that was interrupted: by Ctrl-C, or because its task was cancelled."""
    return AttemptResult(Outcome(Kind.INTERRUPTED, type(error).__name__), 0.0, raised=error)
