"""The simulation of a clinic: it plays random histories against the mock, and judges what an integration makes of them.

A clinic is a subclass of ``Clinic``, or of ``OutboxClinic`` if it uses our outbox and inbox; ``simulate`` plays
bookings, faults, repeated and forged webhooks, crashes and restarts, and checks that nothing is lost and nothing is
done twice.
"""

import gc
import os
import random
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from itertools import islice

import attrs

from followup_mockserver import MockService as _MockService  # noqa: F401 - first, because its error names the extra
from followup_mockserver.deliveries.applications import running_loop
from followup_mockserver.lab.simulation import history as steps
from followup_mockserver.lab.simulation.clinic import (
    Booking,
    Clinic,
    Crash,
    OutboxClinic,
    check_clinic,
    is_asynchronous,
)
from followup_mockserver.lab.simulation.drivers import observed_drivers
from followup_mockserver.lab.simulation.playing import Player
from followup_mockserver.lab.simulation.promises import Finding, report_of
from followup_mockserver.world.schema.errors import integer

__all__ = ["Booking", "Clinic", "Crash", "OutboxClinic", "simulate"]

_FRESH_BITS = 32
_SHORT = 12
"""The number of steps up to which pairs of steps are removed, too."""
_MOST_SHRINKS = 500
"""How many histories are played in search of a shorter one. A limit in seconds would not be reproducible."""

_NOT_AGAIN = (
    "Played again, the clinic did something else, so the seed may not repeat this: threads, the real time and random "
    "numbers of its own can cause that."
)


def simulate(clinic: type[Clinic], examples: int = 50, seed: int | None = None) -> None:
    """Play random histories with a clinic against the mock, and check that it keeps its promises.

    Each history has bookings, changes, cancellations, faults of the service and of the network, webhooks that are
    repeated, late, out of order or forged, crashes and restarts. Then the faults end, ``work`` runs until nothing
    changes, and the promises are checked. Each booking that the clinic believes in is at the service exactly once, at
    its last time, for the patient with its phone. Cancelled ones are cancelled, and nothing is there that the clinic
    does not know. The work of each genuine webhook event was done exactly once, that of forged ones never.

    Meanwhile, this process is in the time zone Pacific/Chatham, unless the environment variable ``TZ`` has another one
    than UTC, or Django has set it.

    The same seed gives the same histories in every process with the same versions of Python and followup,
    for an integration that uses one thread.

    Args:
        clinic: the integration, a subclass of ``Clinic``.
        examples: how many histories to play.
        seed: the seed of the histories; another one in each run when omitted. The seed in a failure's message is that
            of its one history, which is played first.

    Raises:
        AssertionError: a promise is broken. The message has the shortest history that was found, in numbered lines, the
            promise, and the call that repeats the history. Its cause is the exception of the clinic's code, if one led
            to it.
        TypeError: the class lacks a method, or a method returned something of a wrong type; the message names it.
        ValueError: an invalid argument, or a method returned an invalid value; the message names it.
        Exception: any exception of ``bookings`` or ``handled``. Its note has the call that repeats the
            history.

    Warns:
        UserWarning: the run shows little: no booking was ever made, or there is a receiver without a ``receiver_url``.
    """
    __tracebackhide__ = True
    check_clinic(clinic)
    integer(1)("examples", examples)
    if seed is not None:
        integer(0)("seed", seed)
    seed = random.SystemRandom().getrandbits(_FRESH_BITS) if seed is None else seed
    if running_loop() is None:
        player, found = _search(clinic, examples, seed)
    else:
        # In an asynchronous test, ordinary methods of the clinic could not call asyncio.run().
        with ThreadPoolExecutor(1) as threads:
            player, found = threads.submit(copy_context().run, _search, clinic, examples, seed).result()
    if found is None:
        _warn_of_little_use(clinic, player)
        return
    history, finding = found
    raise AssertionError(report_of(clinic, history, finding)) from finding.cause


def _search(clinic: type[Clinic], examples: int, seed: int) -> "tuple[Player, tuple[steps.History, Finding] | None]":
    with _silent_crashes(), observed_drivers(), _zone_of_the_machine():
        player = Player(clinic)
        try:
            return player, _found(player, examples, seed)
        finally:
            gc.unfreeze()


_BETWEEN_REPORTS = 5.0
"""Seconds, in real time."""


def _counted(histories: Iterator[steps.History], examples: int) -> Iterator[steps.History]:
    """Iterate over so many histories, and report the progress if it takes long."""
    reported = time.monotonic()
    for number, history in enumerate(islice(histories, examples)):
        if number and time.monotonic() - reported >= _BETWEEN_REPORTS:
            reported = time.monotonic()
            sys.stderr.write(f"{number} of {examples} histories\n")
        yield history


def _found(player: Player, examples: int, seed: int) -> tuple[steps.History, Finding] | None:
    """Return the shortest history found that breaks a promise, with what it found; None if there is none."""
    encoded = steps.history_of(seed)
    if encoded is not None:
        if (finding := player.play(encoded)) is not None:
            return encoded, finding
        examples -= 1
    drawn = steps.histories(
        random.Random(seed),  # noqa: S311 - histories are reproducible on purpose
        with_webhooks=bool(player.secret),
        with_tasks=is_asynchronous(player.clinic),
    )
    for history in _counted(drawn, examples):
        if (finding := player.play(history)) is not None:
            return _shrunk(player, history, finding)
    return None


def _shrunk(player: Player, history: steps.History, finding: Finding) -> tuple[steps.History, Finding]:
    """Shrink a history that breaks a promise, and play the result once more for the report."""
    known: dict[steps.History, bool] = {}  # the search proposes many histories again after each success

    def breaks(shorter: steps.History) -> bool:
        if shorter not in known:
            known[shorter] = len(known) < _MOST_SHRINKS and player.play(shorter) is not None
        return known[shorter]

    shortest, before = history, None
    while shortest != before:
        before = shortest
        for candidates in (_without_runs, _without_pairs, _with_simpler_steps):
            while (shorter := next(filter(breaks, candidates(shortest)), None)) is not None:
                shortest = shorter
    found = player.play(shortest)
    if found is not None:
        return shortest, found
    return history, attrs.evolve(finding, detail=f"{finding.detail}\n{_NOT_AGAIN}")


def _warn_of_little_use(clinic: type[Clinic], player: Player) -> None:
    """Warn of what was not simulated, although no promise was broken."""
    name = clinic.__name__
    if player.booking_error is not None and not player.has_booked:
        warnings.warn(
            f"{name} keeps its promises only because it never made a booking; "
            f"without any fault, {player.booking_error}",
            stacklevel=3,
        )
    has_chosen = any("receiver_url" in vars(each) for each in clinic.__mro__ if each is not Clinic)
    if not has_chosen and clinic.receiver is not Clinic.receiver:
        warnings.warn(
            f"{name} has receiver(), but no receiver_url, so no webhooks were simulated: "
            "set receiver_url to an https URL, or to None if that is intended",
            stacklevel=3,
        )


@contextmanager
def _silent_crashes() -> Iterator[None]:
    """Let threads of the clinic end by a crash without a report."""
    before = threading.excepthook

    def report(arguments: threading.ExceptHookArgs) -> None:
        if not issubclass(arguments.exc_type, Crash):
            before(arguments)

    threading.excepthook = report
    try:
        yield
    finally:
        threading.excepthook = before


def _without_runs(history: steps.History) -> Iterator[steps.History]:
    """Yield the history without some consecutive steps: many first, and the last ones first."""
    size = len(history) // 2
    while size:
        for end in range(len(history), size - 1, -size):
            yield history[: end - size] + history[end:]
        size //= 2


def _without_pairs(history: steps.History) -> Iterator[steps.History]:
    """Yield a short history without two of its steps, such as a fault and its remedy."""
    if len(history) <= _SHORT:
        for second in range(len(history) - 1, 0, -1):
            for first in range(second):
                yield history[:first] + history[first + 1 : second] + history[second + 1 :]


def _with_simpler_steps(history: steps.History) -> Iterator[steps.History]:
    for position, step in enumerate(history):
        for simpler in _simpler(step):
            yield (*history[:position], simpler, *history[position + 1 :])


def _simpler(step: steps.Step) -> Iterator[steps.Step]:
    if isinstance(step, steps.CrashAtRequest | steps.CrashAtCommit | steps.CrashAtStart):
        yield steps.CrashNow()
    kind: Callable[..., steps.Step] = type(step)
    values = attrs.asdict(step)
    if any(values.values()):
        yield kind()
    for name, value in values.items():
        for smaller in range(value):
            yield kind(**{**values, name: smaller})


_ZONE = "Pacific/Chatham"
"""Nearly nobody lives there, its offset is no whole hour, and its clocks go back in April."""


@contextmanager
def _zone_of_the_machine() -> Iterator[None]:
    """Set the time zone of this process within this block.

    A zone that the variable ``TZ`` chooses stays: the code may rely on it.
    """
    # Code that takes the machine's local time for UTC, or for that of the clinic, is right by accident on a machine in
    # that zone, as most servers are in UTC. Windows has no zone of a process.
    before = os.environ.get("TZ")
    if not hasattr(time, "tzset") or (before is not None and _is_chosen(before)):
        yield
        return
    _set(_ZONE)
    try:
        yield
    finally:
        # If it is another one, the clinic has chosen it meanwhile.
        if os.environ.get("TZ") == _ZONE:
            _set(before)


def _is_chosen(zone: str) -> bool:
    """Return whether the program, or whoever started it, has chosen this zone."""
    # UTC is that of most servers and tests, so it counts only if Django has set it: a program with Django relies on it.
    django = sys.modules.get("django.conf")
    if django is not None and django.settings.configured and zone == django.settings.TIME_ZONE:
        return True
    return time.timezone != 0 or bool(time.daylight)


def _set(zone: str | None) -> None:
    if zone is None:
        os.environ.pop("TZ", None)
    else:
        os.environ["TZ"] = zone
    time.tzset()
