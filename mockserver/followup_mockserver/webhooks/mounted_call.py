"""One call of a mounted receiver: an ASGI or WSGI application, or a function, and the result of the attempt."""

import asyncio
import contextvars
import functools
import inspect
import logging
import sys
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import httpx

from followup._for_mockserver import SIGNATURE_HEADER
from followup_mockserver.schema.formats import without_query
from followup_mockserver.state.clock import RealTime
from followup_mockserver.state.interrupts import interruptible
from followup_mockserver.state.outcomes import Kind, Outcome
from followup_mockserver.state.records import LONGEST_RESPONSE_BODY, ReceiverResponse, joined_headers
from followup_mockserver.webhooks.applications import Applications, Headers, StartupNotCompleteError, call_asgi
from followup_mockserver.webhooks.attempting import AttemptResult, PreparedAttempt
from followup_mockserver.webhooks.receivers import Mount, ReceiverKind
from followup_mockserver.webhooks.transport import call_wsgi


class MountedResponse:
    """Collects a response whose body arrives in parts.

    Args:
        status: the HTTP status.
        headers: names and values.
    """

    def __init__(self, status: int, headers: Headers) -> None:
        self._status = status
        self._headers = headers
        self._body = b""
        self._length = 0
        self._is_whole = False

    def add(self, part: bytes, is_last: bool) -> None:
        """Add a part of the body; what is beyond the limit is dropped."""
        self._length += len(part)
        self._body += part[: LONGEST_RESPONSE_BODY - len(self._body)]
        self._is_whole = is_last and self._length <= LONGEST_RESPONSE_BODY

    def read(self, response: httpx.Response) -> None:
        """Add the beginning of the body of this response, as far as it can be read."""
        if not isinstance(response.stream, httpx.SyncByteStream):
            return
        with suppress(Exception):  # the status has decided the outcome already
            for part in response.iter_bytes():
                self.add(part, False)
                if self._length > LONGEST_RESPONSE_BODY:
                    break
            self.add(b"", True)

    def kept(self) -> ReceiverResponse:
        """Return what is kept of the response."""
        return ReceiverResponse(
            status_line=f"HTTP/1.1 {self._status} {httpx.codes.get_reason_phrase(self._status)}".rstrip(),
            headers=joined_headers(self._headers),
            body=self._body,
            body_is_whole=self._is_whole,
        )


logger = logging.getLogger("followup_mockserver")

Pending = Callable[[], Coroutine[Any, Any, None]]
"""The rest of a call, which needs an event loop."""

CANCELLATION_TIMEOUT = 0.5
"""Seconds within which a cancelled coroutine must end; otherwise it is left behind."""

_STARTUP_EXTRA = 1.0
"""Seconds beyond the timeout after which a thread stops waiting for a startup."""

_MAX_TRACEBACK = 20_000
"""Characters of a traceback that are kept: the last ones."""

_OWN_MODULES = (
    "followup_mockserver.webhooks.",
    "followup_mockserver.state.",
    "followup_mockserver.webhooks.transport",
    "asyncio.",
)


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
        self._response: MountedResponse | None = None
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
                self._end_with(interruptible(call_wsgi, self._mount.receiver, self._request))
                return None
            returned = interruptible(self._mount.receiver, self._request)
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
        response = None if outcome.status is None or self._response is None else self._response.kept()
        return AttemptResult(outcome, seconds, text, response)

    @property
    def raises(self) -> bool:
        """Whether the exception is one of the receiver, and not the consequence of its timeout."""
        if self.error is None or self._is_unfinished_startup:
            return False
        return not (self._is_late and isinstance(self.error, (Exception, asyncio.CancelledError)))

    def describe(self) -> str:
        """Return which receiver raised the exception, in which attempt: ids and URLs, no payload."""
        what = "the startup of the receiver" if self._in_startup else "the receiver"
        attempt = self._attempt
        return (
            f"{what} mounted at {without_query(self._mount.url)}, in attempt {attempt.number} of the delivery "
            f"{attempt.delivery.id} ({attempt.delivery.event_type}) to {without_query(attempt.url)}"
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
        self.gives_up_at = self._began + self._timeout

    def _respond(self, status: int, headers: Headers) -> MountedResponse:
        self._status = status
        self._response = MountedResponse(status, headers)
        self._responded = RealTime.monotonic()
        self.gives_up_at = self._responded + self._timeout
        return self._response

    def _end_with(self, response: Any) -> None:
        if not isinstance(response, httpx.Response):
            raise TypeError(
                f"a mounted function must return an httpx.Response, and returned a {type(response).__name__}"
            )
        self._respond(response.status_code, response.headers.multi_items()).read(response)
        self._ended = self._responded

    def _add_body(self, part: bytes, is_last: bool) -> None:
        if self._response is not None and not self._is_over:
            self._response.add(part, is_last)

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


def _traceback(error: BaseException) -> str:
    """Return the traceback of an exception as text, from the first frame of the receiver on."""
    first = error.__traceback__
    while first is not None and first.tb_frame.f_globals.get("__name__", "").startswith(_OWN_MODULES):
        first = first.tb_next
    lines = traceback.format_exception(type(error), error, first or error.__traceback__)
    return "".join(lines)[-_MAX_TRACEBACK:]


_current: contextvars.ContextVar[object] = contextvars.ContextVar("followup_mock_attempt", default=None)


@contextmanager
def caught(signature: str) -> Iterator[list[BaseException]]:
    """Collect the exceptions that Flask and Django catch while they handle an attempt, in the order of catching.

    Only frameworks that have been imported are watched.

    Args:
        signature: signature header of the attempt.
    """
    exceptions: list[BaseException] = []

    def from_flask(_: object, exception: BaseException, **__: object) -> None:
        add(exception, sys.modules["flask"].request)

    def from_django(request: Any = None, **_: object) -> None:
        error = sys.exc_info()[1]
        if error is not None and request is not None:
            add(error, request)

    def add(error: BaseException, request: Any) -> None:
        if _current.get() is exceptions and request.headers.get(SIGNATURE_HEADER) == signature:
            exceptions.append(error)

    signals = [
        (module.got_request_exception, receive)
        for name, receive in (("flask", from_flask), ("django.core.signals", from_django))
        if (module := sys.modules.get(name)) is not None
    ]
    for signal, receive in signals:
        signal.connect(receive)  # both keep weak references, and the functions live until the end of this one
    token = _current.set(exceptions)
    try:
        yield exceptions
    finally:
        _current.reset(token)
        for signal, receive in signals:
            signal.disconnect(receive)
