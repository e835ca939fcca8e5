"""Which failed attempts of a call are retried, and after how long."""

from followup._core.call.steps import Broken, NotSendable, Outcome, Response
from followup._core.errors import parse_retry_after
from followup._core.time import Time, random_fraction

FIRST_BACKOFF = 0.5
LONGEST_BACKOFF = 8.0
LONGEST_RETRY_AFTER = 60.0
"""Seconds. For a longer ``Retry-After`` the call fails at once; the error has it as ``retry_after``."""

RETRIED_STATUSES = frozenset({408, 409, 429})
"""The retried statuses besides every 5xx."""


def seconds_before_retry(outcome: Outcome, attempt: int, time: Time) -> float | None:
    """Return the seconds to wait after an attempt that failed; None if the call must not be retried."""
    if isinstance(outcome, Response):
        if outcome.status_code not in RETRIED_STATUSES and outcome.status_code < 500:
            return None
        requested = parse_retry_after(outcome.headers.get("retry-after"), time.now())
        if requested is not None:
            return requested if requested <= LONGEST_RETRY_AFTER else None
    elif isinstance(outcome, NotSendable):
        return None
    elif isinstance(outcome, Broken) and attempt == 1:
        # Most often the service had closed a kept-alive connection. A new one will work, without a wait.
        return 0.0
    return backoff(attempt, random_fraction())


def backoff(attempt: int, jitter: float) -> float:
    """Return the seconds to wait after an attempt: exponential backoff with an upper bound, less up to 25 % jitter.

    Args:
        attempt: number of the attempt, from 1.
        jitter: from 0 for the longest wait to 1 for the shortest.
    """
    longest = min(LONGEST_BACKOFF, FIRST_BACKOFF * 2.0 ** min(attempt - 1, 10))
    return longest * (1 - jitter / 4)
