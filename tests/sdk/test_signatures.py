"""Signatures: what ``help()`` shows of operations and options, and the errors of arguments that they do not take."""

import inspect
import pydoc
from collections.abc import Callable
from typing import Any

import pytest

from followup import AsyncFollowUp, FollowUp, inbound

CLIENT = FollowUp(api_key="k", base_url="https://api.example.com")
ASYNC_CLIENT = AsyncFollowUp(api_key="k", base_url="https://api.example.com")

SIGNATURES = {
    "patients.retrieve": "(id: PatientId, /) -> Patient",
    "appointments.update": "(id: AppointmentId, /, *, start_at: datetime | str = NOT_GIVEN, "
    "doctor: DoctorId | DoctorInput | None = NOT_GIVEN, type: str | None = NOT_GIVEN) -> Appointment",
    "events.create": "(events: EventInput | Iterable[EventInput], *, idempotency_key: str | None = None) -> EventBatch",
}


def method(client: object, name: str) -> Callable[..., Any]:
    group, operation = name.split(".")
    found: Callable[..., Any] = getattr(getattr(client, group), operation)
    return found


@pytest.mark.parametrize("name", SIGNATURES)
@pytest.mark.parametrize("client", [CLIENT, ASYNC_CLIENT], ids=repr)
def test_the_signature_of_an_operation_is_readable(client: object, name: str) -> None:
    assert str(inspect.signature(method(client, name))) == SIGNATURES[name]


def test_the_signature_of_a_builder_of_events_is_readable() -> None:
    assert str(inspect.signature(inbound.patient_upserted)) == (
        "(*, id: str | None = None, patient: PatientInput, occurred_at: datetime | str | None = None, "
        "source: EventSourceInput | None = None) -> EventInput"
    )


def test_help_of_an_operation_shows_its_signature_and_its_docstring() -> None:
    text = pydoc.plain(pydoc.render_doc(CLIENT.patients.retrieve))
    assert "retrieve(id: PatientId, /) -> Patient" in text
    assert "Retrieve a patient (specification, section 4, Patients)." in text


OPTIONS = (
    "api_key, base_url, service_version, timeout, max_retries, deadline, requests_per_minute, http_client, app_info"
)


def test_the_options_of_a_client_are_visible() -> None:
    assert list(inspect.signature(FollowUp).parameters) == OPTIONS.split(", ")
    derived = ["self", "timeout", "max_retries", "deadline", "app_info"]
    assert list(inspect.signature(FollowUp.with_options).parameters) == derived


CALLS: list[tuple[Callable[[Any], Any], str]] = [
    (lambda c: c.patients.create("+54"), r"^Patients\.create\(\) takes 1 positional argument but 2 were given"),
    (lambda c: c.patients.create(phone="1", fullName="Ana"), r"unexpected .* 'fullName'\. Did you mean 'full_name'\?$"),
    (lambda c: c.patients.list(strating_after="pat_1"), r"'strating_after'\. Did you mean 'starting_after'\?$"),
    (lambda c: c.visits.retrieve("vis_1", timeout=5), r"unexpected keyword argument 'timeout'$"),
    (lambda c: c.visits.create(), "missing 2 required keyword-only arguments: 'patient' and 'visited_at'$"),
]


@pytest.mark.parametrize("client", [CLIENT, ASYNC_CLIENT], ids=repr)
@pytest.mark.parametrize(("call", "message"), CALLS)
def test_the_error_of_an_argument_that_is_not_taken(client: Any, call: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(TypeError, match=message) as caught:
        call(client)
    assert caught.value.__suppress_context__
