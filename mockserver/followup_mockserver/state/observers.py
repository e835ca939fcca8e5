"""Observers, to which every mock in this process reports its API calls and its attempts to deliver webhooks.

``pytest --followup-coverage`` and ``followup-mock serve`` add one. Otherwise a mock iterates over an empty tuple.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

import attrs

from followup_mockserver.state.records import Attempt


@attrs.frozen(kw_only=True)
class EndedCall:
    """An API call that has its outcome.

    Attributes:
        operation: name of the operation; None if no operation has this path and method.
        path: path of the request, without the query.
        status: HTTP status of the response; None if a fault kept it from the client, or a part of it.
        error_code: code of the error response; None for a success.
        param: the parameter that the error names.
        attempt: 1 for the first call with its idempotency key, method and path, and for one without a key.
        replayed: whether it is the response to an earlier request with the same idempotency key.
        fault: kind of the fault that changed the call; None if none did.
        events: number of events in the results of ``events.create``; 0 for a response without results.
        refused: number of those that the service did not accept, because they are invalid or failed.
        seconds: real time from the request to the response.
        ignored_keys: paths of the keys in the data of events that no rule reads.
    """

    operation: str | None
    method: str
    path: str = attrs.field(repr=False)
    status: int | None
    error_code: str | None = None
    param: str | None = None
    attempt: int = 1
    replayed: bool = False
    fault: str | None = None
    events: int = 0
    refused: int = 0
    seconds: float = 0.0
    ignored_keys: Sequence[str] = ()


@attrs.frozen(kw_only=True)
class EndedAttempt:
    """An attempt to deliver a webhook that has its outcome.

    Attributes:
        attempt: the attempt.
        url: the URL that it was sent to.
        delivered: whether the delivery has succeeded now, and had not before.
        exhausted: whether the delivery has failed now, because this was its last attempt.
        next_attempt_at: when the next attempt is due, by the mock's clock; None if there is none.
    """

    attempt: Attempt
    url: str = attrs.field(repr=False)
    delivered: bool
    exhausted: bool
    next_attempt_at: datetime | None


class Observer(Protocol):
    """Receives reports, from the threads in which they happen. It must not block, nor act on the mock."""

    def call_ended(self, call: EndedCall, /) -> None:
        """Receive the outcome of an API call."""

    def attempt_ended(self, ended: EndedAttempt, /) -> None:
        """Receive the outcome of an attempt to deliver a webhook."""


observers: tuple[Observer, ...] = ()
"""The current observers. Read it as an attribute of this module, because ``add`` and ``remove`` replace it."""


def add(observer: Observer) -> None:
    """Report to this observer from now on."""
    global observers
    observers = (*observers, observer)


def remove(observer: Observer) -> None:
    """Stop reporting to this observer."""
    global observers
    observers = tuple(each for each in observers if each is not observer)
