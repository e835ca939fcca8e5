"""The persons of a history: who repeats what, which operations follow which, and what they ask for."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from support.plain_clinic import PlainClinic

from followup import FollowUp
from followup_mockserver.lab.simulation.history import Again, Book, Cancel, CrashNow, Reschedule, history_of, seed_of
from followup_mockserver.simulation import Booking, Clinic, simulate


class Watched(PlainClinic):
    """Notes the operations, and lets those fail whose numbers are in ``fails``."""

    receiver_url = None
    fails: tuple[int, ...] = ()
    calls: list[tuple[str, Booking]]

    def __init_subclass__(cls) -> None:
        cls.calls = []

    def note(self, operation: str, booking: Booking) -> None:
        self.calls.append((operation, booking))
        if len(self.calls) in self.fails:
            raise RuntimeError

    def book(self, booking: Booking) -> None:
        self.note("book", booking)
        super().book(booking)

    def reschedule(self, booking: Booking) -> None:
        self.note("reschedule", booking)
        super().reschedule(booking)

    def cancel(self, booking: Booking) -> None:
        self.note("cancel", booking)
        super().cancel(booking)


def calls_of(clinic: type[Watched], *steps: Any) -> list[str]:
    simulate(clinic, examples=1, seed=seed_of(steps))
    return [f"{operation} {booking.external_id}" for operation, booking in clinic.calls]


def test_a_person_repeats_the_operation_that_failed_last_with_an_equal_booking() -> None:
    class Failing(Watched):
        fails = (2, 3)

    assert calls_of(Failing, Book(0, 0), Book(1, 1), Reschedule(0, 3), Again(), Again(), Again()) == [
        "book B1",
        "book B2",
        "reschedule B1",
        "reschedule B1",
        "book B2",
    ]
    assert Failing.calls[2] == Failing.calls[3]
    assert Failing.calls[1] == Failing.calls[4]


def test_only_bookings_that_were_made_are_changed_and_cancelled_ones_no_more() -> None:
    class Failing(Watched):
        fails = (2, 3)

    assert calls_of(Failing, Reschedule(0, 1), Book(0, 0), Book(1, 1), Cancel(1), Cancel(0), Reschedule(0, 2)) == [
        "book B1",
        "book B2",
        "cancel B1",
    ]


def test_a_history_has_up_to_twelve_bookings_and_persons_share_phones_and_names() -> None:
    class Many(Watched):
        pass

    assert calls_of(Many, *[Book(person % 9, 0) for person in range(14)]) == [f"book B{n}" for n in range(1, 13)]
    bookings = [booking for _, booking in Many.calls]
    persons = {(booking.full_name, booking.phone) for booking in bookings}
    assert len({phone for _, phone in persons}) < len({name for name, _ in persons}) < len(persons) == 9
    assert any(not booking.full_name.isascii() for booking in bookings)


def test_times_are_aware_and_later_than_the_time_of_the_simulation() -> None:
    class Clock(Watched):
        times: list[datetime] = []  # noqa: RUF012

        def start(self, client: FollowUp, folder: Path) -> None:
            super().start(client, folder)
            self.times.append(self.now())

    calls_of(Clock, Book(0, 0), CrashNow(), Book(0, 15))
    assert Clock.times[0] == datetime(2040, 1, 2, 12, tzinfo=UTC)
    for _, booking in Clock.calls:
        assert booking.start_at.utcoffset() == timedelta(0)
        assert booking.start_at > Clock.times[-1]


def test_a_seed_encodes_exactly_its_history() -> None:
    steps = (Book(7, 15), Again(), Reschedule(0, 0), Cancel(7), Book(0, 0))
    assert history_of(seed_of(steps)) == steps
    assert all(history_of(seed) is None for seed in [*range(100_000), 2**32 + 1, 2**64 + 1])


def test_a_clinic_without_webhooks_is_not_asked_what_it_handled() -> None:
    class NoWebhooks(Watched):
        receiver = Clinic.receiver

        def handled(self) -> list[str]:
            return []

    simulate(NoWebhooks, examples=5, seed=1)
    assert NoWebhooks.calls
