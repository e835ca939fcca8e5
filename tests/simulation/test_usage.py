"""Errors of use name the method or the argument, and what is right; they are no findings."""

import re
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from support.plain_clinic import PlainClinic

from followup_mockserver.simulation import Clinic, simulate


class WithoutBook(Clinic):
    def start(self, client: Any, folder: Any) -> None: ...
    def reschedule(self, booking: Any) -> None: ...
    def cancel(self, booking: Any) -> None: ...
    def bookings(self) -> dict[str, Any]:
        return {}


class WithoutReceiver(PlainClinic):
    receiver = Clinic.receiver


class Http(PlainClinic):
    receiver_url = "http://clinic.example"


@pytest.mark.parametrize(
    ("clinic", "error", "message"),
    [
        (WithoutBook, TypeError, r"has no book\(\); a Clinic needs start, book, reschedule, cancel, bookings$"),
        (WithoutReceiver, TypeError, r"WithoutReceiver has no receiver\(\)"),
        (Http, ValueError, r"Http\.receiver_url must be an https URL, or None for no receiver, not 'http://clinic"),
        (dict, TypeError, r"simulate\(\) takes a subclass of Clinic, not <class 'dict'>"),
    ],
)
def test_a_class_that_is_no_clinic(clinic: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        simulate(clinic)


@pytest.mark.parametrize("numbers", [{"examples": 0}, {"examples": 1.5}, {"seed": -1}, {"seed": "1"}])
def test_invalid_numbers(numbers: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(numbers))):
        simulate(PlainClinic, **numbers)


def with_bookings(change: Callable[[dict[str, Any]], Any]) -> type[Clinic]:
    class Changed(PlainClinic):
        def bookings(self) -> Any:
            return change(super().bookings())

    return Changed


def with_handled(change: Callable[[list[str]], Any]) -> type[Clinic]:
    class Changed(PlainClinic):
        def handled(self) -> Any:
            return change(super().handled() or [])

    return Changed


def naive(bookings: dict[str, datetime | None]) -> dict[str, datetime | None]:
    return {external_id: start_at and start_at.replace(tzinfo=None) for external_id, start_at in bookings.items()}


@pytest.mark.parametrize(
    ("clinic", "error", "message"),
    [
        (with_bookings(naive), ValueError, r"bookings\(\) must have aware datetimes; that of 'B\d'"),
        (with_bookings(lambda found: dict.fromkeys(found, "2040")), TypeError, r"that of 'B\d' is a str"),
        (with_bookings(lambda _: {1: None}), TypeError, r"must have external ids as keys, such as 'B1', not 1"),
        (with_bookings(list), TypeError, r"must return a mapping \{external_id: start_at, or None\}, not list"),
        (with_handled(lambda _: "whd_1"), TypeError, r"handled\(\) must return a list of event ids, or None"),
        (with_handled(lambda _: [1]), TypeError, r"must have the ids of webhook events, such as 'whd_…', not int"),
    ],
)
def test_a_method_that_returns_something_else(clinic: type[Clinic], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        simulate(clinic, seed=1)


@pytest.mark.parametrize("method", ["bookings", "handled"])
def test_an_exception_of_a_query_has_the_call_that_repeats_it(method: str) -> None:
    class Locked(PlainClinic):
        def fail(self) -> Any:
            if self.state["bookings"]:
                raise RuntimeError("database is locked")
            return {}

    setattr(Locked, method, Locked.fail)
    with pytest.raises(RuntimeError) as first:
        simulate(Locked, seed=1)
    (note,) = first.value.__notes__
    seed = re.fullmatch(r"Repeat this history with simulate\(Locked, seed=(\d+)\)", note)
    assert seed is not None
    with pytest.raises(RuntimeError) as again:
        simulate(Locked, examples=1, seed=int(seed[1]))
    assert again.value.__notes__ == [note]


def test_a_receiver_that_cannot_be_called() -> None:
    class Nothing(PlainClinic):
        def receiver(self) -> Any:
            return None

    with pytest.raises(TypeError, match=r"receiver\(\) must return a WSGI or ASGI application or a function"):
        simulate(Nothing, seed=1)


def test_a_clinic_that_never_books_is_warned_of() -> None:
    class Misspelled(PlainClinic):
        def book(self, booking: Any) -> None:
            raise TypeError("create() got an unexpected keyword argument 'starts_at'")

    with pytest.warns(UserWarning, match="never made a booking") as caught:
        simulate(Misspelled, examples=5, seed=1)
    (warning,) = caught
    assert str(warning.message) == (
        "Misspelled keeps its promises only because it never made a booking; "
        "without any fault, book() raised TypeError: create() got an unexpected keyword argument 'starts_at'"
    )
    assert warning.filename == __file__


def test_a_booking_that_was_made_before_the_exception_is_no_reason_to_warn() -> None:
    class Raising(PlainClinic):
        def book(self, booking: Any) -> None:
            super().book(booking)
            raise RuntimeError

    simulate(Raising, examples=5, seed=1)  # a warning is an error in this suite


METHODS = {name: each for name, each in vars(PlainClinic).items() if callable(each)}
WithoutUrl = type("WithoutUrl", (Clinic,), METHODS)


def test_a_receiver_without_a_url_is_warned_of() -> None:
    with pytest.warns(UserWarning, match=r"^WithoutUrl has receiver\(\), but no receiver_url, so no webhooks were sim"):
        simulate(WithoutUrl, examples=1, seed=1)


def test_a_receiver_that_is_switched_off_is_no_reason_to_warn() -> None:
    class SwitchedOff(PlainClinic):
        receiver_url = None

    simulate(SwitchedOff, examples=1, seed=1)


@pytest.mark.parametrize(
    ("method", "error", "line"),
    [
        ("start", RuntimeError("no table\nhint: create_tables()"), "1. start() raised RuntimeError: no table"),
        ("receiver", NotImplementedError(), "1. receiver() raised NotImplementedError."),
    ],
)
def test_a_clinic_that_never_starts(method: str, error: Exception, line: str) -> None:
    def fail(*_: Any) -> Any:
        raise error

    with pytest.raises(AssertionError) as caught:
        simulate(type("Broken", (PlainClinic,), {method: fail}), seed=1)
    promise = "The clinic starts, also after a crash, unless a fault prevents it."
    assert str(caught.value).splitlines()[:4] == [f"{promise} Broken breaks this promise.", "", line, ""]


def test_no_extra_is_needed_but_that_of_the_mock() -> None:
    missing = "dict.fromkeys(('hypothesis', 'sqlalchemy', 'psycopg', 'django'))"
    code = f"import sys; sys.modules |= {missing}; import followup_mockserver.simulation"
    subprocess.run([sys.executable, "-c", code], timeout=60, check=True)
