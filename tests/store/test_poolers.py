"""A real PgBouncer in transaction mode, which gives each transaction whatever session of the server is free."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine
from support.connections import psycopg_of
from support.databases import engine_of, server_url, with_psycopg
from support.stores import receive, record
from support.waiting import wait_for
from support.webhook_events import SECRET

from followup import inbound
from followup.inbox import Inbox
from followup.outbox import Outbox
from followup_mockserver import MockService

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(shutil.which("pgbouncer") is None, reason="pgbouncer is not installed"),
]

PREPARED_AFTER = 5
"""Executions of a statement, after which psycopg prepares it by default."""


@pytest.fixture
def pooled_url(postgresql_url: str) -> Iterator[str]:
    """The URL of the database through a PgBouncer that knows nothing of prepared statements."""
    schema = postgresql_url.rpartition("%3D")[2]
    folder = Path(tempfile.mkdtemp(prefix="followup-pgbouncer-"))
    (folder / "ini").write_text(
        f"[databases]\npostgres = host={server_url().partition('host=')[2]} user=postgres "
        f"connect_query='SET search_path = {schema}'\n"
        f"[pgbouncer]\nunix_socket_dir = {folder}\nlisten_port = 6432\nauth_type = any\npool_mode = transaction\n"
    )
    user = None
    if os.getuid() == 0:  # as which it does not run
        user = "pgserver"
        shutil.chown(folder, user)
    program = subprocess.Popen(["pgbouncer", "-q", folder / "ini"], user=user, stderr=subprocess.DEVNULL)
    try:
        wait_for((folder / ".s.PGSQL.6432").exists)
        yield f"postgresql://postgres@/postgres?host={folder}&port=6432"
    finally:
        program.terminate()
        program.wait(60)
        shutil.rmtree(folder)


@pytest.mark.parametrize("is_own_engine", [False, True])
def test_each_transaction_may_run_in_another_session(pooled_url: str, is_own_engine: bool) -> None:
    with ExitStack() as stack:
        engine = create_engine(with_psycopg(pooled_url))
        stack.callback(engine.dispose)
        database: str | Engine = engine if is_own_engine else f"{pooled_url}&prepare_threshold=5"
        outbox, inbox = Outbox(database), Inbox(database, secret=SECRET)
        for each in (outbox, inbox):
            stack.callback(each.close)
            each.create_tables()
        inbox.otherwise(lambda _: None)
        of_psycopg = stack.enter_context(psycopg_of(pooled_url))
        client = stack.enter_context(stack.enter_context(MockService(rate_limit=0)).client())

        def work(name: str) -> None:
            record(outbox, engine, name)
            outbox.record(of_psycopg, inbound.order_issued(id=f"{name} of psycopg", patient={}, order={}))
            of_psycopg.commit()
            assert receive(inbox, name) == 204
            assert (outbox.drain(client).sent, inbox.drain().done) == (2, 1)

        for number in range(2 * PREPARED_AFTER):
            work(f"e{number}")
        for number in range(3):  # each of these transactions keeps a session, so that the next ones are new
            stack.enter_context(engine_of(pooled_url).begin()).exec_driver_sql("SELECT 1")
            work(f"n{number}")
