"""Wrong uses of the outbox and the inbox: each marked line is an error of both checkers."""

import asyncio
import sqlite3
from datetime import timedelta

from cryptography.fernet import Fernet
from sqlalchemy import Connection, Engine
from sqlalchemy.ext.asyncio import AsyncConnection

from followup import AsyncFollowUp, EventInput, FollowUp, inbound
from followup.django import outbox as django_outbox
from followup.inbox import Inbox, Received
from followup.outbox import Outbox


def records(outbox: Outbox, engine: Engine, connection: Connection, asynchronous: AsyncConnection) -> None:
    event = inbound.order_issued(patient={}, order={})
    outbox.record(engine, event)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    outbox.record(asynchronous, event)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    outbox.record(event)  # type: ignore[call-arg, arg-type]  # pyright: ignore[reportCallIssue]
    outbox.record(connection, {"type": "order.isued", "data": {}})  # type: ignore[typeddict-item]  # pyright: ignore[reportArgumentType]
    outbox.record(connection, event, subject=5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    asyncio.run(outbox.record_async(connection, event))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    asyncio.run(outbox.record_async(sqlite3.connect("x"), event))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def sends(outbox: Outbox, client: FollowUp, asynchronous: AsyncFollowUp) -> None:
    outbox.drain()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    outbox.drain(asynchronous)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    outbox.erase("+5491155550000")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    outbox.purge(older_than=30)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Outbox("sqlite:///clinic.db", on_rejected="drop")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Outbox("sqlite:///clinic.db", cipher="key")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Inbox("sqlite:///clinic.db", cipher=Fernet)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    assert outbox.status().oldest_waiting_seconds > 60  # type: ignore[operator]  # pyright: ignore[reportOptionalOperand]


async def update(received: Received) -> None:
    received.event.appointment.start_at  # type: ignore[union-attr]  # pyright: ignore[reportOptionalMemberAccess]
    received.is_old  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]


def handles(inbox: Inbox, client: AsyncFollowUp) -> None:
    inbox.on("appointment.created")(update)  # type: ignore[type-var]  # pyright: ignore[reportArgumentType]
    inbox.catch_up(client)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    inbox.catch_up(since="2030-01-01")  # type: ignore[call-arg, arg-type]  # pyright: ignore[reportCallIssue]
    inbox.purge(older_than=timedelta(30), states=["waiting"])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
    Inbox("sqlite:///clinic.db", secret=5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def in_a_django_project(event: EventInput) -> None:
    django_outbox.recorder()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    django_outbox.record(event, 5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
