"""A mock with something in every part of its state, for tests of snapshots."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import httpx

from followup import FollowUpError
from followup_mockserver import MockService

NOON = "2026-09-28T12:00:00Z"
HOOKS = "https://clinic.example/hooks"
OTHER_HOOKS = "https://lab.example/hooks"
PHONE = "+5491155550000"


def rich_mock() -> MockService:
    """Return a mock with two organizations, whose default one has all kinds of objects, jobs and faults."""
    service = MockService(start_time=NOON, seed=20, rate_limit=0, idempotency_hours=48, reminder_hours=[24, 3, 0.7])
    _fill(service)
    other = service.create_organization(name="Laboratorio", keys=[{"name": "reader", "scopes": ["patients:read"]}, {}])
    reader, writer = (key.value for key in other.keys)
    controls = service.organization(writer)
    controls.update_organization(language="pt", country="BR", time_zone="America/Sao_Paulo", intake_messages=False)
    controls.update_api_key(reader, expires_at="2026-12-01T00:00:00.000007Z")
    controls.add_api_key(name="old")
    with service.client(api_key=writer) as client:
        client.patients.create(phone="(11) 96123-4567", idempotency_key="same key")
    controls.advance(hours=5)
    return service


def _fill(service: MockService) -> None:
    now = service.clock.now
    service.mount(HOOKS, _alternately(500, 204))
    service.mount(OTHER_HOOKS, _alternately(503))
    with service.client(max_retries=0) as client:
        client.webhook_endpoints.create(url=HOOKS, enabled_events=["*"], description="all", idempotency_key="hooks")
        failing = client.webhook_endpoints.create(url=OTHER_HOOKS, enabled_events=["intake.ready", "patient.upserted"])
        disabled = client.webhook_endpoints.create(url=f"{HOOKS}/off", enabled_events=["webhook.ping"])
        client.webhook_endpoints.update(disabled.id, disabled=True)
        ana = client.patients.create(phone=PHONE, full_name="Ana Pérez", dni="30.123.456", idempotency_key="ana")
        client.patients.update(ana.id, email="ana@mail.example", date_of_birth="1980-05-17", external_id="P-1")
        booked = client.appointments.create(
            patient=ana.id, start_at=now + timedelta(days=3), external_id="A-1", doctor={"external_id": "D-1"}
        )
        client.appointments.update(booked.id, start_at=now + timedelta(days=4, minutes=30))
        passed = client.appointments.create(patient=ana.id, start_at=now + timedelta(hours=1), external_id="A-2")
        cancelled = client.appointments.create(patient={"phone": "+5491155550001"}, start_at=now + timedelta(days=9))
        client.appointments.cancel(cancelled.id)
        client.visits.create(patient=ana.id, visited_at=now, appointment=passed.id, external_id="V-1", notes="note ñ")
        client.intake_requests.create(patient={"full_name": "Eva", "phone": "+5491155550002"}, address="Mitre 1")
        contact: Any = {"name": "Leo", "phone": "+5491155550003"}
        asked = client.intake_requests.create(patient={"dni": "1"}, contacts=[contact], idempotency_key="asked")
        client.treatments.create(patient=ana.id, name="ibuprofen", end_date=now + timedelta(days=5))
        client.events.create(
            [
                {"id": "E-1", "type": "order.issued", "data": {"patient": {"phone": PHONE}, "order": {"kind": "lab"}}},
                {"id": "E-2", "type": "appointment.cancelled", "data": {"appointment": {"externalId": "none"}}},
                {"id": "E-3", "type": "patient.upserted", "data": {"patient": {"externalId": "P-1", "fullName": "A"}}},
            ],
            idempotency_key="batch",
        )
        service.advance(minutes=2)
        service.answer_intake_request(asked.id, patient={"full_name": "Sol"}, requested_service="nursing")
        service.update_patient(ana.id, stage="in_conversation")
        service.add_doctor(full_name="Dra. Paz", external_id="D-9", active=False)
        service.disturb(kind="reorder", seconds=7200)
        service.disturb(kind="late", type="patient.upserted", seconds=600, times=2)
        service.disturb(kind="wrong_signature", type="visit.completed", times=3)
        client.webhook_endpoints.ping(failing.id)
        client.patients.create(phone="+5491155550004", idempotency_key="late")
        service.add_fault(operation="account.retrieve", kind="status", status=503, times=None, probability=0.5)
        for _ in range(5):
            _try(client.account.retrieve)
        service.add_fault(operation="patients.list", kind="status", status=429, skip=1, times=2, retry_after=7)
        service.resend(service.deliveries[-1].id)


def _alternately(*statuses: int) -> Callable[[httpx.Request], httpx.Response]:
    received: list[int] = []

    def receive(_: httpx.Request) -> httpx.Response:
        received.append(statuses[len(received) % len(statuses)])
        return httpx.Response(received[-1])

    return receive


def _try(call: Callable[[], Any]) -> None:
    try:
        call()
    except FollowUpError:
        return
