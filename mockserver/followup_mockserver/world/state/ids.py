"""Ids, secrets and request ids: a prefix and 24 random characters."""

import hashlib
import secrets
import string
from collections.abc import Iterator
from typing import Annotated, Any

import attrs

from followup._for_mockserver import Limits
from followup_mockserver.world.schema.errors import integer, optional, validator
from followup_mockserver.world.schema.shapes import LARGEST_INTEGER

ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
LENGTH = 24


@attrs.define(eq=False, repr=False)
class IdFactory:
    """Generates the ids of one organization.

    With a seed, an id depends on the seed, the organization, the prefix and the number of ids with that prefix so far:
    two runs of the same calls produce the same ids, and one more patient does not change the ids of appointments.

    Attributes:
        seed: the seed, a whole number of any size; None: ids come from the operating system's random source.
        organization: id of the organization that the ids depend on.
        counts: number of ids with each prefix so far; without a seed, they are not counted.
    """

    seed: Any = attrs.field(validator=validator(optional(integer())))
    organization: str
    counts: dict[str, Annotated[int, Limits(0, LARGEST_INTEGER)]] = attrs.field(factory=dict)
    _random: Iterator[str] = attrs.field(factory=lambda: _random_parts(), init=False)

    def copy(self) -> "IdFactory":
        """Return an independent factory, which with a seed generates the same ids from now on."""
        return IdFactory(self.seed, self.organization, self.counts.copy())

    def new(self, prefix: str) -> str:
        """Return a new id: the prefix and 24 base-62 characters."""
        if self.seed is None:
            return prefix + next(self._random)
        self.counts[prefix] = self.counts.get(prefix, 0) + 1
        source = f"{self.seed}/{self.organization}/{prefix}/{self.counts[prefix]}"
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


def _base62(number: int) -> str:
    digits = []
    for _ in range(LENGTH):
        number, digit = divmod(number, len(ALPHABET))
        digits.append(ALPHABET[digit])
    return "".join(digits)
