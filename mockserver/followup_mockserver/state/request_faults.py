"""Fault injection: the next calls of an operation fail as a test wants them to."""

import random
from typing import Literal, get_args

import attrs

from followup_mockserver.schema.checks import choice, field, number, optional, validator, whole
from followup_mockserver.schema.errors import InvalidArgument

FaultKind = Literal["status", "delay", "disconnect", "truncate"]
FaultMoment = Literal["before", "after"]

EVERY_OPERATION = "*"

LONGEST_FAULT = 24 * 3600
"""Seconds that a fault may delay a call, or that its ``Retry-After`` may ask for."""

_seconds = number(0, LONGEST_FAULT, unit="seconds")


def _of_kind_delay(fault: "Fault", _: object, seconds: float) -> None:
    if fault.kind == "delay" and seconds == 0:
        raise InvalidArgument("seconds", f"more than 0 and at most {LONGEST_FAULT} seconds for a fault of kind delay")


# Checked when it is made, and not as it counts down to its end.
@attrs.define(kw_only=True, on_setattr=attrs.setters.NO_OP)
class Fault:
    """A fault that waits for its calls.

    Attributes:
        operation: name of the operation, or ``*`` for all.
        kind: ``status`` responds with an error, ``delay`` responds late, ``disconnect`` drops the connection without a
            response, ``truncate`` drops it in the middle of one.
        status: HTTP status, for kind ``status``.
        seconds: how long, for kind ``delay``.
        times: for how many calls; None for all that come.
        when: ``before`` the work is done, or ``after``: the client does not learn that it was.
        skip: how many calls pass first.
        probability: of applying to a call, 0 to 1.
        retry_after: seconds in a ``Retry-After`` header, for kind ``status``.

    Raises:
        ValueError: an invalid argument; the message names it.
    """

    operation: str
    kind: FaultKind = field(choice(get_args(FaultKind)))
    status: int = field(whole(400, 599, "an HTTP status from 400 to 599"), 500)
    seconds: float = attrs.field(default=0.0, validator=[validator(_seconds), _of_kind_delay])
    times: int | None = field(optional(whole(1, expected="1 or more, or null for all calls")), 1)
    when: FaultMoment = field(choice(get_args(FaultMoment)), "before")
    skip: int = field(whole(0), 0)
    probability: float = field(number(0, 1), 1.0)
    retry_after: float | None = field(optional(_seconds), None)


class Faults:
    """The faults of one organization; chance follows from the seed."""

    def __init__(self, seed: int | None) -> None:
        self._random = random.Random(seed)  # noqa: S311 - chance for tests, not for secrets
        self._faults: list[Fault] = []

    def __len__(self) -> int:
        return len(self._faults)

    def add(self, fault: Fault) -> None:
        self._faults.append(fault)

    def clear(self) -> None:
        self._faults.clear()

    def all(self) -> list[Fault]:
        """Those that still wait, oldest first."""
        return list(self._faults)

    def match(self, operation: str) -> Fault | None:
        """Return the fault that applies to this call of the operation, if any, and count it."""
        for fault in self._faults:
            if fault.operation not in (operation, EVERY_OPERATION):
                continue
            if fault.skip > 0:
                fault.skip -= 1
            elif fault.probability >= 1 or self._random.random() < fault.probability:
                self._count(fault)
                return fault
        return None

    def _count(self, fault: Fault) -> None:
        if fault.times is not None:
            fault.times -= 1
            if fault.times <= 0:
                self._faults.remove(fault)
