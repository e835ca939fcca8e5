"""Delivery attempts to receivers that are mounted in this process, with the same timeout as over a socket.

In process, a synchronous receiver runs in the thread that advances the clock, because it may use objects that belong to
that thread, such as a SQLite connection. It cannot be interrupted: if it took too long, the attempt fails after it has
returned. In a server, where attempts have their own threads, it is abandoned in its thread.

An asynchronous receiver is cancelled at the timeout. It runs in the event loop of the caller (``send_async``), or in
one event loop in a thread that all receivers of the mock share (``send``).
"""

import asyncio
import logging
from contextlib import suppress

import attrs

from followup._for_mockserver import result_within
from followup_mockserver.state.clock import RealTime
from followup_mockserver.state.interrupts import wait_for
from followup_mockserver.webhooks.applications import Applications, EventLoopThread
from followup_mockserver.webhooks.attempting import AttemptResult, PreparedAttempt
from followup_mockserver.webhooks.mounted_call import CANCELLATION_TIMEOUT, MountedCall, Pending, caught
from followup_mockserver.webhooks.receivers import Mount, Receiver, ReceiverKind

logger = logging.getLogger("followup_mockserver")


class MountedSender:
    """Passes delivery attempts to mounted receivers. Thread-safe.

    An exception of a receiver is a failed attempt. In process, the result also has the exception itself, for the
    caller to raise; in a server, it is logged.

    Args:
        in_process: whether synchronous receivers run in the thread that calls ``send``.
        timeout: seconds after which an attempt has failed.
    """

    def __init__(self, *, in_process: bool, timeout: float) -> None:
        self._in_process = in_process
        self._timeout = timeout
        self._event_loop = EventLoopThread()
        self._applications = Applications(timeout)

    def send(self, mount: Mount, attempt: PreparedAttempt) -> AttemptResult:
        """Make an attempt, and return its result."""
        call = self._call(mount, attempt)
        with caught(attempt.signature) as exceptions:
            pending = self._begin(mount, call)
            if pending is not None:
                self._finish(call, pending)
            return self._concluded(mount, call, call.result(exceptions))

    async def send_async(self, mount: Mount, attempt: PreparedAttempt) -> AttemptResult:
        """Make an attempt, and return its result; an asynchronous receiver runs in the running event loop."""
        call = self._call(mount, attempt)
        with caught(attempt.signature) as exceptions:
            pending = call.begin()
            if pending is not None:
                await call.finish(pending)
            return self._concluded(mount, call, call.result(exceptions))

    def check_thread(self) -> None:
        """Check that no application runs in the event loop of this thread, which ``send`` would block.

        Raises:
            RuntimeError: one does.
        """
        url = self._applications.url_in_this_loop()
        if url is not None:
            raise RuntimeError(
                f"the application mounted at {url} runs in this event loop, which this call would block; "
                "use the methods whose names end in _async, such as 'await service.advance_async()'"
            )

    def unmounted(self, receiver: Receiver) -> None:
        """Shut down a receiver that is not mounted any more."""
        error = self._applications.stop(receiver)
        self._report_shutdowns([] if error is None else [error])

    def close(self) -> None:
        """Shut all applications down, and abandon the asynchronous receivers that are still running."""
        errors = self._applications.stop_all()
        self._event_loop.close()
        self._report_shutdowns(errors)

    async def close_async(self) -> None:
        """Shut down the applications in the running event loop."""
        self._report_shutdowns(await self._applications.stop_here())

    def _call(self, mount: Mount, attempt: PreparedAttempt) -> MountedCall:
        return MountedCall(mount, attempt, self._applications, self._timeout)

    def _begin(self, mount: Mount, call: MountedCall) -> Pending | None:
        if self._in_process or mount.kind is ReceiverKind.ASGI:
            return call.begin()
        try:
            return result_within(self._timeout, call.begin, "followup-mock-receiver")
        except TimeoutError:  # not of the receiver, whose exceptions ``begin`` keeps
            return None

    def _finish(self, call: MountedCall, pending: Pending) -> None:
        """Run the rest of a call in the event loop of the mock, and give up if the receiver blocks that loop."""
        finishing = self._event_loop.submit(lambda: call.finish(pending))
        try:
            while not finishing.done():
                left = call.gives_up_at + 2 * CANCELLATION_TIMEOUT - RealTime.monotonic()
                if left <= 0:
                    return
                wait_for(finishing, left)
        finally:
            finishing.cancel()  # without effect unless it is still running
        if not finishing.cancelled():
            finishing.result()

    def _concluded(self, mount: Mount, call: MountedCall, result: AttemptResult) -> AttemptResult:
        error = call.error
        if error is None:
            return result
        if not self._in_process:
            logger.error("exception in %s", call.describe(), exc_info=error)
            return result
        # A test cannot do without an exit, such as KeyboardInterrupt or an outcome of pytest.
        is_exit = not isinstance(error, (Exception, asyncio.CancelledError))
        if not call.raises or not (mount.raise_exceptions or is_exit):
            return result
        with suppress(Exception):  # an exception can be immutable
            error.add_note(f"Raised by {call.describe()}.")
        return attrs.evolve(result, raised=error)

    def _report_shutdowns(self, errors: list[BaseException]) -> None:
        """Raise the first of these exceptions in process, and log the others."""
        raised = errors[0] if errors and self._in_process else None
        for error in errors:
            if error is not raised:
                logger.error("the shutdown of a mounted application failed", exc_info=error)
        if raised is not None:
            with suppress(Exception):
                raised.add_note("Raised by the shutdown of a mounted application.")
            raise raised
