"""A history as data: the steps that a simulation plays. It says nothing about what the clinic will do.

Each field of a step is a number below its number of alternatives, so that histories can be drawn, shrunk and encoded
in one way. The simplest alternative is 0.
"""

from collections.abc import Callable, Iterable
from typing import Any

import attrs

PEOPLE = 8
SLOTS = 16
MAX_BOOKINGS = 8


def _below(alternatives: int) -> Any:
    """Return a field for a number from 0 to ``alternatives`` - 1."""
    return attrs.field(metadata={"alternatives": alternatives})


@attrs.frozen
class Book:
    """A person makes a new booking, for the patient with this number."""

    patient: int = _below(PEOPLE)
    slot: int = _below(SLOTS)


@attrs.frozen
class Reschedule:
    """A person moves one of the bookings that can be moved."""

    booking: int = _below(MAX_BOOKINGS)
    slot: int = _below(SLOTS)


@attrs.frozen
class Cancel:
    """A person cancels one of the bookings that can be cancelled."""

    booking: int = _below(MAX_BOOKINGS)


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
    """Some of the clinic's next requests will fail; index into ``REQUEST_FAULTS``."""

    fault: int = _below(10)
    more: int = _below(8)


@attrs.frozen
class RepeatDelivery:
    """The service sends an earlier webhook once more."""

    delivery: int = _below(16)


@attrs.frozen
class DelayDelivery:
    """The next webhook will be late, or overtaken by the one after it; index into ``DELAYS``."""

    delay: int = _below(3)


@attrs.frozen
class LoseWebhookResponse:
    """The response of the clinic to the next webhook will be lost."""


@attrs.frozen
class Forge:
    """A forged webhook arrives; index into ``FORGERIES``."""

    kind: int = _below(3)
    delivery: int = _below(16)


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
)
History = tuple[Step, ...]

KINDS: tuple[type[Step], ...] = (
    Book,
    Reschedule,
    Cancel,
    Again,
    Work,
    PassTime,
    CrashNow,
    CrashAtRequest,
    FailRequests,
    RepeatDelivery,
    DelayDelivery,
    LoseWebhookResponse,
    Forge,
)
"""All kinds of steps. The seeds of histories depend on the order: add new kinds at the end."""


def alternatives_of(kind: type[Step]) -> list[int]:
    """Return the number of alternatives of each field of a kind of step."""
    return [field.metadata["alternatives"] for field in attrs.fields(kind)]


def step_of(kind: Callable[..., Step], values: Iterable[int]) -> Step:
    """Return a step of a kind, with the values of its fields in their order."""
    return kind(*values)
