"""After a failover, connections in the pool are to a server that is read-only; new ones are to the new primary."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from sqlalchemy import create_engine, event
from sqlalchemy.exc import DBAPIError
from support.databases import engine_of, with_psycopg
from support.stores import receive, record
from support.webhook_events import SECRET

from followup import FollowUp, FollowUpError
from followup.inbox import Inbox
from followup.outbox import Outbox

OPEN = 3
"""Connections that are open when the server becomes read-only."""


@pytest.fixture(params=["postgresql", "mysql"])
def database_url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(f"{request.param}_url"))


on_postgresql = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)


@pytest.fixture
def stores(database_url: str) -> Iterator[tuple[Outbox, Inbox]]:
    """An outbox of a URL and an inbox of an Engine, which have never used their connections."""
    for each in (Outbox(database_url), Inbox(database_url, secret=SECRET)):
        each.create_tables()
        each.close()
    engine = create_engine(with_psycopg(database_url), pool_pre_ping=True)
    outbox, inbox = Outbox(database_url), Inbox(engine, secret=SECRET)
    yield outbox, inbox
    outbox.close()
    engine.dispose()


def fail_over(store: Outbox | Inbox) -> None:
    """Fill the pool of a store with connections to a server that is read-only."""
    engine = store._database.engine

    is_mysql = engine.dialect.name == "mysql"
    setting = "SET SESSION TRANSACTION READ ONLY" if is_mysql else "SET default_transaction_read_only = on"

    def become_read_only(connection: Any, _: object) -> None:
        connection.cursor().execute(setting)
        connection.commit()

    event.listen(engine, "connect", become_read_only)
    with ExitStack() as stack:
        for _ in range(OPEN):
            stack.enter_context(engine.connect())
    event.remove(engine, "connect", become_read_only)


def test_the_next_webhook_is_stored(stores: tuple[Outbox, Inbox], caplog: pytest.LogCaptureFixture) -> None:
    _, inbox = stores
    fail_over(inbox)
    assert [receive(inbox, f"whd_{number}") for number in range(OPEN + 1)] == [503, 204, 204, 204]
    kinds = ("InternalError (25006)", "OperationalError (1792): Cannot execute statement in a READ")
    assert any(f"webhook whd_0 not stored: {each}" in caplog.text for each in kinds)


def test_a_relay_and_a_worker_go_on(stores: tuple[Outbox, Inbox], database_url: str, client: FollowUp) -> None:
    outbox, inbox = stores
    inbox.otherwise(lambda _: None)
    record(outbox, engine_of(database_url), "e1")
    assert receive(inbox) == 204
    for each in stores:
        fail_over(each)
    with pytest.raises(DBAPIError, match=r"read-only|READ ONLY"):
        outbox.drain(client)
    with pytest.raises(DBAPIError, match=r"read-only|READ ONLY"):
        inbox.drain()
    assert (outbox.drain(client).sent, inbox.drain().done) == (1, 1)


@on_postgresql
def test_nobody_takes_a_server_that_is_read_only_for_one_without_work(
    stores: tuple[Outbox, Inbox], postgresql_url: str, client: FollowUp
) -> None:
    outbox, inbox = stores
    for each in stores:
        fail_over(each)
    with pytest.raises(FollowUpError, match="the server is read-only"):
        outbox.drain(client)
    with pytest.raises(FollowUpError, match="the server is read-only"):
        inbox.drain()
    assert (outbox.status().waiting, inbox.status().waiting) == (0, 0), "other work may be done there"
    assert (outbox.drain(client).remaining, inbox.drain().remaining) == (0, 0)
