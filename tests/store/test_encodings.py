"""Databases in other encodings than UTF-8, and connections with another one than their database."""

import uuid
from collections.abc import Iterator
from contextlib import closing

import pytest
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool
from support.databases import engine_of, server_url, with_psycopg
from support.stores import receive, record
from support.times import ManualTime
from support.webhook_events import SECRET

from followup import EventInput, FollowUp, inbound
from followup.inbox import Inbox, Received
from followup.outbox import Outbox

NAME = "Ana Núñez — 日本 😀"


@pytest.fixture(params=["LATIN1", "WIN1252", "SQL_ASCII", "UTF8 for clients in LATIN1"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a database in an encoding."""
    encoding, _, setting = request.param.partition(" for clients in ")
    name = f"test_{uuid.uuid4().hex}"
    admin = create_engine(engine_of(server_url()).url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        options = f"ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
        connection.exec_driver_sql(f"CREATE DATABASE {name} {options}")
        if setting:
            connection.exec_driver_sql(f"ALTER DATABASE {name} SET client_encoding = '{setting}'")
        yield server_url().replace("/postgres?", f"/{name}?")
        connection.exec_driver_sql(f"DROP DATABASE {name} (FORCE)")


def event(id: str, external_id: str = "T-1") -> EventInput:
    patient = {"full_name": NAME, "phone": "+5491155550000"}
    return inbound.appointment_created(
        id=id, patient=patient, external_id=external_id, start_at="2030-05-17T14:30:00-03:00"
    )


def test_any_text_is_stored_and_sent(url: str, client: FollowUp, request: pytest.FixtureRequest) -> None:
    with closing(Outbox(url)) as outbox, closing(Inbox(url, secret=SECRET, max_attempts=1)) as inbox:
        inbox._clock = ManualTime()

        @inbox.otherwise
        def fail(_: Received) -> None:
            raise ValueError(NAME)

        for each in (outbox, inbox):
            each.create_tables()
        is_ascii = request.node.callspec.params["url"] == "SQL_ASCII"
        options = {"client_encoding": "utf8"} if is_ascii else {}
        engine = create_engine(with_psycopg(url), poolclass=NullPool, connect_args=options)
        record(outbox, engine, event("e1"), event("e2", "T-—"), event("e3", "日" * 200))
        with engine.begin() as connection:
            outbox.record(connection, {"type": "order.issued", "id": "e4", "data": {"patient": 3}}, subject=NAME)  # type: ignore[typeddict-item]
            outbox.record(connection, event("e5"), subject=NAME)
        assert (outbox.drain(client).sent, outbox.status().held) == (3, 1)
        (dead,) = outbox.dead()
        assert dead.subject == NAME
        assert [each["id"] for each in outbox.export(phone="+5491155550000")] == ["e1", "e2", "e3", "e5"]
        assert client.patients.list().first().full_name == NAME  # type: ignore[union-attr]
        assert receive(inbox) == 204
        assert inbox.drain().dead == 1
        assert inbox.dead()[0].error.startswith("ValueError: " + NAME)
