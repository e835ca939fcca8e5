"""Time and randomness: those of the process, unless a test replaces them. No other module of the SDK has its own.

A call reads the clock for its deadline and the request rate, and sleeps between attempts. An outbox and an inbox
take the date and time of their rows from it, when they are in virtual time, in which sleeping takes no real time. Only
the mock sets a virtual time: for one client, for every client of a base URL, or for every Outbox and Inbox. In
production nothing is set, and a call checks this with one look at an empty tuple.
"""

import random
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.util import module_from_spec
from typing import Any, Final, Protocol
from weakref import WeakKeyDictionary

import attrs


class Time(Protocol):
    """A clock, and a sleep that lets its time pass. Durations are in seconds."""

    def monotonic(self) -> float:
        """Return seconds since an arbitrary instant. They never decrease."""
        ...

    def now(self) -> datetime:
        """Return the current date and time, in UTC."""
        ...

    def sleep(self, seconds: float) -> None:
        """Return once the clock has advanced by this much."""
        ...

    async def sleep_async(self, seconds: float) -> None:
        """Return once the clock has advanced by this much. Other tasks run in the meantime."""
        ...


def _unpatched_monotonic() -> Callable[[], float]:
    # freezegun replaces the functions of the ``time`` module that is in ``sys.modules``, possibly before this module is
    # imported. It does not reach a second copy of the built-in module. A clock that it had stopped would let a call
    # that has to wait for its turn, or for its deadline, wait for ever.
    spec = time.__spec__
    assert spec is not None
    assert spec.loader is not None
    copy = module_from_spec(spec)
    spec.loader.exec_module(copy)
    monotonic: Callable[[], float] = copy.monotonic
    return monotonic


_monotonic = _unpatched_monotonic()


class _RealTime:
    """Real time. ``monotonic`` runs on while a test has stopped the clock of this process."""

    def monotonic(self) -> float:
        return _monotonic()

    def now(self) -> datetime:
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    async def sleep_async(self, seconds: float) -> None:
        import asyncio  # takes as long to import as the rest of the package; synchronous code does not need it

        await asyncio.sleep(seconds)


REAL_TIME: Final[Time] = _RealTime()


TimeOf = Callable[[str], Time]
"""Returns the time of the clients that have an API key; the same object for the same key."""


@attrs.frozen(eq=False, repr=False)
class Replacement:
    """The time of all clients of a base URL, or of every Outbox and Inbox, while a test replaces it.

    Attributes:
        base_url: None for every Outbox and Inbox.
        time_of: returns the time by an API key.
        memory: what is kept for this time, such as the governor of a client, whose own has slots on another clock.
    """

    base_url: str | None
    time_of: TimeOf
    memory: WeakKeyDictionary[Any, Any] = attrs.field(factory=WeakKeyDictionary)


_replacements: tuple[Replacement, ...] = ()


@contextmanager
def virtual_time(base_url: str | None, time_of: TimeOf) -> Iterator[None]:
    """Replace the time of every client of a base URL, or of every Outbox and Inbox, until the with block ends.

    It applies to those that exist already too, and to the calls that begin within the with block, in all threads of the
    process.

    No Outbox or Inbox reads the clock of its database meanwhile, and waiting advances the virtual time. One that is
    created again on the same database, as after a crash, goes on in the same time. Two things stay real: the check of a
    webhook's timestamp, and how long a database waits for a lock.

    Args:
        base_url: the base URL; those that begin with it, at a ``/``, are included. None for every Outbox and Inbox.
        time_of: returns the time by an API key, which is empty for an Outbox or Inbox.
    """
    global _replacements  # replaced as a whole, because other threads read it
    mine = Replacement(base_url and base_url.rstrip("/"), time_of)
    _replacements = (*_replacements, mine)
    try:
        yield
    finally:
        _replacements = tuple(each for each in _replacements if each is not mine)


def find_replacement(base_url: str | None) -> Replacement | None:
    """Return the latest replacement of the time of a client's base URL, or of every Outbox and Inbox."""
    for each in reversed(_replacements):
        if each.base_url == base_url or (base_url and each.base_url and base_url.startswith(f"{each.base_url}/")):
            return each
    return None


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
