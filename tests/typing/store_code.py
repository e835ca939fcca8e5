"""Code of users of the outbox, the inbox and imports: type checkers accept it, and see exact types."""

import sqlite3
import threading
from collections.abc import Callable, Collection, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, assert_type

import psycopg
from cryptography.fernet import Fernet, MultiFernet
from sqlalchemy import Connection, Engine
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession
from sqlalchemy.orm import Session

from followup import Appointment, EventInput, FollowUp, WebhookEvent, inbound
from followup.django import client as django_client
from followup.django import inbox as django_inbox
from followup.django import outbox as django_outbox
from followup.imports import Difference, Doubt, Import, ImportRefused, Report
from followup.inbox import CatchUpReport, Inbox, InboxStatus, Received
from followup.inbox import DeadEvent as DeadWebhook
from followup.inbox import DrainReport as HandlingReport
from followup.outbox import Cipher, DeadEvent, DrainReport, NewEvent, Outbox, OutboxStatus


def records(
    engine: Engine,
    connection: Connection,
    session: Session,
    own: sqlite3.Connection,
    psycopg_connection: psycopg.Connection[Any],
    rows_as_dicts: psycopg.Connection[dict[str, Any]],
    of_django: Any,
) -> None:
    outbox = Outbox(engine, name="north", requests_per_minute=300, on_rejected="skip")
    event = inbound.order_issued(patient={"phone": "1"}, order={})
    assert_type(outbox.record(connection, event), str)
    outbox.record(session, event, subject="order-1")
    outbox.record(own, event, None)
    outbox.record(psycopg_connection, event)
    outbox.record(rows_as_dicts, event)
    outbox.record(of_django, event)
    outbox.record(connection, {"type": "order.issued", "data": {}})
    new: NewEvent = {"type": "order.issued", "data": {"patient": {}}, "occurred_at": datetime.now(UTC), "id": None}
    outbox.record(connection, new)


async def records_async(
    outbox: Outbox, connection: AsyncConnection, session: AsyncSession, own: psycopg.AsyncConnection[Any]
) -> None:
    event = inbound.order_issued(patient={"phone": "1"}, order={})
    assert_type(await outbox.record_async(connection, event), str)
    await outbox.record_async(session, event, subject="order-1")
    await outbox.record_async(own, event)


def sends(outbox: Outbox, client: FollowUp) -> None:
    report = outbox.drain(client, deadline=30)
    assert_type(report, DrainReport)
    assert_type(report.duplicates, int)
    outbox.run(client, stop=threading.Event())
    assert_type(outbox.status(), OutboxStatus)
    assert_type(outbox.status().oldest_waiting_seconds, float | None)
    assert_type(outbox.dead(), list[DeadEvent])
    for dead in outbox.dead():
        assert_type(dead.event, EventInput)
        assert_type(dead.error, str)
        outbox.discard(dead.id)
    assert_type(outbox.retry() + outbox.retry("e1"), int)
    assert_type(outbox.purge(older_than=timedelta(days=30)), int)
    assert_type(outbox.export(phone="+5491155550000", dni=None), list[dict[str, Any]])
    assert_type(outbox.erase(external_id="P-1", waiting=True), int)
    assert_type(outbox.ddl(), str)
    outbox.create_tables()
    outbox.close()


class Calendar:
    def __init__(self, inbox: Inbox) -> None:
        inbox.on("appointment.created", "appointment.cancelled")(self.update)

    def update(self, received: Received) -> None:
        assert_type(received.event, WebhookEvent)
        assert_type(received.event.appointment, Appointment | None)
        assert_type(received.connection, Connection)
        assert_type(received.is_stale, bool)
        assert_type(received.attempt, int)
        with received.session() as session:
            assert_type(session, Session)


def handle_alone(received: Received, of_django: Any, own: sqlite3.Connection, session: Session) -> None:
    assert_type(received.done(of_django), None)
    received.done(own)
    received.done(session)


def registers(inbox: Inbox) -> None:
    @inbox.on("appointment.created", transaction="own")
    def first(received: Received) -> None: ...

    @inbox.otherwise(transaction="own")
    def second(received: Received) -> None: ...

    @inbox.otherwise
    def third(received: Received) -> None: ...

    handlers: list[Callable[[Received], None]] = [first, second, third]
    assert_type(handlers, list[Callable[[Received], None]])


def handles(engine: Engine, client: FollowUp, body: bytes, headers: dict[str, str]) -> None:
    inbox = Inbox(engine, secret=["whsec_new", "whsec_old"], name="north", max_attempts=3, handler_timeout=5)
    Calendar(inbox)
    assert_type(inbox.receive(body, headers), int)
    assert_type(inbox.drain(deadline=50), HandlingReport)
    assert_type(inbox.drain(raise_exceptions=True), HandlingReport)
    inbox.run(threading.Event())
    assert_type(inbox.catch_up(client, "we_1", since=datetime.now(UTC)), CatchUpReport)
    assert_type(inbox.status(), InboxStatus)
    assert_type(inbox.status().oldest_waiting_seconds, float | None)
    assert_type(inbox.dead(), list[DeadWebhook])
    assert_type(inbox.retry("whd_1"), int)
    assert_type(inbox.purge(older_than=timedelta(days=30), states=["done", "dead"]), int)
    assert_type(inbox.export(email="ana@example.org"), list[dict[str, Any]])
    assert_type(inbox.erase(dni="30111222"), int)


def imports(engine: Engine, outbox: Outbox, client: FollowUp) -> None:
    job = Import.load("turnos.toml")
    assert_type(job.check("turnos.csv"), Report)
    try:
        report = job.run("turnos.csv", database=engine)
    except ImportRefused as error:
        report = error.report
    assert_type(report.events, Collection[EventInput])
    assert_type(report.doubts, Collection[Doubt])
    assert_type(len(report.doubts) + report.rejected, int)
    differences = job.verify("turnos.csv", client, outbox)
    assert_type(differences, Iterator[Difference])
    assert_type([each for each in differences if each.kind == "missing"], list[Difference])


def encrypts(database_url: str) -> None:
    keys = [Fernet(Fernet.generate_key()) for _ in range(2)]
    outbox = Outbox(database_url, cipher=keys[0])
    assert_type(outbox.reencrypt(), int)
    inbox = Inbox(database_url, cipher=MultiFernet(keys))
    assert_type(inbox.reencrypt(), int)
    own: Cipher = keys[0]
    Outbox(database_url, cipher=own)
    Outbox(database_url, cipher=None)


def in_a_django_project() -> None:
    assert_type(django_outbox.record(inbound.patient_upserted(patient={"phone": "+5491155550000"})), str)
    assert_type(django_outbox.drain(django_client).sent, int)
    assert_type([each["id"] for each in django_outbox.recorded()], list[str])

    @django_inbox.on("appointment.created")
    def handle(received: Received) -> None:
        assert_type(received.event.appointment, Appointment | None)
