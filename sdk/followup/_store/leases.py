"""Leases: how long a row belongs to the process that claimed it, and when a row that failed is due again."""

from collections.abc import Callable

from followup._time import new_uuid, random_fraction

FIRST_WAIT = 0.5
"""Seconds, at most, from the first failure of a row to its next attempt. It doubles with each failure."""

_MAX_DOUBLINGS = 30


def new_token() -> str:
    """Return the token of a new lease. Only a process that knows it may settle the rows of the lease."""
    return new_uuid().hex


def retry_wait(attempts: int, longest: float, jitter: Callable[[], float] = random_fraction) -> int:
    """Return the milliseconds until the next attempt: exponential backoff, less up to 25 % jitter.

    Args:
        attempts: number of attempts so far, from 1.
        longest: the upper bound, in seconds.
        jitter: returns a random number from 0 for the longest wait to 1 for the shortest, so that rows that failed
            together are not retried in step.
    """
    seconds = min(longest, FIRST_WAIT * 2.0 ** min(attempts - 1, _MAX_DOUBLINGS))
    return round(seconds * (1 - jitter() / 4) * 1000)
