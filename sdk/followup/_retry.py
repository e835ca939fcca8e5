"""Which outcomes are retried, and after how long: pure functions of an outcome and the number of its attempt."""

from collections.abc import Callable

from followup._errors import parse_retry_after
from followup._outcomes import Broken, NotSendable, NotSent, Outcome, Response

FIRST_BACKOFF = 0.5
LONGEST_BACKOFF = 8.0
LONGEST_RETRY_AFTER = 60.0
"""Seconds. A longer ``Retry-After`` is not slept through: the caller gets the error, with its ``retry_after``."""

RETRIED_STATUSES = frozenset({408, 409, 429})
"""Besides every 5xx."""


def seconds_before_retry(
    outcome: Outcome, attempt: int, *, jitter: Callable[[], float], wall_clock: Callable[[], float] | None = None
) -> float | None:
    """Return how long to wait before the next attempt; None if there must not be one.

    Args:
        outcome: of the latest attempt; not a success.
        attempt: its number, from 1.
        jitter: returns a number from 0 to 1 that spreads clients over time.
        wall_clock: returns seconds since the epoch, for a ``Retry-After`` that is a date; ``time.time`` when
            omitted.
    """
    if isinstance(outcome, Response):
        if outcome.status_code not in RETRIED_STATUSES and outcome.status_code < 500:
            return None
        requested = parse_retry_after(outcome.headers.get("retry-after"), wall_clock)
        if requested is not None:
            return requested if requested <= LONGEST_RETRY_AFTER else None
    elif isinstance(outcome, NotSendable):
        return None
    elif isinstance(outcome, Broken) and attempt == 1:
        # Most often a kept-alive connection that the service had closed: a new one will do, at once.
        return 0.0
    return backoff(attempt, jitter())


def backoff(attempt: int, jitter: float) -> float:
    """Return the seconds to wait after an attempt: exponential, bounded, and up to a quarter less by jitter.

    Args:
        attempt: its number, from 1.
        jitter: 0 for the longest wait, 1 for the shortest.
    """
    longest = min(LONGEST_BACKOFF, FIRST_BACKOFF * 2.0 ** min(attempt - 1, 10))
    return longest * (1 - jitter / 4)


def may_have_reached_the_service(outcome: Outcome) -> bool:
    """Return whether the service may have seen the request."""
    return not isinstance(outcome, (NotSendable, NotSent))


def may_have_been_done(outcome: Outcome) -> bool:
    """Return whether the service may have carried the request out although the attempt failed."""
    if isinstance(outcome, Response):
        return outcome.status_code >= 500 or outcome.status_code == 408
    return may_have_reached_the_service(outcome)
