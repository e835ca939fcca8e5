"""Random numbers and ids, which a test can make reproducible. No other module of the SDK makes its own."""

import random
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

_seeded: random.Random | None = None


@contextmanager
def reproducible_randomness(seed: int) -> Iterator[None]:
    """Make the jitter, ids and lease tokens of this process the same for the same seed, until the with block ends.

    They are reproducible as long as one thread at a time asks for them. Ids are predictable then: for tests only.

    Args:
        seed: the seed of the random numbers.
    """
    global _seeded
    before = _seeded
    _seeded = random.Random(seed)  # noqa: S311 - it is predictable on purpose
    try:
        yield
    finally:
        _seeded = before


def random_fraction() -> float:
    """Return a random number from 0, included, to 1, excluded."""
    return (_seeded or random).random()


def new_uuid() -> uuid.UUID:
    """Return a random UUID."""
    source = _seeded
    return uuid.uuid4() if source is None else uuid.UUID(int=source.getrandbits(128), version=4)
