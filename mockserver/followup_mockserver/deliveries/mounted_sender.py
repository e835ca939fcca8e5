"""Delivery attempts to receivers that are mounted in this process, with the same timeout as over a socket.

In process, a synchronous receiver runs in the thread that advances the clock, because it may use objects that belong to
that thread, such as a SQLite connection. It cannot be interrupted: if it took too long, the attempt fails after it has
returned. In a server, where attempts have their own threads, it is abandoned in its thread.

An asynchronous receiver is cancelled at the timeout. It runs in the event loop of the caller (``send_async``), or in
one event loop in a thread that all receivers of the mock share (``send``).
"""

import asyncio
import functools
import inspect
import logging
import traceback
from collections.abc import Awaitable, Callable, Coroutine
from concurrent import futures
from contextlib import suppress
from typing import Any

import attrs
import httpx

from followup._for_mockserver import result_within
from followup_mockserver.deliveries import AttemptResult, PreparedAttempt
from followup_mockserver.deliveries.applications import Applications, EventLoopThread, StartupNotCompleteError
from followup_mockserver.deliveries.mounts import Headers, Mount, ReceiverKind, call_asgi, call_wsgi, caught
from followup_mockserver.world.schema.formats import without_query
from followup_mockserver.world.state.clock import RealTime
from followup_mockserver.world.state.outcomes import Kind, Outcome
from followup_mockserver.world.state.records import LONGEST_RESPONSE_BODY, ReceiverResponse, joined_headers

logger: logging.Logger = logging.getLogger("followup_mockserver")

Pending = Callable[[], Coroutine[Any, Any, None]]
"""The rest of a call, which needs an event loop."""

CANCELLATION_TIMEOUT = 0.5
"""Seconds within which a cancelled coroutine must end; otherwise it is left behind."""

_STARTUP_EXTRA = 1.0
"""Seconds beyond the timeout after which a thread stops waiting for a startup."""

_MAX_TRACEBACK = 20_000
"""Characters of a traceback that are kept: the last ones."""

_OWN_MODULES = ("followup_mockserver.deliveries.", "followup_mockserver.world.state.", "asyncio.")


class MountedCall:
    """One call of a mounted receiver.

    ``begin`` calls it in the current thread, and ``finish`` in the running event loop as far as necessary. Neither
    raises an exception of the receiver; ``error`` is the exception.

    Attributes:
        error: the exception that the receiver raised; None if it raised none.
        gives_up_at: the instant, in real time, after which nobody waits for the receiver.

    Args:
        mount: the receiver.
        attempt: the attempt that it receives.
        applications: the ASGI applications that have been started.
        timeout: seconds that the receiver has to respond.
    """

    def __init__(self, mount: Mount, attempt: PreparedAttempt, applications: Applications, timeout: float) -> None:
        self._mount = mount
        self._attempt = attempt
        self._applications = applications
        self._timeout = timeout
        self._request = httpx.Request("POST", attempt.url, headers=attempt.headers, content=attempt.body)
        self.error: BaseException | None = None
        self._status: int | None = None
        self._headers: Headers = ()
        self._body = bytearray()
        self._body_has_ended = False
        self._in_startup = False
        self._is_over = False
        self._responded: float | None = None
        self._ended: float | None = None
        self._start()

    def begin(self) -> Pending | None:
        """Call the receiver, and return the rest of the call if the receiver is asynchronous."""
        try:
            if self._mount.kind is ReceiverKind.ASGI:
                self._in_startup = True
                self.gives_up_at += self._timeout + _STARTUP_EXTRA
                return self._call_asgi
            if self._mount.kind is ReceiverKind.WSGI:
                self._end_with(call_wsgi(self._mount.receiver, self._request))
                return None
            returned = self._mount.receiver(self._request)
            if inspect.isawaitable(returned):
                return functools.partial(self._await, returned)
            self._end_with(returned)
        except BaseException as error:  # noqa: BLE001 - the outcome of the attempt
            self._fail(error)
        return None

    async def finish(self, pending: Pending) -> None:
        """Run the rest of the call in the running event loop, and cancel it at the timeout.

        Work after the response, such as a background task, has the timeout again, and then goes on by itself.
        """
        task = asyncio.create_task(self._contain(pending))
        try:
            while not task.done() and (left := self.gives_up_at - RealTime.monotonic()) > 0:
                await asyncio.wait({task}, timeout=left)
            if not task.done() and self._status is None:
                task.cancel()
                await asyncio.wait({task}, timeout=CANCELLATION_TIMEOUT)
        except asyncio.CancelledError:
            task.cancel()
            with suppress(asyncio.CancelledError):  # anyio cancels again at each await
                await asyncio.wait({task}, timeout=CANCELLATION_TIMEOUT)
            raise

    def result(self, caught: list[BaseException]) -> AttemptResult:
        """Return the result of the attempt, and set ``error`` to the exception that caused it.

        Args:
            caught: the exceptions that Flask or Django turned into a response.
        """
        self._is_over = True
        seconds = (self._ended or RealTime.monotonic()) - self._began
        succeeded = self._status is not None and 200 <= self._status < 300
        if self.error is None and caught and not succeeded:
            self.error = caught[-1]
        outcome = Outcome(Kind.TIMED_OUT, seconds=self._timeout) if self._is_late else self._outcome(succeeded)
        text = None if self.error is None or self._is_unfinished_startup else _traceback(self.error)
        return AttemptResult(outcome, seconds, text, None if outcome.status is None else self._kept(outcome.status))

    @property
    def raises(self) -> bool:
        """Whether the exception is one of the receiver, and not the consequence of its timeout."""
        if self.error is None or self._is_unfinished_startup:
            return False
        return not (self._is_late and isinstance(self.error, (Exception, asyncio.CancelledError)))

    def describe(self) -> str:
        """Return which receiver raised the exception, in which attempt: ids and URLs, no payload."""
        what = "the startup of the receiver" if self._in_startup else "the receiver"
        number, delivery = self._attempt.number, self._attempt.due.delivery
        return (
            f"{what} mounted at {without_query(self._mount.url)}, in attempt {number} of the delivery "
            f"{delivery.id} ({delivery.event_type}) to {without_query(self._attempt.url)}"
        )

    # --- the course of the call ----------------------------------------------------------------------------------

    async def _call_asgi(self) -> None:
        state = await self._applications.state_of(self._mount)
        self._start()  # in production the application has been started before
        await call_asgi(self._mount.receiver, self._request, state, self._respond, self._add_body)

    async def _await(self, returned: Awaitable[Any]) -> None:
        self._end_with(await returned)

    async def _contain(self, pending: Pending) -> None:
        try:
            await pending()
            self._ended = self._ended or RealTime.monotonic()
        except BaseException as error:  # an exit would end the event loop
            self._fail(error)
            if self._is_over and isinstance(error, Exception):
                logger.exception("work after the response failed: %s", self.describe())

    def _start(self) -> None:
        self._in_startup = False
        self._began = RealTime.monotonic()
        self.gives_up_at: float = self._began + self._timeout

    def _respond(self, status: int, headers: Headers) -> None:
        self._status, self._headers = status, headers
        self._responded = RealTime.monotonic()
        self.gives_up_at = self._responded + self._timeout

    def _end_with(self, response: Any) -> None:
        if not isinstance(response, httpx.Response):
            raise TypeError(
                f"a mounted function must return an httpx.Response, and returned a {type(response).__name__}"
            )
        self._respond(response.status_code, response.headers.multi_items())
        self._ended = self._responded
        if isinstance(response.stream, httpx.SyncByteStream):
            with suppress(Exception):  # the status has decided the outcome already
                for part in response.iter_bytes():
                    self._add_body(part, False)
                    if len(self._body) > LONGEST_RESPONSE_BODY:
                        break
                self._add_body(b"", True)

    def _add_body(self, part: bytes, is_last: bool) -> None:
        if not self._is_over:
            self._body += part[: LONGEST_RESPONSE_BODY + 1 - len(self._body)]
            self._body_has_ended = is_last

    def _fail(self, error: BaseException) -> None:
        self._ended = RealTime.monotonic()
        self.error = error

    # --- its outcome ---------------------------------------------------------------------------------------------

    @property
    def _is_late(self) -> bool:
        if self._in_startup:
            return self._ended is None
        decided = self._responded or self._ended
        return decided is None or decided - self._began > self._timeout

    @property
    def _is_unfinished_startup(self) -> bool:
        return isinstance(self.error, StartupNotCompleteError)

    def _outcome(self, succeeded: bool) -> Outcome:
        if not succeeded and self._is_unfinished_startup:
            return Outcome(Kind.STARTUP_UNFINISHED, seconds=self._timeout, status=self._status)
        if not succeeded and self.error is not None:
            kind = Kind.STARTUP_RAISED if self._in_startup else Kind.RAISED
            return Outcome(kind, type(self.error).__name__, self._status)
        return Outcome(Kind.RESPONDED, status=self._status)

    def _kept(self, status: int) -> ReceiverResponse:
        return ReceiverResponse(
            status_line=f"HTTP/1.1 {status} {httpx.codes.get_reason_phrase(status)}".rstrip(),
            headers=joined_headers(self._headers),
            body=bytes(self._body[:LONGEST_RESPONSE_BODY]),
            body_is_whole=self._body_has_ended and len(self._body) <= LONGEST_RESPONSE_BODY,
        )


def _traceback(error: BaseException) -> str:
    """Return the traceback of an exception as text, from the first frame of the receiver on."""
    first = error.__traceback__
    while first is not None and first.tb_frame.f_globals.get("__name__", "").startswith(_OWN_MODULES):
        first = first.tb_next
    lines = traceback.format_exception(type(error), error, first or error.__traceback__)
    return "".join(lines)[-_MAX_TRACEBACK:]


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
            return self._concluded(mount, call, call.result(exceptions))

    async def send_async(self, mount: Mount, attempt: PreparedAttempt) -> AttemptResult:
        """Make an attempt, and return its result; an asynchronous receiver runs in the running event loop."""
        call = MountedCall(mount, attempt, self._applications, self._timeout)
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

    def close(self) -> None:
        """Shut all applications down, and abandon the asynchronous receivers that are still running."""
        errors = self._applications.stop_all()
        self._event_loop.close()
        self._report_shutdowns(errors)

    async def close_async(self) -> None:
        """Shut down the applications in the running event loop."""
        self._report_shutdowns(await self._applications.stop_here())

    def _finish(self, call: MountedCall, pending: Pending) -> None:
        """Run the rest of a call in the event loop of the mock; do not wait for a receiver that blocks that loop."""
        finishing = self._event_loop.submit(lambda: call.finish(pending))
        try:
            while not finishing.done():
                left = call.gives_up_at + 2 * CANCELLATION_TIMEOUT - RealTime.monotonic()
                if left <= 0:
                    return
                futures.wait([finishing], left)
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
