"""Leases and the backoff of rows."""

from followup._store.leases import retry_wait


def test_the_wait_doubles_up_to_a_limit() -> None:
    waits = [retry_wait(attempt, 30, lambda: 0.0) for attempt in range(1, 10)]
    assert waits == [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000]
    assert retry_wait(1_000_000, 30, lambda: 0.0) == 30_000


def test_jitter_shortens_the_wait_by_up_to_a_quarter() -> None:
    assert retry_wait(2, 30, lambda: 1.0) == 750
