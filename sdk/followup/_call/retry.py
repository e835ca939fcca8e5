"""Which outcomes are retried, and after how long: exponential backoff with jitter, as pure functions."""

from collections.abc import Callable

from followup._call.outcomes import Broken, NotSendable, NotSent, Outcome, Response
from followup._results.status_errors import parse_retry_after

FIRST_BACKOFF = 0.5
LONGEST_BACKOFF = 8.0
LONGEST_RETRY_AFTER = 60.0
"""Seconds. For a longer ``Retry-After`` the call fails at once; the error has it as ``retry_after``."""

RETRIED_STATUSES = frozenset({408, 409, 429})
"""The retried statuses besides every 5xx."""


def seconds_before_retry(
    outcome: Outcome, attempt: int, *, jitter: Callable[[], float], wall_clock: Callable[[], float] | None = None
) -> float | None:
    """Return the seconds to wait before the next attempt; None if the call must not be retried.

    Args:
        outcome: outcome of the latest attempt, which failed.
        attempt: number of that attempt, from 1.
        jitter: returns a random number from 0 to 1, so that clients do not retry in step.
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
        # Most often the service had closed a kept-alive connection. A new one will work, without a wait.
        return 0.0
    return backoff(attempt, jitter())


def backoff(attempt: int, jitter: float) -> float:
    """Return the seconds to wait after an attempt: exponential backoff with an upper bound, less up to 25 % jitter.

    Args:
        attempt: number of the attempt, from 1.
        jitter: from 0 for the longest wait to 1 for the shortest.
    """
    longest = min(LONGEST_BACKOFF, FIRST_BACKOFF * 2.0 ** min(attempt - 1, 10))
    return longest * (1 - jitter / 4)


def may_have_reached_the_service(outcome: Outcome) -> bool:
    """Return whether the service may have received the request."""
    return not isinstance(outcome, (NotSendable, NotSent))


def may_have_been_done(outcome: Outcome) -> bool:
    """Return whether the service may have carried out the request although the attempt failed."""
    if isinstance(outcome, Response):
        return outcome.status_code >= 500 or outcome.status_code == 408
    return may_have_reached_the_service(outcome)
