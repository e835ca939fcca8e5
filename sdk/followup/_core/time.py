"""Time and randomness: those of the process, unless a test replaces them. No other module of the SDK has its own.

A call reads the clock for its deadline and the request rate, and sleeps between attempts. An outbox and an inbox
take the date and time of their rows from it, when they are in virtual time, in which sleeping takes no real time. Only
the mock sets a virtual time: for one client, for every client of a base URL, or for outboxes and inboxes. In production
nothing is set, and a call checks this with one look at an empty tuple.
"""

import random
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.util import module_from_spec
from typing import TYPE_CHECKING, Final, Protocol
from weakref import WeakKeyDictionary

import attrs

if TYPE_CHECKING:
    from followup._client import AsyncFollowUp, FollowUp
    from followup._core.call.options import Options
    from followup._core.call.request_rate import Governor


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
class _Replacement:
    """The time of all clients of a base URL, while a test replaces it.

    Attributes:
        governors: a governor for each client that has a request rate, since the slots of its own are on another clock.
    """

    base_url: str
    time_of: TimeOf
    governors: "WeakKeyDictionary[Governor, Governor]" = attrs.field(factory=WeakKeyDictionary)

    def applies_to(self, options: "Options") -> bool:
        return f"{options.base_url}/".startswith(f"{self.base_url}/")

    def apply(self, options: "Options") -> "Options":
        own = options.governor
        governor = own and self.governors.setdefault(own, type(own)(own.requests_per_minute))
        return attrs.evolve(options, time=self.time_of(options.api_key), governor=governor)


_replacements: tuple[_Replacement, ...] = ()
_time_of_stores: Time | None = None


@contextmanager
def virtual_time(base_url: str, time_of: TimeOf) -> Iterator[None]:
    """Replace the time of every client of a base URL, also of those that exist already, until the with block ends.

    It applies to the calls that begin within the with block, in all threads of the process.

    Args:
        base_url: the base URL; those that begin with it, at a ``/``, are included.
        time_of: returns the time of a client by its API key.
    """
    global _replacements  # replaced as a whole, because other threads read it
    mine = _Replacement(base_url.rstrip("/"), time_of)
    _replacements = (*_replacements, mine)
    try:
        yield
    finally:
        _replacements = tuple(each for each in _replacements if each is not mine)


def with_current_time(options: "Options") -> "Options":
    """Return the options for a call that begins now."""
    if not _replacements:
        return options
    for each in reversed(_replacements):
        if each.applies_to(options) and options.time is REAL_TIME:
            return each.apply(options)
    return options


def use_virtual_time(client: "FollowUp | AsyncFollowUp", time_of: TimeOf, transport: object = None) -> None:
    """Let one client, and those derived from it, live in virtual time.

    Args:
        client: the client. It has not made a call yet.
        time_of: returns the time of a client by its API key.
        transport: a transport of httpx that sends its requests; None to send them as ever.
    """
    client._options = attrs.evolve(client._options, time=time_of(client._options.api_key))
    client._connections.transport = transport


@contextmanager
def virtual_store_time(time: Time) -> Iterator[None]:
    """Replace the time of every Outbox and Inbox of this process until the with block ends.

    None of them reads the clock of its database meanwhile, also if it existed before, and waiting advances ``time``.
    An Outbox or Inbox that is created again on the same database, as after a crash, goes on in the same time. Two
    things stay real: the check of a webhook's timestamp, and how long a database waits for a lock. Jitter, event ids
    and lease tokens are random, unless ``reproducible_randomness`` is set too.

    Args:
        time: the time. Its ``now`` is what the rows of the tables contain.
    """
    global _time_of_stores
    before = _time_of_stores
    _time_of_stores = time
    try:
        yield
    finally:
        _time_of_stores = before


def virtual_time_of_stores() -> Time | None:
    """Return the time that replaces that of every Outbox and Inbox; None if nothing does."""
    return _time_of_stores


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
