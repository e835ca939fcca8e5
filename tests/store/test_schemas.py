"""Our tables in the schemas of PostgreSQL, on connections whose ``search_path`` is for the tables of the user."""

import asyncio
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from sqlalchemy import Column, MetaData, String, Table, create_engine, text
from sqlalchemy.pool import NullPool
from support.connections import (
    Open,
    OpenAsync,
    async_asyncpg,
    async_connection,
    django_connection,
    on_kinds,
    psycopg_connection,
    psycopg_pipeline,
    sqlalchemy_connection,
)
from support.databases import engine_of, execute, server_url, with_psycopg
from support.stores import receive
from support.webhook_events import SECRET

from followup import inbound
from followup._store.leases import take_lock
from followup.inbox import Inbox, Received
from followup.outbox import Outbox

KINDS = [sqlalchemy_connection, django_connection, psycopg_connection, psycopg_pipeline]
VISITS = Table("visits", MetaData(), Column("id", String))
EVENT = inbound.order_issued(id="e1", patient={}, order={})


@pytest.fixture
def tenant(postgresql_url: str) -> Iterator[str]:
    """A schema of the user's, with a table."""
    name = f"tenant_{uuid.uuid4().hex}"
    engine = engine_of(postgresql_url)
    execute(engine, f"CREATE SCHEMA {name}", f"CREATE TABLE {name}.visits (id TEXT)")
    yield name
    execute(engine, f"DROP SCHEMA {name} CASCADE")


def url_of(*path: str) -> str:
    """Return the URL of connections with this ``search_path``."""
    return f"{server_url()}&options=-csearch_path%3D{'%2C'.join(path)}"


Created = Callable[[str], tuple[Outbox, Inbox]]


@pytest.fixture
def created() -> Iterator[Created]:
    """Return a function that opens an outbox and an inbox, and creates their tables."""
    with ExitStack() as stack:

        def create(url: str) -> tuple[Outbox, Inbox]:
            stores = Outbox(url), Inbox(url, secret=SECRET)
            for each in stores:
                stack.callback(each.close)
                each.create_tables()
            return stores

        yield create


def ids(url: str, table: str = "followup_outbox") -> list[str]:
    with engine_of(url).connect() as connection:
        return [*connection.exec_driver_sql(f"SELECT event_id FROM {table} ORDER BY seq").scalars()]


@on_kinds("opened", postgresql=KINDS)
@pytest.mark.parametrize("is_known", [True, False])
def test_record_finds_its_tables_wherever_the_callers_are(
    created: Created, database_url: str, tenant: str, opened: Open, is_known: bool
) -> None:
    outbox, _ = created(database_url)
    outbox = outbox if is_known else Outbox(database_url)  # one that has never connected to the database
    with opened(database_url) as (connection, run, commit):
        run(f"SET LOCAL search_path = {tenant}")
        for _ in range(2):
            assert outbox.record(connection, EVENT) == "e1"
            run("INSERT INTO visits VALUES ('v1')")
        commit()
    assert ids(database_url) == ["e1"]


@on_kinds("opened", postgresql=[async_connection, async_asyncpg])
def test_record_async_finds_its_tables_too(created: Created, database_url: str, tenant: str, opened: OpenAsync) -> None:
    created(database_url)

    async def main() -> None:
        async with opened(database_url) as (connection, run, commit):
            await run(f"SET LOCAL search_path = {tenant}")
            await Outbox(database_url).record_async(connection, EVENT)
            await run("INSERT INTO visits VALUES ('v1')")
            await commit()

    asyncio.run(main())
    assert ids(database_url) == ["e1"]


def test_record_finds_its_tables_too_if_the_outbox_cannot_be_reached(
    created: Created, postgresql_url: str, tenant: str
) -> None:
    created(postgresql_url)
    outbox = Outbox("postgresql://127.0.0.1:1/clinic")
    with engine_of(postgresql_url).begin() as connection:
        connection.exec_driver_sql(f"SET LOCAL search_path = {tenant}")
        outbox.record(connection, EVENT)
        connection.exec_driver_sql("INSERT INTO visits VALUES ('v1')")
    assert ids(postgresql_url) == ["e1"]


def test_a_map_of_schemas_is_for_the_tables_of_the_user(created: Created, postgresql_url: str, tenant: str) -> None:
    created(postgresql_url)
    options: dict[str, Any] = {"schema_translate_map": {None: tenant}}
    engine = create_engine(with_psycopg(postgresql_url), poolclass=NullPool, execution_options=options)
    outbox, inbox = Outbox(engine), Inbox(engine, secret=SECRET)
    inbox.otherwise(lambda received: received.connection.execute(VISITS.insert().values(id=received.event.id)))
    with engine.begin() as connection:
        outbox.record(connection, EVENT)
    assert receive(inbox) == 204
    assert (outbox.status().waiting, inbox.drain().done) == (1, 1)
    with engine.connect() as connection:
        assert connection.execute(VISITS.select()).all() == [("whd_1",)]


@pytest.mark.parametrize("transaction", ["inbox", "own"])
def test_a_handler_may_set_its_own_search_path(
    created: Created, postgresql_url: str, tenant: str, transaction: Any
) -> None:
    _, inbox = created(postgresql_url)

    @inbox.otherwise(transaction=transaction)
    def insert(received: Received) -> None:
        with engine_of(postgresql_url).begin() as own:
            connection = own if transaction == "own" else received.connection
            connection.execute(text(f"SET LOCAL search_path = {tenant}"))
            connection.execute(text("INSERT INTO visits VALUES ('v1')"))
            if transaction == "own":
                received.done(own)

    assert receive(inbox) == 204
    assert inbox.drain(raise_exceptions=True).done == 1


def test_tables_of_a_second_component_are_created_beside_those_of_the_first(
    created: Created, postgresql_url: str, tenant: str
) -> None:
    (shared,) = [part.partition("%3D")[2] for part in postgresql_url.split("&") if "search_path" in part]
    first = Outbox(url_of(shared))
    first.create_tables()
    first.close()
    outbox, inbox = created(url_of(tenant, shared))
    assert (outbox.status().waiting, inbox.status().waiting) == (0, 0)
    with engine_of(postgresql_url).connect() as connection:
        query = f"SELECT count(*) FROM pg_tables WHERE schemaname = '{tenant}' AND tablename LIKE 'followup%%'"
        assert connection.exec_driver_sql(query).scalar_one() == 0


def test_the_outboxes_and_inboxes_of_two_schemas_are_apart(created: Created, postgresql_url: str, tenant: str) -> None:
    mine, theirs = created(postgresql_url), created(url_of(tenant))
    with engine_of(postgresql_url).begin() as connection:  # whose search_path leads to the other ones
        Outbox(url_of(tenant)).record(connection, inbound.order_issued(id="t0", patient={}, order={}))
    anybody = Outbox(server_url())  # one for all tenants, which finds the tables by the connection of each
    for url, outbox, letter in ((postgresql_url, mine[0], "m"), (url_of(tenant), theirs[0], "t")):
        with engine_of(url).begin() as connection:
            for recorder, number in ((outbox, 1), (anybody, 2)):
                recorder.record(connection, inbound.order_issued(id=f"{letter}{number}", patient={}, order={}))
    assert ids(postgresql_url) == ["m1", "m2"]
    assert ids(url_of(tenant)) == ["t0", "t1", "t2"]
    assert [receive(each[1], "whd_1") for each in (mine, theirs)] == [204, 204]
    with mine[0]._locked_transaction(), theirs[0]._locked_transaction() as (connection, _):
        take_lock(connection, "inbox:default")
    assert [each.status().waiting for each in (*mine, *theirs)] == [2, 1, 3, 1]


def test_the_first_record_does_not_decide_for_the_tables_of_another_schema(
    created: Created, postgresql_url: str, tenant: str
) -> None:
    created(postgresql_url)
    created(url_of(tenant))
    engine = create_engine(with_psycopg(postgresql_url))
    with engine.begin() as connection:
        connection.exec_driver_sql(f"SET LOCAL search_path = {tenant}")
        Outbox(engine).record(connection, EVENT)
    engine.dispose()
    assert (ids(postgresql_url), ids(url_of(tenant))) == (["e1"], [])
