"""Observers, to which every mock in this process reports its API calls and its attempts to deliver webhooks.

``pytest --followup-coverage`` and ``followup-mock serve`` add one. Otherwise a mock iterates over an empty tuple.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

import attrs

from followup_mockserver.world.state.journal import JournalEntry
from followup_mockserver.world.state.records import Attempt


@attrs.frozen(kw_only=True, eq=False, repr=False)
class EndedCall:
    """An API call that has its outcome.

    Attributes:
        entry: the call, as in the journal.
        status: HTTP status of the response; None if a fault kept it from the client, or a part of it.
        seconds: real time from the request to the response.
        events: type and status of the result of each event of ``events.create``; the status is None if the response did
            not arrive. Empty for a response without results.
    """

    entry: JournalEntry
    status: int | None
    seconds: float = 0.0
    events: Sequence[tuple[str, str | None]] = attrs.field(default=(), repr=False)


@attrs.frozen(kw_only=True, eq=False, repr=False)
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
