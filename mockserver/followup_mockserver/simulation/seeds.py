"""The seed of one history: a number that encodes its steps, so that it is the same in every process and version.

A history is written as a number in a mixed radix: the kind of each step, then its fields. A check sum distinguishes
such a seed from one that somebody chose, which is merely the beginning of random histories.
"""

import zlib

import attrs

from followup_mockserver.simulation.history import KINDS, History, Step, alternatives_of, step_of

_CHECK_BITS = 24


def seed_of(history: History) -> int:
    """Return the seed that encodes a history."""
    number = 0
    for step in reversed(history):
        kind = type(step)
        for value, alternatives in reversed(list(zip(attrs.astuple(step), alternatives_of(kind), strict=True))):
            number = number * alternatives + value
        number = number * (len(KINDS) + 1) + KINDS.index(kind) + 1  # 0 ends the history
    return number << _CHECK_BITS | _check_sum(number)


def call_that_repeats(clinic: type, history: History) -> str:
    """Return the call of ``simulate`` that plays a history first."""
    return f"simulate({clinic.__name__}, seed={seed_of(history)})"


def history_of(seed: int) -> History | None:
    """Return the history that a seed encodes; None if it is a seed of another kind."""
    number = seed >> _CHECK_BITS
    if number <= 0 or seed & (1 << _CHECK_BITS) - 1 != _check_sum(number):
        return None
    steps: list[Step] = []
    while number:
        number, kind = divmod(number, len(KINDS) + 1)
        if kind == 0:
            return None
        values = []
        for alternatives in alternatives_of(KINDS[kind - 1]):
            number, value = divmod(number, alternatives)
            values.append(value)
        steps.append(step_of(KINDS[kind - 1], values))
    return tuple(steps)


def _check_sum(number: int) -> int:
    digest = zlib.crc32(number.to_bytes((number.bit_length() + 7) // 8))
    return digest & (1 << _CHECK_BITS) - 1
