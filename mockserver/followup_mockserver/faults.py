"""Faults on purpose: the next calls of an operation fail as a test wants them to."""

import random
from typing import Literal

import attrs

FaultKind = Literal["status", "delay", "disconnect", "truncate"]
FaultMoment = Literal["before", "after"]

EVERY_OPERATION = "*"


@attrs.define(kw_only=True)
class Fault:
    """A fault that waits for its calls.

    Attributes:
        operation: name of the operation, or ``*`` for all.
        kind: ``status`` answers with an error, ``delay`` answers late, ``disconnect`` drops the connection without an
            answer, ``truncate`` drops it in the middle of one.
        status: HTTP status, for kind ``status``.
        seconds: how long, for kind ``delay``.
        times: for how many calls; None for all that come.
        when: ``before`` the work is done, or ``after``: the caller does not hear that it was.
        skip: how many calls pass first.
        probability: of hitting a call, 0 to 1.
        retry_after: seconds in a ``Retry-After`` header, for kind ``status``.
    """

    operation: str
    kind: FaultKind
    status: int = 500
    seconds: float = 0.0
    times: int | None = 1
    when: FaultMoment = "before"
    skip: int = 0
    probability: float = 1.0
    retry_after: float | None = None


class Faults:
    """The faults of one organization; which calls they hit by chance follows from the seed."""

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

    def strike(self, operation: str) -> Fault | None:
        """The fault that this call of the operation meets, if any; counts it."""
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
