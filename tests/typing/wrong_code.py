"""Code that is wrong: each marked line is an error of both checkers, which report a mark where there is none."""

from collections.abc import AsyncIterator

from followup import AsyncFollowUp, EventInput, FollowUp, FolowUp, WebhookEvent, inbound  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
from followup.inbox import Inbox
from followup_mockserver import MockServce, MockService  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]


def use(client: FollowUp) -> None:
    client.patients.create()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    client.patients.create(phone=1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    client.appointments.update("apt_1", start_at=None)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    client.patients.create("1")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    client.patients.create(phone="1", fullName="Ana")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    client.patients.list(limit="10")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    client.appointments.list(status="lost")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    client.webhook_endpoints.create(url="https://x", enabled_events=["nothing"])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
    client.webhook_endpoints.ping("we_1", reason="x")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    FollowUp(app_info={"version": "1.2"})  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    FollowUp(requests_per_minute="600")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    client.events.send_all({"id": "1"})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]
    client.events.send_all(an_async_iterable())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    inbound.patient_upserted(patient={"fullName": "Ana"})  # type: ignore[typeddict-unknown-key]  # pyright: ignore[reportArgumentType]
    inbound.appointment_rescheduled(external_id=5, start_at="x")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    inbound.visit_complete  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    client.patiens.list()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    client.patients.retrieve("pat_1").fullName  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]


def handle(event: WebhookEvent) -> None:
    event.appointment.start_at  # type: ignore[union-attr]  # pyright: ignore[reportOptionalMemberAccess]
    event.appointments  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]


async def an_async_iterable() -> AsyncIterator[EventInput]:
    yield {"id": "1", "type": "order.issued", "data": {}}


async def use_async(client: AsyncFollowUp) -> None:
    await client.patients.create()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    for _ in client.patients.list():  # type: ignore[attr-defined]  # pyright: ignore[reportGeneralTypeIssues]
        break


def use_mock(service: MockService) -> None:
    service.client(retries=0)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    service.add_appointment(patient="pat_1", start_at="x", source="api")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    service.receive_event(inbound.order_issued(patient={}, order={}), source="api")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    service.trigger("appointment.canceled")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    service.update_organization(activated_events=["order.isued"])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]


def handles_webhooks(inbox: Inbox) -> None:
    inbox.on("appointment.create")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    inbox.otherwise(an_async_iterable)  # type: ignore[type-var]  # pyright: ignore[reportArgumentType]
    inbox.drain("60")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
