"""A call, the steps that a driver carries out for it, and their outcomes: what passes between ``call`` and ``http``.

There are two drivers, ``drive`` for a thread and ``drive_async`` for a task; ``call`` has their contract. They sleep in
the time of the client, which is virtual in a test with the mock.

A driver converts each response and exception of its HTTP library to an outcome, so that the decisions about a call are
independent of that library::

    Outcome
    ├── Response          the service, or a proxy in front of it, responded
    └── NoResponse
        ├── NotSendable   the request is invalid for the HTTP library; every further attempt would fail as well
        ├── NotSent       there was no connection, so the service has not received the request
        ├── Broken        the connection broke; the service may have carried out the request
        ├── TimedOut      no response in time; the service may have carried out the request
        └── Lost          any other failure; the service may have carried out the request
"""

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar, cast

import attrs

from followup._core.api_rules import WasSent
from followup._core.errors import APIStatusError
from followup._core.results import Result
from followup._core.time import Time


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Response:
    """A response that was read to its end.

    Attributes:
        headers: the headers, by lower-case name or in a mapping that ignores case.
        content: the body, decompressed.
        problem: reason why the body cannot be used, such as ``is larger than 64 MiB``; then ``content`` is empty, or
            the beginning of the body of an error.
        note: what else the error for this response says.
    """

    status_code: int
    headers: Mapping[str, str]
    content: bytes
    problem: str | None = None
    note: str = ""
    was_sent: ClassVar[WasSent] = "yes"

    @property
    def may_be_done(self) -> bool:
        """Whether the service may have carried out the request although the attempt failed."""
        # A gateway that has given up waiting sends these, while the service goes on.
        return self.status_code >= 500 or self.status_code == 408

    @property
    def is_success(self) -> bool:
        """Whether the status is a 2xx."""
        return 200 <= self.status_code < 300


@attrs.frozen(eq=False, repr=False)
class NoResponse:
    """Base of the outcomes without a response.

    Attributes:
        name: name of the failure in logs and errors: the HTTP library's class of exception.
        detail: details that are safe to show. Most messages of HTTP libraries are not, since they may quote bytes of
            the response.
        timed_out: whether the attempt ended because its time limit was reached.
    """

    name: str
    detail: str = ""
    timed_out: bool = attrs.field(default=False, kw_only=True)
    was_sent: ClassVar[WasSent] = "maybe"

    @property
    def may_be_done(self) -> bool:
        """Whether the service may have carried out the request."""
        return self.was_sent == "maybe"


class NotSendable(NoResponse):
    """The request is invalid for the HTTP library."""

    was_sent = "no"


class NotSent(NoResponse):
    """There was no connection to send the request on."""

    was_sent = "no"


class Broken(NoResponse):
    """The connection broke while writing the request or reading the response."""


@attrs.frozen(eq=False, repr=False)
class TimedOut(NoResponse):
    """Writing the request or reading the response took too long."""

    timed_out: bool = attrs.field(default=True, kw_only=True)


class Lost(NoResponse):
    """Any other failure."""


Outcome = Response | NoResponse


R = TypeVar("R", bound=Result)
T = TypeVar("T")


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Call(Generic[R]):
    """One call, complete before its first attempt, so that every attempt sends the same bytes and the same key.

    Attributes:
        decode: converts the JSON of a successful response to the result.
        batch_error: class of the error to raise for a body that has ``results``.
        when_gone: creates the result of a deletion that an earlier attempt may have carried out.
        object_id: id in the path, which the result must have as well; None where it need not.
        event_ids: ids of the events of a batch, which the results must be about; None for any other call.
    """

    operation: str
    method: str
    path_template: str
    path: str
    query: str = ""
    content: bytes | None = None
    idempotency_key: str | None = None
    decode: Callable[[Any], R]
    batch_error: type[APIStatusError] | None = None
    when_gone: Callable[[], R] | None = None
    object_id: str | None = None
    event_ids: Sequence[str] | None = None


@attrs.frozen(kw_only=True, repr=False)
class Send:
    """A step: send this request once, and resume the generator with the outcome.

    Attributes:
        timeouts: seconds for the parts of the attempt (connect, read, write, pool); None for those of the HTTP client.
        seconds: time limit of the attempt as a whole, body included, from when it has a connection; None for no limit.
        within: time limit of the wait for a connection and the attempt together; None for no limit.
    """

    method: str
    url: str
    headers: dict[str, str]
    content: bytes | None
    timeouts: Mapping[str, float | None] | None
    seconds: float | None
    within: float | None = None

    def limit(self, waited: float = 0.0) -> float | None:
        """Return the time limit of the attempt as a whole, after such a wait for a connection."""
        return _shortest(self.seconds, None if self.within is None else self.within - waited)

    def limit_of_read(self) -> float | None:
        """Return the time limit of the wait for a response."""
        return _shortest(self.limit(), self.timeouts["read"] if self.timeouts else None)

    def limit_of_wait(self) -> float | None:
        """Return the time limit of the wait for a connection.

        Only an ``httpx.Timeout`` limits it by itself, and sets no ``seconds``.
        """
        return _shortest(self.within, self.timeouts["pool"] if self.timeouts and self.seconds is None else None)


def _shortest(limit: float | None, other: float | None) -> float | None:
    if limit is None or other is None:
        return other if limit is None else limit
    return min(limit, other)


@attrs.frozen(repr=False)
class Wait:
    """A step: sleep for this many seconds, and resume the generator with None."""

    seconds: float


Steps = Generator[Send | Wait, Outcome | None, T]


# The `try` is around `steps.send` alone: a StopIteration of a user's hook or transport is not the result of the call.


def drive(steps: Steps[T], send: Callable[[Send], Outcome], time: Time) -> T:
    """Carry out the steps in this thread, and return their result."""
    outcome: Outcome | None = None
    try:
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as done:
                return cast("T", done.value)
            outcome = None
            if isinstance(step, Wait):
                time.sleep(step.seconds)
            else:
                outcome = send(step)
    finally:
        steps.close()  # now, and not when it is collected: it frees its place in the request rate


async def drive_async(steps: Steps[T], send: Callable[[Send], Awaitable[Outcome]], time: Time) -> T:
    """Carry out the steps in this task, and return their result."""
    outcome: Outcome | None = None
    try:
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as done:
                return cast("T", done.value)
            outcome = None
            if isinstance(step, Wait):
                await time.sleep_async(step.seconds)
            else:
                outcome = await send(step)
    finally:
        steps.close()
