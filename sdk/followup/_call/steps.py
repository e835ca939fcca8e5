"""A call, and the steps that a driver carries out for it: the values that pass between ``_call`` and ``_http``."""

from collections.abc import Callable, Generator, Mapping
from typing import Any, Generic, TypeVar

import attrs

from followup._call.outcomes import Outcome
from followup._results.results import Result
from followup._results.status_errors import APIStatusError

R = TypeVar("R", bound=Result)
T = TypeVar("T")


@attrs.frozen(kw_only=True)
class Call(Generic[R]):
    """One call, complete before its first attempt, so that every attempt sends the same bytes and the same key.

    Attributes:
        decode: converts the JSON of a successful response to the result.
        batch_error: class of the error to raise for a body that has ``results``.
        when_gone: creates the result of a deletion that an earlier attempt may have carried out.
        object_id: id in the path, which the result must have as well; None where it need not.
    """

    operation: str
    method: str
    path_template: str
    path: str
    query: str = attrs.field(default="", repr=False)
    content: bytes | None = attrs.field(default=None, repr=False)
    idempotency_key: str | None = None
    decode: Callable[[Any], R] = attrs.field(repr=False)
    batch_error: type[APIStatusError] | None = None
    when_gone: Callable[[], R] | None = attrs.field(default=None, repr=False)
    object_id: str | None = None


@attrs.frozen(kw_only=True)
class Send:
    """A step: send this request once, and resume the generator with the outcome.

    Attributes:
        timeouts: seconds for the parts of the attempt (connect, read, write, pool); None for those of the HTTP client.
        seconds: time limit of the attempt as a whole, body included; None for no limit.
    """

    method: str
    url: str = attrs.field(repr=False)
    headers: dict[str, str] = attrs.field(repr=False)
    content: bytes | None = attrs.field(repr=False)
    timeouts: Mapping[str, float | None] | None
    seconds: float | None


@attrs.frozen
class Wait:
    """A step: sleep for this many seconds, and resume the generator with None."""

    seconds: float


Steps = Generator[Send | Wait, Outcome | None, T]
