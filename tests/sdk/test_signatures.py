"""``help()`` shows the operations with the types that a user passes, and no types of the SDK's own."""

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
