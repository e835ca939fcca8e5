"""Ids, secrets and request ids: a prefix and an opaque part that nobody can guess."""

import hashlib
import itertools
import secrets
import string
from collections import Counter

ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
LENGTH = 24


class IdFactory:
    """Makes the ids of one organization.

    With a seed, an id follows from the seed, the organization, the prefix and the running number of that prefix: two
    runs of the same calls give the same ids, and a call more of one kind does not shift the ids of another.

    Args:
        seed: None for ids from the operating system's random source.
        organization: whose ids these are.
    """

    def __init__(self, seed: int | None, organization: str) -> None:
        self._seed = seed
        self._organization = organization
        self._made: Counter[str] = Counter()

    def new(self, prefix: str) -> str:
        """The prefix and 24 base-62 characters."""
        if self._seed is None:
            number = secrets.randbelow(len(ALPHABET) ** LENGTH)
        else:
            self._made[prefix] += 1
            source = f"{self._seed}/{self._organization}/{prefix}/{self._made[prefix]}"
            number = int.from_bytes(hashlib.sha256(source.encode()).digest())
        return prefix + _base62(number)


_PAIRS = [low + high for high, low in itertools.product(ALPHABET, repeat=2)]
"""Two digits at a time: every answer has an id, and most of its cost was making it."""


def _base62(number: int) -> str:
    pairs = []
    for _ in range(LENGTH // 2):
        number, digits = divmod(number, len(_PAIRS))
        pairs.append(_PAIRS[digits])
    return "".join(pairs)
