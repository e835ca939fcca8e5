"""One call of a receiver that is mounted in this process, and the result of the attempt that it is."""

import asyncio
import functools
import inspect
import logging
import traceback
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any

import httpx

from followup_mockserver.deliveries import AttemptResult, PreparedAttempt
from followup_mockserver.deliveries.applications import STARTUP_TIMEOUT, Applications
from followup_mockserver.deliveries.mounts import Headers, Mount, ReceiverKind, call_asgi, call_wsgi
from followup_mockserver.world.outcomes import Kind, Outcome
from followup_mockserver.world.schema.formats import without_query
from followup_mockserver.world.state.clock import RealTime
from followup_mockserver.world.state.records import LONGEST_RESPONSE_BODY, ReceiverResponse, joined_headers

logger: logging.Logger = logging.getLogger("followup_mockserver")

Pending = Callable[[], Coroutine[Any, Any, None]]
"""The rest of a call, which needs an event loop."""

CANCELLATION_TIMEOUT = 0.5
"""Seconds within which a cancelled coroutine must end; otherwise it is left behind."""

_MAX_TRACEBACK = 20_000
"""Characters of a traceback that are kept: the last ones."""

_url = functools.lru_cache(256)(httpx.URL)  # to parse the URL took half of the time that a request takes to make


class MountedCall:
    """One call of a mounted receiver.

    ``begin`` calls it in the current thread, and ``finish`` in the running event loop as far as necessary. Neither
    raises an exception of the receiver, which is part of the result.

    Attributes:
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
        self._request = httpx.Request("POST", _url(attempt.url), headers=attempt.headers, content=attempt.body)
        self._error: BaseException | None = None
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
                # An application that has been started already replaces this at once, in ``_call_asgi``.
                self.gives_up_at += STARTUP_TIMEOUT
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
                # Looked at again after the timeout, because the end of a startup shortens what is left.
                await asyncio.wait({task}, timeout=min(left, self._timeout))
            if not task.done() and self._status is None:
                task.cancel()
                await asyncio.wait({task}, timeout=CANCELLATION_TIMEOUT)
        except asyncio.CancelledError:
            task.cancel()
            with suppress(asyncio.CancelledError):  # anyio cancels again at each await
                await asyncio.wait({task}, timeout=CANCELLATION_TIMEOUT)
            raise

    def result(self, caught: list[BaseException], *, in_process: bool) -> AttemptResult:
        """Return the result of the attempt, and log the exception in a server.

        Args:
            caught: the exceptions that Flask or Django turned into a response.
            in_process: whether the caller raises the exception of the receiver; otherwise it is logged.
        """
        # Background work goes on, but what it sends is no part of the response any more.
        self._is_over = True
        seconds = (self._ended or RealTime.monotonic()) - self._began
        succeeded = self._status is not None and 200 <= self._status < 300
        if self._error is None and caught and not succeeded:
            # The last one led to the response: a framework may have handled others before.
            self._error = caught[-1]
        outcome = Outcome(Kind.TIMED_OUT, seconds=self._timeout) if self._is_late else self._outcome(succeeded)
        response = None if outcome.status is None else self._kept(outcome.status)
        if self._error is None:
            return AttemptResult(outcome, seconds, response=response)
        raised, text = None, "".join(traceback.format_exception(self._error))  # before it gets a note
        if not in_process:
            logger.error("exception in %s", self._described(), exc_info=self._error)
        elif self._is_raised(self._error):
            raised = self._error
            with suppress(Exception):  # an exception can be immutable
                raised.add_note(f"Raised by {self._described()}.")
        return AttemptResult(outcome, seconds, text[-_MAX_TRACEBACK:], response, raised)

    def _is_raised(self, error: BaseException) -> bool:
        # A test cannot do without an exit, such as KeyboardInterrupt or an outcome of pytest.
        is_exit = not isinstance(error, (Exception, asyncio.CancelledError))
        # Once the receiver is late, an exception may be the consequence of its cancellation.
        return is_exit or (self._mount.raise_exceptions and not self._is_late)

    def _described(self) -> str:
        """Return which receiver raised the exception, in which attempt: ids and URLs, no payload."""
        what = "the startup of the receiver" if self._in_startup else "the receiver"
        number, delivery = self._attempt.number, self._attempt.due.delivery
        return (
            f"{what} mounted at {without_query(self._mount.url)}, in attempt {number} of the delivery "
            f"{delivery.id} ({delivery.event_type}) to {without_query(self._attempt.url)}"
        )

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
                logger.exception("work after the response failed: %s", self._described())

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
        # A response can have an asynchronous body, which nothing reads here.
        if isinstance(response.stream, httpx.SyncByteStream):
            with suppress(Exception):  # the status has decided the outcome already
                self._add_body(response.read(), True)

    def _add_body(self, part: bytes, is_last: bool) -> None:
        if not self._is_over:
            self._body += part[: LONGEST_RESPONSE_BODY + 1 - len(self._body)]
            self._body_has_ended = is_last

    def _fail(self, error: BaseException) -> None:
        self._ended = RealTime.monotonic()
        self._error = error

    @property
    def _is_late(self) -> bool:
        if self._in_startup:
            return self._ended is None
        decided = self._responded or self._ended
        return decided is None or decided - self._began > self._timeout

    def _outcome(self, succeeded: bool) -> Outcome:
        if not succeeded and self._error is not None:
            kind = Kind.STARTUP_RAISED if self._in_startup else Kind.RAISED
            return Outcome(kind, type(self._error).__name__, self._status)
        return Outcome(Kind.RESPONDED, status=self._status)

    def _kept(self, status: int) -> ReceiverResponse:
        return ReceiverResponse(
            status_line=f"HTTP/1.1 {status} {httpx.codes.get_reason_phrase(status)}".rstrip(),
            headers=joined_headers(self._headers),
            body=bytes(self._body[:LONGEST_RESPONSE_BODY]),
            body_is_whole=self._body_has_ended and len(self._body) <= LONGEST_RESPONSE_BODY,
        )
