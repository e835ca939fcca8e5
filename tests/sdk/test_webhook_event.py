"""The objects in a webhook, and the current object at the service, as the mock sends and keeps them."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import attrs
import httpx
import pytest

from followup import (
    Appointment,
    Event,
    FollowUp,
    IntakeRequest,
    NotFoundError,
    Patient,
    Treatment,
    Visit,
    WebhookEndpoint,
    WebhookEvent,
    construct_event,
)
from followup_mockserver import MockService

URL = "https://clinic.example/webhooks"
AT = datetime(2026, 12, 1, 14, 30, tzinfo=UTC)


class Clinic:
    """A mock, a client, and the events that its receiver got, by type."""

    def __init__(self) -> None:
        self.service = MockService()
        self.client: FollowUp = self.service.client()
        self.events: dict[str, WebhookEvent] = {}
        endpoint = self.client.webhook_endpoints.create(url=URL, enabled_events=["*"])
        secret = endpoint.secret or ""

        def receive(request: httpx.Request) -> httpx.Response:
            event = construct_event(request.content, request.headers, secret, tolerance=None)
            self.events[event.type] = event
            return httpx.Response(204)

        self.service.mount(URL, receive)


@pytest.fixture
def clinic() -> Iterator[Clinic]:
    made = Clinic()
    with made.client:
        yield made


def views(event: WebhookEvent) -> dict[str, type]:
    """The classes of the objects that an event has."""
    found = {name: getattr(event, name) for name in ("patient", "appointment", "visit", "treatment", "intake_request")}
    return {name: type(value) for name, value in found.items() if value is not None}


def test_each_event_has_its_object_and_the_patient(clinic: Clinic) -> None:
    client = clinic.client
    appointment = client.appointments.create(patient={"phone": "+5491155550000", "full_name": "Ana"}, start_at=AT)
    client.visits.create(patient=appointment.patient, visited_at=AT)
    client.treatments.create(patient=appointment.patient, name="Ibuprofen")
    client.intake_requests.create(patient={"phone": "+5491155550001"})
    clinic.service.advance()
    events = clinic.events
    assert views(events["patient.upserted"]) == {"patient": Patient}
    assert views(events["appointment.created"]) == {"patient": Patient, "appointment": Appointment}
    assert views(events["visit.completed"]) == {"patient": Patient, "visit": Visit}
    assert views(events["treatment.prescribed"]) == {"patient": Patient, "treatment": Treatment}
    assert views(events["intake.created"]) == {"patient": Patient, "intake_request": IntakeRequest}
    found = events["appointment.created"].appointment
    assert found == appointment
    assert found.start_at == AT


def test_what_is_only_part_of_an_object_is_none_and_stays_in_the_data(clinic: Clinic) -> None:
    clinic.client.intake_requests.create(
        patient={"phone": "+5491155550001", "full_name": "Ana", "dni": "30111222", "date_of_birth": "1980-01-01"},
        requested_service="care", address="Calle 1", coverage={"insurer": "OSDE", "member_id": "1"},
    )  # fmt: skip
    clinic.service.advance()
    event = clinic.events["intake.ready"]
    assert views(event) == {}
    assert event.data["patient"]["fullName"] == "Ana"


@pytest.mark.parametrize("data", [{}, {"patient": None}, {"patient": "pat_1"}, {"patient": []}, {"patient": {"id": 5}}])
def test_data_that_is_no_object_is_none(data: dict[str, Any]) -> None:
    event = WebhookEvent(
        id="whd_1", type="patient.upserted", api_version="2026-09-28", livemode=False, occurred_at=AT, ref="pat_1",
        data=data,
    )  # fmt: skip
    assert views(event) == {}


def test_the_current_object_is_retrieved_with_either_client(clinic: Clinic) -> None:
    client = clinic.client
    appointment = client.appointments.create(patient={"phone": "+5491155550000"}, start_at=AT)
    clinic.service.advance()
    client.appointments.cancel(appointment.id)
    event = clinic.events["appointment.created"]
    current = event.retrieve(client)
    assert isinstance(current, Appointment)
    assert (current.status, event.appointment and event.appointment.status) == ("cancelled", "confirmed")

    async def retrieve() -> Any:
        async with clinic.service.async_client() as asynchronous:
            return await event.retrieve(asynchronous)

    assert asyncio.run(retrieve()) == current


def test_every_kind_of_object_is_retrieved(clinic: Clinic) -> None:
    client = clinic.client
    appointment = client.appointments.create(patient={"phone": "+5491155550000"}, start_at=AT)
    intake = client.intake_requests.create(patient={"phone": "+5491155550001"})
    endpoint = client.webhook_endpoints.list().first()
    assert endpoint is not None
    delivery = client.webhook_endpoints.ping(endpoint.id)
    client.events.create({"id": "1", "type": "order.issued", "data": {}})
    stored = client.events.list().first()
    assert stored is not None
    clinic.service.advance()
    event = clinic.events["webhook.ping"]
    for ref, cls in [
        (appointment.patient, Patient), (appointment.id, Appointment), (intake.id, IntakeRequest),
        (endpoint.id, WebhookEndpoint), (stored.id, Event), (delivery.id, type(delivery)),
        (client.visits.create(patient=appointment.patient, visited_at=AT).id, Visit),
        (client.treatments.create(patient=appointment.patient, name="x").id, Treatment),
    ]:  # fmt: skip
        found: Any = attrs.evolve(event, ref=ref).retrieve(client)
        assert (type(found), found.id) == (cls, ref)


def test_an_object_that_is_gone_or_none_at_all(clinic: Clinic) -> None:
    clinic.client.patients.create(phone="+5491155550000")
    clinic.service.advance()
    event = clinic.events["patient.upserted"]
    with pytest.raises(NotFoundError):
        attrs.evolve(event, ref="pat_unknown").retrieve(clinic.client)
    for ref in ("", "org_1", "1042", "+5491155550000"):
        with pytest.raises(ValueError, match="not the id of an object that can be retrieved") as caught:
            attrs.evolve(event, ref=ref).retrieve(clinic.client)
        assert not ref or ref not in str(caught.value)
