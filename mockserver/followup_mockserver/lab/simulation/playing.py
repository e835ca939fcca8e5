"""Plays one history: a fresh service, a fresh folder, the steps, and the judgement at the end."""

import gc
import os
import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import attrs

from followup._for_mockserver import reproducible_randomness, virtual_time
from followup_mockserver.lab.simulation import clinic as clinics
from followup_mockserver.lab.simulation import history as steps
from followup_mockserver.lab.simulation import promises
from followup_mockserver.lab.simulation.clinic import Clinic
from followup_mockserver.lab.simulation.commits import Commits
from followup_mockserver.lab.simulation.history import History, Step, call_that_repeats
from followup_mockserver.lab.simulation.network import Network, PendingFaults
from followup_mockserver.lab.simulation.promises import (
    START,
    Entry,
    Finding,
    Ledger,
    Operation,
    PromiseBroken,
    Story,
    time_of,
)
from followup_mockserver.lab.simulation.running import ClinicTime, Runner
from followup_mockserver.lab.simulation.webhooks import Traffic, what_happened
from followup_mockserver.service import MockService

DURATIONS = (
    ("", timedelta(0)),
    ("A minute passed.", timedelta(minutes=1)),
    ("10 minutes passed.", timedelta(minutes=10)),
    ("An hour passed.", timedelta(hours=1)),
    ("6 hours passed.", timedelta(hours=6)),
    ("A day passed.", timedelta(days=1)),
    ("3 days passed.", timedelta(days=3)),
)

_MAX_ROUNDS = 50
_QUIET_ROUNDS = 2
_ROUND = timedelta(hours=1)
"""How far the clock is advanced after each of the last rounds, at least."""

_MEMORY = Path("/dev/shm")  # noqa: S108 - a new folder is made in it
"""A file system in memory, where there is one: a database that syncs each commit is many times faster there."""


class Player:
    """Plays histories for one class of clinics.

    Attributes:
        clinic: the user's class.
        secret: signing secret of its webhook endpoint; empty without one.
        booking_error: why a booking failed before any fault occurred, as text; None if none did.
        has_booked: whether the clinic believed in a booking at the end of any history.

    Args:
        clinic: the user's class.
    """

    def __init__(self, clinic: type[Clinic]) -> None:
        self.clinic = clinic
        self.booking_error: str | None = None
        self.has_booked = False
        # A fork of it takes less than half the time of a new mock with an endpoint.
        self._template = MockService(start_time=START, seed=0, rate_limit=0)
        self.secret: str = ""
        if clinic.receiver_url is not None:
            with self._template.client() as client:
                endpoint = client.webhook_endpoints.create(url=clinic.receiver_url, enabled_events=["*"])
            self.secret = endpoint.secret or ""

    def play(self, history: History) -> Finding | None:
        """Play a history, and return what it found; None if all promises were kept.

        Raises:
            TypeError, ValueError: a method of the clinic returned what it must not return.
            Exception: one of ``bookings`` or ``handled``. All of these get a note with the call that repeats them.
        """
        # A process that crashes loses its database connections, and with them its locks. In a simulation that is so
        # only when its objects have been freed, and those in reference cycles are freed by a collection. Without
        # ``freeze``, which lets it ignore the objects that existed before, a history takes ten times as long.
        gc.freeze()
        try:
            with self._template.fork() as service, _folder() as folder:
                return _Play(self, service, folder).play(history)
        except Exception as error:
            error.add_note(f"Repeat this history with {call_that_repeats(self.clinic, history)}")
            raise


class _Play:
    """One history in the course of being played."""

    def __init__(self, player: Player, service: MockService, folder: Path) -> None:
        clinic, secret = player.clinic, player.secret
        self._player = player
        self._service = service
        self._time = service._time_of(service.api_key)
        self._story = Story()
        self._pending = PendingFaults()
        self._ledger = Ledger()
        self._network = Network(service, self._pending, self._story)
        commits = Commits(self._pending, self._story)
        self._runner = Runner(
            clinic,
            service,
            ClinicTime(self._time),
            self._network,
            commits,
            self._story,
            folder,
            secret,
            self._pass_time,
        )
        self._traffic = Traffic(service, self._runner, self._pending, self._story, clinic.receiver_url, secret)

    def play(self, history: History) -> Finding | None:
        with _reproducible_random(), reproducible_randomness(0), virtual_time(None, lambda _: self._runner.time):
            try:
                if not any(isinstance(first, steps.CrashAtStart) for first in history[:1]):
                    self._runner.up()
                for step in history:
                    self._step(step)
                self._come_to_rest()
                self._judge()
            except PromiseBroken as broken:
                cause = broken.__cause__ or self._runner.problem
                return Finding(broken.promise, broken.detail, self._story.lines(), cause)
            finally:
                self._runner.discard()
        return None

    def _pass_time(self, seconds: float | None) -> bool:
        """Let time pass while tasks wait. The attempts of deliveries wait for the one that is being made."""
        if not self._traffic.is_attempting:
            return self._traffic.wait(seconds)
        self._time.sleep(seconds or 0)
        return seconds is not None

    def _step(self, step: Step) -> None:
        # Webhooks that are due arrive now, and tasks may still work on them during the step.
        if self._runner.order:
            self._traffic.pass_time(timedelta(0))
        match step:
            case steps.Book():
                if (entry := self._ledger.new(step.patient, step.slot)) is not None:
                    self._operate(entry, "book")
            case steps.Reschedule():
                if (entry := self._ledger.changeable(step.booking)) is not None:
                    entry.booking = attrs.evolve(entry.booking, start_at=time_of(step.slot))
                    self._operate(entry, "reschedule")
            case steps.Cancel():
                if (entry := self._ledger.changeable(step.booking)) is not None:
                    self._operate(entry, "cancel")
            case steps.Again():
                entry = self._ledger.failed()
                if entry is not None and entry.failed is not None:
                    self._operate(entry, entry.failed, again=True)
            case steps.Work():
                self._runner.up()
                self._story.add("work() ran.")
                self._runner.call("work")
            case steps.PassTime():
                text, duration = DURATIONS[step.duration]
                if text:
                    self._story.add(text)
                self._traffic.pass_time(duration)
            case steps.CrashNow():
                if not self._runner.is_down:
                    self._story.add("The clinic crashed.")
                    self._runner.discard()
            case steps.RepeatDelivery():
                self._traffic.repeat(step)
            case steps.DelayDelivery():
                self._traffic.delay(step)
            case steps.Forge():
                self._traffic.forge(step)
            case steps.TaskOrder():
                self._story.add("From here on, tasks went on in another order.")
                self._runner.set_order(step.order)
            case _:
                self._pending.add(step)

    def _operate(self, entry: Entry, operation: Operation, *, again: bool = False) -> None:
        booking = entry.booking
        self._runner.up()
        what = {
            "book": f"booked {booking.external_id} for {booking.full_name}, {promises.time_text(booking.start_at)}",
            "reschedule": f"moved {booking.external_id} to {promises.time_text(booking.start_at)}",
            "cancel": f"cancelled {booking.external_id}",
        }[operation]
        self._story.add(f"The same person again {what}." if again else f"A person {what}.")
        outcome = self._runner.call(operation, booking)
        if operation == "book" and outcome == "raised":
            self._player.booking_error = self._runner.unprovoked or self._player.booking_error
        self._ledger.record(entry, operation, returned=outcome == "returned")

    def _come_to_rest(self) -> None:
        self._pending.end()
        self._service.clear_webhook_faults()
        self._runner.up()
        self._story.add("All faults ended, and work() ran until nothing changed.")
        # From here on, no fault explains an exception.
        self._runner.problem = None
        before, quiet = self._state(), 0
        for _ in range(_MAX_ROUNDS):
            self._runner.call("work")
            now, due = self._service.clock.now, self._traffic.next_attempt_at()
            self._traffic.pass_time(max(_ROUND, _ROUND if due is None else due - now))
            state = self._state()
            quiet = quiet + 1 if state == before else 0
            if quiet == _QUIET_ROUNDS:
                return
            before = state
        raise PromiseBroken(promises.COMES_TO_REST, f"After {_MAX_ROUNDS} rounds of work() there are still changes.")

    def _state(self) -> Any:
        """Return what must not change any more when the clinic has come to rest."""
        clinic = self._runner.up().clinic
        # Also those that have ended: an appointment that was moved away and back leaves nothing else to see.
        deliveries = [(each.id, each.attempts, each.status) for each in self._service.deliveries]
        believed = self._believed()
        appointments = [(each.id, each.status, each.start_at, each.external_id) for each in self._appointments()]
        return believed, appointments, deliveries, sorted(clinics.handled_of(clinic) or ())

    def _judge(self) -> None:
        """Compare what the clinic believes now with what is at the service."""
        believed = self._believed()
        self._player.has_booked |= bool(believed)
        promises.check_bookings(self._ledger.entries, believed, self._appointments())
        tenant = self._service._access.tenant
        phones = {each.id: each.phone for each in tenant.patients}
        promises.check_persons(self._ledger.entries, self._appointments(), phones.get)
        handled = clinics.handled_of(self._runner.up().clinic)
        if self._player.secret and handled is not None:
            genuine = {each.id: what_happened(each.payload) for each in reversed(self._service.deliveries)}
            promises.check_events(handled, genuine, self._traffic.invented)

    def _believed(self) -> dict[str, datetime | None]:
        return clinics.bookings_of(self._runner.up().clinic)

    def _appointments(self) -> list[Any]:
        tenant = self._service._access.tenant
        with tenant.lock:
            return [*tenant.appointments]


@contextmanager
def _folder() -> Iterator[Path]:
    """Make a folder for one history."""
    memory = _MEMORY if os.access(_MEMORY, os.W_OK | os.X_OK) else None
    with tempfile.TemporaryDirectory(prefix="followup-simulation-", dir=memory, ignore_cleanup_errors=True) as name:
        yield Path(name)


@contextmanager
def _reproducible_random() -> Iterator[None]:
    """Make the numbers of ``random`` reproducible, for the user's code."""
    state = random.getstate()
    random.seed(0)
    try:
        yield
    finally:
        random.setstate(state)
