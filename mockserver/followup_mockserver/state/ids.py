"""Ids, secrets and request ids: a prefix and 24 random characters."""

import hashlib
import itertools
import secrets
import string
from collections import Counter
from collections.abc import Iterator

ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
LENGTH = 24


class IdFactory:
    """Generates the ids of one organization.

    With a seed, an id depends on the seed, the organization, the prefix and the number of ids with that prefix so far:
    two runs of the same calls produce the same ids, and one more patient does not change the ids of appointments.

    Args:
        seed: None: ids come from the operating system's random source.
        organization: id of the organization.
    """

    def __init__(self, seed: int | None, organization: str) -> None:
        self._seed = seed
        self._organization = organization
        self._counts: Counter[str] = Counter()
        self._random = _random_parts()

    def new(self, prefix: str) -> str:
        """Return a new id: the prefix and 24 base-62 characters."""
        if self._seed is None:
            return prefix + next(self._random)
        self._counts[prefix] += 1
        source = f"{self._seed}/{self._organization}/{prefix}/{self._counts[prefix]}"
        return prefix + _base62(int.from_bytes(hashlib.sha256(source.encode()).digest()))


_BLOCK_SIZE = 4096
"""Random bytes to read at once. A read for each id would let other threads run while this one holds a tenant's lock."""

_CHARACTER_OF = bytes(ord(ALPHABET[byte % len(ALPHABET)]) for byte in range(256))
_REJECTED = bytes(range(256 // len(ALPHABET) * len(ALPHABET), 256))
"""Rejection sampling: bytes beyond the last multiple of 62 are dropped, so that every character is equally likely."""


def _random_parts() -> Iterator[str]:
    while True:
        text = secrets.token_bytes(_BLOCK_SIZE).translate(_CHARACTER_OF, _REJECTED).decode()
        for start in range(0, len(text) - LENGTH + 1, LENGTH):
            yield text[start : start + LENGTH]


_PAIRS = [low + high for high, low in itertools.product(ALPHABET, repeat=2)]


def _base62(number: int) -> str:
    pairs = []
    for _ in range(LENGTH // 2):
        number, digits = divmod(number, len(_PAIRS))
        pairs.append(_PAIRS[digits])
    return "".join(pairs)
