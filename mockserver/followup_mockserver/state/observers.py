"""Observers, to which every mock in this process reports its API calls and its attempts to deliver webhooks.

``pytest --followup-coverage`` adds one. Without it, a mock iterates over an empty tuple.
"""

from typing import Protocol

from followup_mockserver.state.records import Attempt


class Observer(Protocol):
    """Receives reports, from the threads in which they happen."""

    def call_ended(self, operation: str, status: int | None, *, replayed: bool) -> None:
        """Receive the outcome of an API call.

        Args:
            operation: name of the operation.
            status: HTTP status of the response; None if a fault kept it from the client, or a part of it.
            replayed: whether it is the response to an earlier request with the same idempotency key.
        """

    def attempt_ended(self, attempt: Attempt, *, delivered: bool, exhausted: bool) -> None:
        """Receive the outcome of an attempt to deliver a webhook.

        Args:
            attempt: the attempt.
            delivered: whether the delivery has succeeded now, and had not before.
            exhausted: whether the delivery has failed now, because this was its last attempt.
        """


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
