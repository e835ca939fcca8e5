"""Code as users write it: type checkers accept it, and see exact types."""

from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import UTC, date, datetime
from typing import Any, Literal, assert_type

import httpx

from followup import (
    APIStatusError,
    AppInfo,
    Appointment,
    AsyncFollowUp,
    AsyncPage,
    DeletedObject,
    Event,
    EventBatch,
    EventBatchError,
    EventInput,
    EventResult,
    FollowUp,
    Page,
    Patient,
    PatientInput,
    RateLimitError,
    Visit,
    WebhookDelivery,
    WebhookEndpoint,
    WebhookEvent,
    construct_event,
    inbound,
    verify_signature,
)
from followup_mockserver import Fault, MockEnvironment, MockOptions, MockService


def use(client: FollowUp) -> None:
    patient = client.patients.create(phone="+54 9 11 5555-0000", date_of_birth=date(1980, 5, 17))
    assert_type(patient, Patient)
    assert_type(patient.phone, str | None)
    assert_type(patient.created_at, datetime)
    assert_type(patient.extra, Mapping[str, Any])
    assert_type(patient.last_response.request_id, str | None)
    client.patients.update(patient.id, email=None, full_name="Ana")
    client.appointments.create(
        patient={"phone": "1", "full_name": "Ana"}, start_at=datetime.now(UTC), doctor={"external_id": "D-1"}
    )
    assert_type(client.events.create({"id": "1", "type": "visit.completed", "data": {}}), EventBatch)
    events: list[EventInput] = [{"id": str(n), "type": "order.issued", "data": {}} for n in range(3)]
    client.events.create(each for each in events)
    assert_type(client.events.send_all(each for each in events), Iterator[EventResult])
    endpoint = client.webhook_endpoints.create(url="https://clinic.example", enabled_events=["*"])
    assert_type(endpoint, WebhookEndpoint)
    assert_type(client.webhook_endpoints.ping(endpoint.id), WebhookDelivery)
    assert_type(client.webhook_endpoints.delete(endpoint.id), DeletedObject)
    page = client.patients.list(limit=10)
    assert_type(page, Page[Patient])
    assert_type(page.next_page(), Page[Patient] | None)
    for each in page:
        assert_type(each, Patient)
    assert_type(client.with_options(deadline=3), FollowUp)
    assert_type(FollowUp(requests_per_minute=600), FollowUp)
    clinic: AppInfo = {"name": "Clinic", "version": "1.2", "url": "https://clinic.example"}
    assert_type(FollowUp(app_info=clinic).with_options(app_info={"name": "Plugin"}), FollowUp)


def statuses_of_results_are_statuses_of_filters(client: FollowUp) -> None:
    for appointment in client.appointments.list():
        client.appointments.list(status=appointment.status)
    for event in client.events.list():
        client.events.list(type=event.type, status=event.status, source=event.source)
    for delivery in client.webhook_deliveries.list():
        assert_type(delivery.status, Literal["pending", "succeeded", "failed"])


async def use_async(client: AsyncFollowUp) -> None:
    assert_type(await client.patients.retrieve("pat_1"), Patient)
    assert_type(await client.patients.list(), AsyncPage[Patient])
    async for each in client.patients.list(dni="1"):
        assert_type(each, Patient)
    assert_type(await client.events.create([]), EventBatch)
    assert_type(client.events.send_all([]), AsyncIterator[EventResult])
    assert_type(client.events.send_all(events_of_a_day()), AsyncIterator[EventResult])


async def events_of_a_day() -> AsyncIterator[EventInput]:
    yield inbound.order_issued(patient={"dni": "1"}, order={"kind": "lab"})


def handle(error: Exception) -> float | None:
    if isinstance(error, RateLimitError):
        assert_type(error.retry_after, float | None)
        return error.retry_after
    if isinstance(error, EventBatchError):
        assert_type(error.results, list[EventResult])
    if isinstance(error, APIStatusError):
        assert_type(error.param, str | None)
    return None


def receive(body: bytes, headers: dict[str, str]) -> str:
    verify_signature(body, headers, ["whsec_new", "whsec_old"])
    event = construct_event(body, headers, "whsec_new", tolerance=None)
    assert_type(event, WebhookEvent)
    if event.type == "appointment.created" and event.appointment is not None:
        assert_type(event.appointment, Appointment)
        assert_type(event.appointment.start_at, datetime)
    assert_type(event.patient, Patient | None)
    return event.type


def explore(client: FollowUp) -> list[dict[str, Any]]:
    first = client.patients.list(limit=5).first()
    assert_type(first, Patient | None)
    assert_type(client.account.retrieve().to_json(), str)
    return [patient.to_dict() for patient in client.patients.list()]


async def follow(client: AsyncFollowUp, event: WebhookEvent) -> None:
    current = await event.retrieve(client)
    if isinstance(current, Appointment):
        assert_type(current.status, Literal["confirmed", "pending", "rescheduled", "cancelled", "completed"])


def send_nullable_columns(client: FollowUp, name: str | None, born: date | None, patient: Patient) -> None:
    client.patients.create(phone="1", full_name=name, date_of_birth=born, email=None)
    client.patients.create(phone=patient.phone or "", full_name=patient.full_name, dni=patient.dni)
    known: PatientInput = {"phone": patient.phone, "full_name": name, "date_of_birth": born}
    client.appointments.create(patient=known, start_at=datetime.now(UTC), doctor=None, type=name)
    client.appointments.update("apt_1", doctor={"external_id": name}, type=name)
    client.appointments.cancel("apt_1", reason=name)
    client.patients.list(external_id=name, starting_after=None, limit=None)
    client.intake_requests.create(patient=known, contacts=[{"name": name, "phone": None}], coverage=None)
    event: EventInput = {"id": "1", "type": "order.issued", "data": {"x": None}, "occurred_at": None, "source": None}
    client.events.create(event)


def followup_options() -> MockOptions:
    return {"start_time": "2030-01-01T09:00:00Z", "reminder_hours": [48]}


def test_with_fixtures(followup_env: MockEnvironment, followup_service: MockService) -> None:
    followup_env.allow("http://127.0.0.1:8000")
    assert_type(followup_env.service, MockService)
    assert_type(followup_env.url, str)
    assert_type(followup_service.add_fault(operation="*", kind="delay", seconds=3), Fault)


def act_as_the_service(service: MockService, patient: Patient) -> None:
    booked = service.add_appointment(patient=patient.id, start_at=datetime.now(UTC), source="manual", status="pending")
    assert_type(booked, Appointment)
    assert_type(service.confirm_appointment(booked.id), Appointment)
    assert_type(service.add_visit(patient={"phone": "1"}, visited_at="2030-01-01T09:00:00Z"), Visit)
    stored = service.receive_event(inbound.order_issued(patient={}, order={}), source="import")
    assert_type(stored, Event)
    assert_type(service.receive_reply(patient.id), Patient)
    assert_type(service.trigger("order.issued"), list[WebhookDelivery])
    service.update_organization(activated_events=["order.issued"])


async def receivers(flask_app: Any, secret: str) -> None:
    async def receive(request: httpx.Request) -> httpx.Response:
        construct_event(request.content, request.headers, secret)
        return httpx.Response(204)

    async with MockService(allow_network=False, rate_limit=0) as service:
        service.mount("https://clinic.example/hooks", receive)
        service.mount("https://clinic.example/flask", flask_app, raise_exceptions=False)
        advanced = await service.advance_async(days=1)
        assert_type(advanced.now, datetime)
        assert_type(service.attempts(service.deliveries[0].id)[0].traceback, str | None)
        await service.aclose()
