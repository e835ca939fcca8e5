"""Ids, secrets and request ids: a prefix and an opaque part that nobody can guess."""

import hashlib
import itertools
import secrets
import string
from collections import Counter
from collections.abc import Iterator

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
        self._random = _random_parts()

    def new(self, prefix: str) -> str:
        """The prefix and 24 base-62 characters."""
        if self._seed is None:
            return prefix + next(self._random)
        self._made[prefix] += 1
        source = f"{self._seed}/{self._organization}/{prefix}/{self._made[prefix]}"
        return prefix + _base62(int.from_bytes(hashlib.sha256(source.encode()).digest()))


_AT_ONCE = 4096
"""Bytes. Asking the operating system for each id would let other threads run while this one holds a tenant's lock."""

_FAIR = 256 // len(ALPHABET) * len(ALPHABET)
_CHARACTER_OF = bytes(ord(ALPHABET[byte % len(ALPHABET)]) for byte in range(256))
_UNFAIR = bytes(range(_FAIR, 256))
"""Bytes that are thrown away, for else some characters would come more often than others."""


def _random_parts() -> Iterator[str]:
    while True:
        text = secrets.token_bytes(_AT_ONCE).translate(_CHARACTER_OF, _UNFAIR).decode()
        for start in range(0, len(text) - LENGTH + 1, LENGTH):
            yield text[start : start + LENGTH]


_PAIRS = [low + high for high, low in itertools.product(ALPHABET, repeat=2)]


def _base62(number: int) -> str:
    pairs = []
    for _ in range(LENGTH // 2):
        number, digits = divmod(number, len(_PAIRS))
        pairs.append(_PAIRS[digits])
    return "".join(pairs)
