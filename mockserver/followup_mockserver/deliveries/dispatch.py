"""Makes delivery attempts: prepares and records each under the tenant's lock, and sends it without the lock.

Code that makes attempts is a generator: it yields each attempt, and is resumed with its result. ``Dispatcher.drive``
sends the attempts of such a generator from synchronous code, ``Dispatcher.drive_async`` from a coroutine. An attempt
goes over a socket, or to a receiver that is mounted in this process, with the same time limit.

In process, a synchronous receiver runs in the thread that advances the clock, because it may use objects that belong to
that thread, such as a SQLite connection. It cannot be interrupted: if it took too long, the attempt fails after it has
returned. In a server, where attempts have their own threads, it is abandoned in its thread. An asynchronous receiver
runs in the event loop of the caller (``drive_async``), or in one in a thread that all receivers of the mock share.
"""

import asyncio
import logging
from collections.abc import Generator
from concurrent import futures
from contextlib import suppress
from typing import Any, TypeVar, cast

import attrs

from followup._for_mockserver import result_within
from followup_mockserver import deliveries
from followup_mockserver.deliveries import AttemptResult, PreparedAttempt
from followup_mockserver.deliveries.applications import Applications, EventLoopThread
from followup_mockserver.deliveries.mounted_call import CANCELLATION_TIMEOUT, MountedCall, Pending
from followup_mockserver.deliveries.mounts import Mount, Mounts, ReceiverKind, caught
from followup_mockserver.deliveries.socket_sender import Sender
from followup_mockserver.world.outcomes import Kind, Outcome
from followup_mockserver.world.schema.formats import without_query
from followup_mockserver.world.state.clock import RealTime
from followup_mockserver.world.state.records import AttemptInProgress
from followup_mockserver.world.state.tenant import Tenant

logger: logging.Logger = logging.getLogger("followup_mockserver")

T = TypeVar("T")

Sending = Generator[PreparedAttempt, AttemptResult, T]
"""Code that makes attempts, and returns a ``T``."""

NOTHING_TO_SEND = AttemptResult(Outcome(Kind.NOTHING_TO_SEND), 0.0)


class Dispatcher:
    """Makes delivery attempts, to mounted applications or over sockets. Thread-safe.

    An exception of a mounted receiver is a failed attempt. In process, the result also has the exception itself, which
    the caller raises; in a server, it is logged.

    Args:
        mounts: the mounted applications.
        in_process: whether synchronous receivers run in the thread that drives the attempts, and exceptions are raised.
        timeout: seconds that a receiver has to respond.
        network: whether webhooks for URLs at which nothing is mounted are sent over the network.
    """

    def __init__(self, mounts: Mounts, *, in_process: bool, timeout: float, network: bool) -> None:
        self._mounts = mounts
        self._in_process = in_process
        self._timeout = timeout
        self._network = network
        self._sender = Sender(timeout)
        self._event_loop = EventLoopThread()
        self._applications = Applications(timeout)

    def attempt(self, tenant: Tenant, due: AttemptInProgress) -> Sending[AttemptResult]:
        """Make an attempt, and record its outcome."""
        # Prepared only now, because the endpoint may have been disabled while the attempt waited for a worker.
        with tenant.lock:
            prepared = None if tenant.ended else deliveries.begin(tenant, due)
        if prepared is None:
            return NOTHING_TO_SEND
        result = yield prepared
        with tenant.lock:
            outcome = deliveries.finish(tenant, prepared, result)
            tenant.notify()
        return attrs.evolve(result, outcome=outcome)

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
        url = self._applications.url_in_this_loop()
        if url is not None:
            raise RuntimeError(
                f"the application mounted at {url} runs in this event loop, which this call would block; use "
                "'await service.advance_async()', or call it in a thread: 'await asyncio.to_thread(service.step)'"
            )

    def close(self) -> None:
        """Shut the applications down, and close all connections, so that attempts over the network fail.

        Asynchronous receivers that are still running are abandoned. A synchronous one cannot be interrupted: its
        thread, a daemon, ends when it returns or times out.
        """
        self._sender.close()
        errors = self._applications.stop_all()
        self._event_loop.close()
        self._report_shutdowns(errors)

    async def close_async(self) -> None:
        """Shut down the applications in the running event loop."""
        self._report_shutdowns(await self._applications.stop_here())

    def _send(self, prepared: PreparedAttempt) -> AttemptResult:
        try:
            mount = self._mounts.at(prepared.url)
            if mount is not None:
                return self._call(mount, prepared)
            return self._sender.send(prepared) if self._network else self._nothing_mounted(prepared.url)
        except BaseException as error:  # noqa: BLE001 - raised again when the attempt has been recorded
            return _interrupted(error)

    async def _send_async(self, prepared: PreparedAttempt) -> AttemptResult:
        try:
            mount = self._mounts.at(prepared.url)
            if mount is not None:
                return await self._call_async(mount, prepared)
            if self._network:
                return await asyncio.to_thread(self._sender.send, prepared)
            return self._nothing_mounted(prepared.url)
        except BaseException as error:  # noqa: BLE001
            return _interrupted(error)

    def _nothing_mounted(self, url: str) -> AttemptResult:
        urls = [without_query(each) for each in self._mounts.urls()]
        return AttemptResult(Outcome(Kind.NOTHING_MOUNTED, without_query(url), names=(*urls,) or ("nothing",)), 0.0)

    def _call(self, mount: Mount, attempt: PreparedAttempt) -> AttemptResult:
        call = MountedCall(mount, attempt, self._applications, self._timeout)
        with caught(attempt.signature) as exceptions:
            pending = None
            if self._in_process or mount.kind is ReceiverKind.ASGI:
                pending = call.begin()
            else:
                with suppress(TimeoutError):  # not of the receiver, whose exceptions ``begin`` keeps
                    pending = result_within(self._timeout, call.begin, "followup-mock-receiver")
            if pending is not None:
                self._finish(call, pending)
            return call.result(exceptions, in_process=self._in_process)

    async def _call_async(self, mount: Mount, attempt: PreparedAttempt) -> AttemptResult:
        call = MountedCall(mount, attempt, self._applications, self._timeout)
        with caught(attempt.signature) as exceptions:
            pending = call.begin()
            if pending is not None:
                await call.finish(pending)
            return call.result(exceptions, in_process=self._in_process)

    def _finish(self, call: MountedCall, pending: Pending) -> None:
        """Run the rest of a call in the event loop of the mock; do not wait for a receiver that blocks that loop."""
        finishing = self._event_loop.submit(lambda: call.finish(pending))
        try:
            while not finishing.done():
                left = call.gives_up_at + 2 * CANCELLATION_TIMEOUT - RealTime.monotonic()
                if left <= 0:
                    return
                futures.wait([finishing], min(left, self._timeout))
        finally:
            finishing.cancel()  # without effect unless it is still running
        if not finishing.cancelled():
            finishing.result()

    def _report_shutdowns(self, errors: list[BaseException]) -> None:
        """Raise the first of these exceptions in process, and log the others."""
        raised = errors[:1] if self._in_process else []
        for error in errors[len(raised) :]:
            logger.error("the shutdown of a mounted application failed", exc_info=error)
        for error in raised:
            with suppress(Exception):
                error.add_note("Raised by the shutdown of a mounted application.")
            raise error


def _interrupted(error: BaseException) -> AttemptResult:
    """Return the result of an attempt that was interrupted: by Ctrl-C, or because its task was cancelled."""
    return AttemptResult(Outcome(Kind.INTERRUPTED, type(error).__name__), 0.0, raised=error)
