"""The possible outcomes of an attempt, as plain values.

A driver converts each response and exception of its HTTP library to one of them, so that the decisions about a call
(``_call``, ``_retry``) are independent of that library::

    Outcome
    ├── Response          the service, or a proxy in front of it, responded
    └── NoResponse
        ├── NotSendable   the request is invalid for the HTTP library; every further attempt would fail as well
        ├── NotSent       there was no connection, so the service has not received the request
        ├── Broken        the connection broke; the service may have carried out the request
        ├── TimedOut      no response in time; the service may have carried out the request
        └── Lost          any other failure; the service may have carried out the request
"""

from collections.abc import Mapping

import attrs


@attrs.frozen(kw_only=True)
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
    headers: Mapping[str, str] = attrs.field(repr=False)
    content: bytes = attrs.field(repr=False)
    problem: str | None = None
    note: str = ""

    @property
    def is_success(self) -> bool:
        """Whether the status is a 2xx."""
        return 200 <= self.status_code < 300


@attrs.frozen
class NoResponse:
    """Base of the outcomes without a response.

    Attributes:
        name: name of the failure in logs and errors: the HTTP library's class of exception.
        detail: details that are safe to show. Most messages of HTTP libraries are not, since they may quote bytes of
            the response.
    """

    name: str
    detail: str = ""

    @property
    def timed_out(self) -> bool:
        """Whether the attempt ended because its time limit was reached."""
        return False


@attrs.frozen
class NotSendable(NoResponse):
    """The request is invalid for the HTTP library."""


@attrs.frozen
class NotSent(NoResponse):
    """There was no connection to send the request on.

    Attributes:
        in_time: False if connecting took too long, True if it failed.
    """

    in_time: bool = True

    @property
    def timed_out(self) -> bool:
        return not self.in_time


@attrs.frozen
class Broken(NoResponse):
    """The connection broke while writing the request or reading the response."""


@attrs.frozen
class TimedOut(NoResponse):
    """Writing the request or reading the response took too long."""

    @property
    def timed_out(self) -> bool:
        return True


@attrs.frozen
class Lost(NoResponse):
    """Any other failure."""


Outcome = Response | NoResponse
