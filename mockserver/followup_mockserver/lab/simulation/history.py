"""A history as data: the steps that a simulation plays, how they are drawn, and encoded as a seed.

A history says nothing about what the clinic will do. Each field of a step is a number below its number of alternatives,
so that histories can be drawn, shrunk and encoded in one way. The simplest alternative is 0.
"""

import zlib
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any, get_args

import attrs

PEOPLE = 9
SLOTS = 16
MAX_BOOKINGS = 12


def _below(alternatives: int, weights: tuple[float, ...] = ()) -> Any:
    """Return a field for a number from 0 to ``alternatives`` - 1, all of which are equally likely without weights."""
    return attrs.field(default=0, metadata={"alternatives": alternatives, "weights": weights or (1,) * alternatives})


_FEW = (8, 4, 2, 2, 1, 1, 1, 1, 0.25, 0.25, 0.25, 0.25)
"""Weights of bookings: several changes of the same booking, in their order, find more than changes of many."""


@attrs.frozen
class Book:
    """A person makes a new booking, for the patient with this number."""

    patient: int = _below(PEOPLE)
    slot: int = _below(SLOTS)


@attrs.frozen
class Reschedule:
    """A person moves one of the bookings that can be moved."""

    booking: int = _below(MAX_BOOKINGS, _FEW)
    slot: int = _below(SLOTS)


@attrs.frozen
class Cancel:
    """A person cancels one of the bookings that can be cancelled."""

    booking: int = _below(MAX_BOOKINGS, _FEW)


@attrs.frozen
class Again:
    """The person whose operation failed last repeats it."""


@attrs.frozen
class Work:
    """The clinic does one round of its background work."""


@attrs.frozen
class PassTime:
    """Time passes; index into ``DURATIONS``. The deliveries that are due are attempted."""

    duration: int = _below(7)


@attrs.frozen
class CrashNow:
    """The clinic crashes between two steps."""


@attrs.frozen
class CrashAtRequest:
    """The clinic will crash at one of its next requests, before it is sent or after the response was produced."""

    skip: int = _below(4)
    after: int = _below(2)


@attrs.frozen
class FailRequests:
    """Some of the clinic's next requests will fail; index into ``REQUEST_FAULTS``.

    A call with its two retries that fails, while the next call succeeds, is likely.
    """

    fault: int = _below(10, (4, *[1] * 9))
    more: int = _below(8, (4, 1, 9, 1, 1, 3, 1, 1))


@attrs.frozen
class RepeatDelivery:
    """The service sends an earlier webhook once more."""

    delivery: int = _below(16, (4, 4, 2, 2, *[1] * 12))


@attrs.frozen
class DelayDelivery:
    """The next webhook will be late, or overtaken by the one after it; indexes into ``DELAYS`` and ``DELAYED``."""

    delay: int = _below(3)
    event: int = _below(3)


@attrs.frozen
class LoseWebhookResponse:
    """The response of the clinic to the next webhook will be lost."""


@attrs.frozen
class Forge:
    """A forged webhook arrives; index into ``FORGERIES``."""

    kind: int = _below(8)
    delivery: int = _below(16)


@attrs.frozen
class CrashAtCommit:
    """The clinic will crash before one of its next commits (an even number) or after it; not in ``start``."""

    # More than the commits of one operation, so that a crash also comes late within work().
    point: int = _below(12)


@attrs.frozen
class CrashAtStart:
    """The clinic will crash before or after one of the commits of its next start; the first one, as the first step."""

    point: int = _below(12)


@attrs.frozen
class TaskOrder:
    """From here on, the tasks of an asynchronous clinic go on in another order; 0: in that in which they are ready."""

    order: int = _below(32)


Step = (
    Book
    | Reschedule
    | Cancel
    | Again
    | Work
    | PassTime
    | CrashNow
    | CrashAtRequest
    | FailRequests
    | RepeatDelivery
    | DelayDelivery
    | LoseWebhookResponse
    | Forge
    | CrashAtCommit
    | TaskOrder
    | CrashAtStart
)
History = tuple[Step, ...]

KINDS: tuple[type[Step], ...] = get_args(Step)
"""All kinds of steps. The seeds of histories depend on the order: add new kinds at the end."""


def alternatives_of(kind: type[Step]) -> list[int]:
    """Return the number of alternatives of each field of a kind of step."""
    return [field.metadata["alternatives"] for field in attrs.fields(kind)]


# --- the seed of a history -------------------------------------------------------------------------------------------

# A history is written as a number in a mixed radix: the kind of each step, then its fields; so it is the same in every
# process and version. A check sum distinguishes such a seed from one that somebody chose, which is merely the beginning
# of random histories.

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
        steps.append(KINDS[kind - 1](*values))
    return tuple(steps)


def _check_sum(number: int) -> int:
    digest = zlib.crc32(number.to_bytes((number.bit_length() + 7) // 8))
    return digest & (1 << _CHECK_BITS) - 1


# --- drawing ---------------------------------------------------------------------------------------------------------

_Weights = Mapping[type[Step], int]

_FAULTS: _Weights = {
    FailRequests: 18,
    CrashAtRequest: 4,
    CrashAtCommit: 4,
    CrashAtStart: 1,
    DelayDelivery: 2,
    LoseWebhookResponse: 2,
    TaskOrder: 8,
}
_ACTIONS: _Weights = {Book: 5, Reschedule: 8, Cancel: 3, Work: 2, PassTime: 2}
_SEQUELS: _Weights = {Again: 5, Work: 8, PassTime: 5, CrashNow: 3, CrashAtCommit: 3, RepeatDelivery: 3, Forge: 3}
"""Kinds of steps with their weights. An action comes with faults before it and sequels after it."""

_OF_WEBHOOKS = (DelayDelivery, LoseWebhookResponse, RepeatDelivery, Forge)
_CRASHED_STARTS = 8
"""Of so many histories, one begins with a start that crashes."""

_BUSY, _BOOKINGS_WHEN_BUSY = 10, 11
"""Of so many histories, one begins with so many bookings, which are more than a page of the service has by default.

At its end, the first webhook is repeated.
"""

_SCENES, _MOST_FAULTS, _MOST_SEQUELS = (5, 14), 3, 4
_MOST_IN_HASTE = 1
"""Sequels of an action where the next one soon follows, while tasks are still busy with it."""


def histories(random: Random, *, with_webhooks: bool, with_tasks: bool) -> Iterator[History]:
    """Yield histories without end; the first action of each is a booking.

    Args:
        random: draws them.
        with_webhooks: whether the clinic has a receiver; without one, nothing happens to webhooks.
        with_tasks: whether the clinic is asynchronous; otherwise there is no order of tasks.
    """
    # What cannot have an effect would only make histories longer, and their search slower.
    left_out = {*(() if with_webhooks else _OF_WEBHOOKS), *(() if with_tasks else (TaskOrder,))}

    def drawn(weights: _Weights, times: int) -> Iterator[Step]:
        kinds = {kind: weight for kind, weight in weights.items() if kind not in left_out}
        for kind in random.choices([*kinds], [*kinds.values()], k=times):
            fields = [field.metadata["weights"] for field in attrs.fields(kind)]
            yield kind(*[random.choices(range(len(each)), each)[0] for each in fields])

    while True:
        history = [*drawn({CrashAtStart: 1}, 0 if random.randrange(_CRASHED_STARTS) else 1)]
        most_sequels = _MOST_SEQUELS
        if with_tasks:
            history += drawn({TaskOrder: 1}, 1)
            most_sequels = random.choice((_MOST_SEQUELS, _MOST_IN_HASTE))
        is_busy = random.randrange(_BUSY) == 0
        if is_busy:
            patients = [number % PEOPLE for number in range(_BOOKINGS_WHEN_BUSY)]
            history += [*(Book(each, random.randrange(SLOTS)) for each in patients), Work(), PassTime(1)]
        for _ in range(random.randint(*_SCENES)):
            history += drawn(_FAULTS, random.randint(0, _MOST_FAULTS))
            history += drawn(_ACTIONS if any(isinstance(each, Book) for each in history) else {Book: 1}, 1)
            history += drawn(_SEQUELS, random.randint(0, most_sequels))
        if is_busy and with_webhooks:
            history += [Work(), PassTime(3), RepeatDelivery(0)]
        yield tuple(history)
