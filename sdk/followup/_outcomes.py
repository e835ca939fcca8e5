"""What an attempt can come to, as plain values.

A driver turns whatever its HTTP library returns or raises into one of these, so that the decisions about a call
(``_call``, ``_retry``) know no HTTP library::

    Outcome
    ├── Response          the service, or something before it, responded
    └── NoResponse
        ├── NotSendable   no request can be made of the call; every further attempt would fail alike
        ├── NotSent       there was no connection: the service has not seen the request
        ├── Broken        the connection broke; the service may have carried the request out
        ├── TimedOut      no response in time; likewise
        └── Lost          any other failure; likewise
"""

from collections.abc import Mapping

import attrs


@attrs.frozen(kw_only=True)
class Response:
    """A response, read to its end.

    Attributes:
        headers: by names that are lower case, or in a mapping that ignores case.
        content: the body, with its content coding undone.
        problem: why the body could not be read, as a predicate; ``content`` is empty then.
    """

    status_code: int
    headers: Mapping[str, str] = attrs.field(repr=False)
    content: bytes = attrs.field(repr=False)
    problem: str | None = None

    @property
    def is_success(self) -> bool:
        """Whether the status is a 2xx."""
        return 200 <= self.status_code < 300


@attrs.frozen
class NoResponse:
    """Base of the attempts that ended without a response.

    Attributes:
        name: what to call the failure in logs and errors: the name of the HTTP library's exception.
        detail: more about it that is safe to show. Most texts of an HTTP library are not: they may quote bytes that
            the server sent.
    """

    name: str
    detail: str = ""

    @property
    def timed_out(self) -> bool:
        """Whether the attempt ended because its time was up."""
        return False


@attrs.frozen
class NotSendable(NoResponse):
    """No request can be made of the call."""


@attrs.frozen
class NotSent(NoResponse):
    """There was no connection to send the request on.

    Attributes:
        in_time: False if connecting took too long; otherwise it failed.
    """

    in_time: bool = True

    @property
    def timed_out(self) -> bool:
        return not self.in_time


@attrs.frozen
class Broken(NoResponse):
    """The connection broke while the request was written or the response read."""


@attrs.frozen
class TimedOut(NoResponse):
    """The request was not written, or the response not read, in time."""

    @property
    def timed_out(self) -> bool:
        return True


@attrs.frozen
class Lost(NoResponse):
    """A failure of which nothing else is known."""


Outcome = Response | NoResponse
