"""Each promise is broken by a clinic with one bug, and the message names the promise and what is wrong."""

import json
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from fnmatch import fnmatchcase
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from support.integrations.common import FindsByName
from support.plain_clinic import PlainClinic

from followup import FollowUp, FollowUpError
from followup_mockserver.lab.simulation.history import Book, Forge, PassTime, Work, seed_of
from followup_mockserver.simulation import Booking, Clinic, simulate


def broken_by(clinic: type[Clinic], seed: int = 2) -> tuple[str, str]:
    """Return the promise that a clinic breaks, and the detail."""
    with pytest.raises(AssertionError) as failure:
        simulate(clinic, seed=seed)
    promise, detail = str(failure.value).split("\n\n")[2].split("\n", 1)
    return promise.removeprefix("Promise: "), detail


KEPT = "What book(), reschedule() and cancel() did when they returned is in bookings()."
REACHED = "Every booking that the clinic believes in is at the service exactly once, at its last time."
CANCELLED = "A booking that the clinic cancelled is cancelled at the service, or never got there."
KNOWN = "Nothing is at the service that the clinic does not know."
HANDLED = "The work of every genuine webhook event is done exactly once."
FORGED = "The work of a forged webhook is never done."
RESTED = "When all faults have ended, work() comes to rest."
STARTED = "The clinic starts, also after a crash, unless a fault prevents it."


class OnlyInMemory(PlainClinic):
    def save(self) -> None:
        pass


class NeverMoves(PlainClinic):
    def send(self, external_id: str, booking: dict[str, Any]) -> None:
        appointment = self.client.appointments.create(
            patient=booking["patient"], start_at=booking["start_at"], external_id=external_id
        )
        if booking["cancelled"]:
            self.client.appointments.cancel(appointment.id)


class CancelsAtHome(PlainClinic):
    def send(self, external_id: str, booking: dict[str, Any]) -> None:
        if not booking["cancelled"]:
            super().send(external_id, booking)


class BooksTwice(PlainClinic):
    def send(self, external_id: str, booking: dict[str, Any]) -> None:
        try:
            super().send(external_id, booking)
        except FollowUpError:
            super().send(f"{external_id}-again", booking)
            super().send(external_id, booking)


class BooksAnonymously(PlainClinic):
    def send(self, external_id: str, booking: dict[str, Any]) -> None:
        self.client.appointments.create(patient=booking["patient"], start_at=booking["start_at"])
        super().send(external_id, booking)


class Forgets(PlainClinic):
    def bookings(self) -> dict[str, Any]:
        return {external_id: start_at for external_id, start_at in super().bookings().items() if start_at}


class DoesNotLook(PlainClinic):
    def arrive(self, event_id: str) -> None:
        self.state["arrived"].append(event_id)
        self.save()


class DoesNotVerify(PlainClinic):
    def verified(self, request: httpx.Request) -> Any:
        return unverified(request)


class VerifiesTheIdOnly(PlainClinic):
    """Trusts ids that the service could have made, and does the work at once."""

    def verified(self, request: httpx.Request) -> Any:
        found = unverified(request)
        return super().verified(request) if found.id.startswith("whd_forged") else found

    def arrive(self, event_id: str) -> None:
        super().arrive(event_id)
        self.work_on_arrivals()

    def work_on_arrivals(self) -> None:
        while self.state["arrived"]:
            self.do(self.state["arrived"][0])


class Inventive(PlainClinic):
    def bookings(self) -> Any:
        return {**super().bookings(), "X": None}


class Mistaken(PlainClinic):
    def handled(self) -> list[str]:
        return ["apt_1"]


class MovesEachTime(PlainClinic):
    def work(self) -> None:
        super().work()
        for appointment in self.client.appointments.list():
            if appointment.status != "cancelled":
                self.client.appointments.cancel(appointment.id)
                self.state["rounds"] = self.state.get("rounds", 0) + 1
                self.client.appointments.create(
                    patient=appointment.patient,
                    start_at=appointment.start_at,
                    external_id=f"round-{self.state['rounds']}",
                )
                self.save()


BROKEN: list[tuple[type[Clinic], str, str]] = [
    (OnlyInMemory, KEPT, "B1: bookings() says nothing; right is 2040-04-01 12:00 UTC."),
    (NeverMoves, REACHED, "B1: bookings() says 2040-04-02 12:30 UTC; the service has 2040-04-01 12:00 UTC."),
    (CancelsAtHome, CANCELLED, "B1: bookings() says cancelled; the service has 2040-04-01 12:00 UTC."),
    (BooksTwice, KNOWN, "The service has B1-again: 2040-04-01 12:00 UTC; bookings() does not have it."),
    (BooksAnonymously, KNOWN, "The service has an appointment without an external id: 2040-04-01 12:00 UTC; *"),
    (Forgets, KEPT, "B1: bookings() says nothing; right is cancelled."),
    (DoesNotLook, HANDLED, "*was done 2 times."),
    (DoesNotVerify, FORGED, "handled() has whd_forged*"),
    (VerifiesTheIdOnly, FORGED, "*which had only arrived in a forged request."),
    (Inventive, REACHED, "bookings() has 'X', which is the external_id of no booking; use that of book()."),
    (Mistaken, HANDLED, "handled() has 'apt_1', which is the id of no webhook event; use event.id (whd_…)."),
    (MovesEachTime, RESTED, "After 50 rounds of work() there are still changes."),
]
"""The clinic, the promise that it breaks, and what is wrong."""


@pytest.mark.parametrize(("clinic", "promise", "detail"), BROKEN, ids=[each[0].__name__ for each in BROKEN])
def test_a_promise_that_is_broken_is_named_with_what_is_wrong(clinic: type[Clinic], promise: str, detail: str) -> None:
    found = broken_by(clinic)
    assert found[0] == promise
    assert fnmatchcase(found[1], detail)


BUENOS_AIRES = timezone(timedelta(hours=-3))


@pytest.mark.parametrize(
    ("difference", "text"),
    [
        (timedelta(hours=1), "2040-04-01 13:00 UTC"),
        (timedelta(seconds=1), "2040-04-01 12:00:01 UTC"),
        (timedelta(microseconds=-1), "2040-04-01 11:59:59.999999 UTC"),
    ],
)
def test_a_time_of_bookings_is_printed_in_utc_and_unlike_every_other_time(difference: timedelta, text: str) -> None:
    class Local(PlainClinic):
        def bookings(self) -> dict[str, Any]:
            return {
                key: start and (start + difference).astimezone(BUENOS_AIRES)
                for key, start in super().bookings().items()
            }

    promise, detail = broken_by(Local)
    assert promise == KEPT
    assert detail == f"B1: bookings() says {text}; right is 2040-04-01 12:00 UTC."


def test_equal_instants_are_equal_where_the_clocks_of_the_clinic_go_back() -> None:
    change = datetime(2040, 4, 1, 12, 0, tzinfo=UTC)

    class Repeated(tzinfo):
        """A zone whose clocks go back at the time of the first booking, so that its local time occurs twice."""

        def utcoffset(self, instant: datetime | None) -> timedelta:
            return timedelta(hours=instant is not None and not instant.fold)

        def fromutc(self, instant: datetime) -> datetime:
            return instant.replace(fold=1)

    zone = Repeated()
    assert change.astimezone(zone).astimezone(UTC) == change
    assert change.astimezone(zone) != change

    class Local(PlainClinic):
        def bookings(self) -> dict[str, Any]:
            return {key: start and start.astimezone(zone) for key, start in super().bookings().items()}

    simulate(Local, examples=2, seed=1)


def test_a_booking_for_another_person_of_the_same_name() -> None:
    promise, detail = broken_by(FindsByName, seed_of((Book(0, 0), Book(8, 0))))
    assert promise == "Every booking is at the service for the patient with its phone."
    assert detail == (
        "B2 is a booking of José Núñez, +5491155550107; the service has it for the patient with +5491155550101."
    )


def test_a_clinic_that_does_not_start_again() -> None:
    class StartsOnce(PlainClinic):
        def start(self, client: FollowUp, folder: Path) -> None:
            super().start(client, folder)
            (folder / "running").touch(exist_ok=False)

    with pytest.raises(AssertionError) as failure:
        simulate(StartsOnce, seed=1)
    assert isinstance(failure.value.__cause__, FileExistsError)
    story, promise = str(failure.value).split("\n\n")[1:3]
    problem = "start() raised FileExistsError: [Errno 17] File exists: 'folder/running'"
    assert story == f"1. The clinic crashed.\n2. The clinic restarted.\n3. {problem}"
    assert promise == f"Promise: {STARTED}\n{problem}"


def test_the_exception_behind_a_violation_is_its_cause() -> None:
    class Misspelt(PlainClinic):
        def send(self, external_id: str, booking: dict[str, Any]) -> None:
            self.client.appointments.create(patient=booking["pacient"], start_at=booking["start_at"])

    with pytest.raises(AssertionError) as failure:
        simulate(Misspelt, seed=1)
    assert isinstance(failure.value.__cause__, KeyError)
    assert failure.value.__cause__.__traceback__ is not None
    assert "work() raised KeyError" in str(failure.value)


def test_an_operation_that_raised_may_have_been_done_or_not() -> None:
    class Moody(PlainClinic):
        def __init__(self) -> None:
            self.calls = 0

        def book(self, booking: Booking) -> None:
            self.calls += 1
            if self.calls % 3 == 0:
                raise RuntimeError("not done")
            super().book(booking)
            if self.calls % 3 == 1:
                raise RuntimeError("done")

    simulate(Moody, examples=10, seed=1)


def unverified(request: httpx.Request) -> Any:
    return SimpleNamespace(id=json.loads(request.content)["id"])


INVENTED, GENUINE = "an invented appointment.cancelled", "the body of patient.upserted"


def test_each_kind_of_forgery_has_what_the_story_says() -> None:
    forged: list[tuple[str | None, bool]] = []

    class Noting(PlainClinic):
        """Breaks a promise once all have arrived."""

        def start(self, *arguments: Any) -> None:
            super().start(*arguments)
            forged.clear()

        def receive(self, request: httpx.Request) -> httpx.Response:
            response = super().receive(request)
            if response.status_code == 400:
                forged.append((request.headers.get("x-service-signature"), "x-service-timestamp" in request.headers))
            return response

        def bookings(self) -> Any:
            return {} if len(forged) == 8 else super().bookings()

    history = (Book(0, 0), Work(), PassTime(3), *(Forge(kind, 0) for kind in range(8)))
    with pytest.raises(AssertionError) as failure:
        simulate(Noting, examples=1, seed=seed_of(history))
    arrived = "A forged webhook arrived: "
    assert [each.partition(arrived)[2] for each in str(failure.value).splitlines() if arrived in each] == [
        f"{INVENTED}, signed with another secret.",
        f"{GENUINE}, signed with another secret.",
        f"{GENUINE}, replayed with its signature of an hour ago.",
        f"{INVENTED}, without a signature.",
        f"{INVENTED}, with an empty signature.",
        f"{INVENTED}, with a signature that is cut off after sha256=.",
        f"{INVENTED}, with the first half of a signature.",
        f"{INVENTED}, signed with another secret, without a timestamp.",
    ]
    signatures = [signature if signature is None else len(signature) for signature, _ in forged]
    assert signatures == [71, 71, 71, None, 0, 7, 35, 71]
    assert [has_timestamp for _, has_timestamp in forged] == [True] * 7 + [False]
