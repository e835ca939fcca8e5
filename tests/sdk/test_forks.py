"""Clients that are created before a fork, as with gunicorn's ``preload_app``, Celery's prefork and multiprocessing."""

import asyncio
import contextlib
import importlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from support.forks import in_a_child
from support.responses import error, page, patient
from support.server import Received, ScriptedServer, reply
from support.systems import needs_forks

from followup import APIConnectionError, AsyncFollowUp, ConfigurationError, FollowUp

pytestmark = needs_forks


def echo_phone(connection: Any, received: Received) -> bool:
    phone = json.loads(received.body)["phone"] if received.body else "none"
    return reply(200, patient(phone=phone))(connection, received)


@pytest.mark.parametrize("derived", [False, True])
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_http_client_is_rejected_in_another_process_before_anything_is_sent(
    server: ScriptedServer, kind: str, derived: bool
) -> None:
    server.script = [echo_phone]
    own: Any = (httpx.Client if kind == "sync" else httpx.AsyncClient)(limits=httpx.Limits(max_keepalive_connections=0))
    client: Any = (FollowUp if kind == "sync" else AsyncFollowUp)(api_key="k", base_url=server.url, http_client=own)
    client = client.with_options(timeout=60) if derived else client

    async def create(phone: str) -> Any:
        return await client.patients.create(phone=phone)

    def call(phone: str) -> Any:
        return client.patients.create(phone=phone) if kind == "sync" else asyncio.run(create(phone))

    raised = in_a_child(lambda: call("child"))
    assert isinstance(raised, ConfigurationError)
    assert "http_client" in str(raised)
    assert "fork" in str(raised)
    assert call("parent").phone == "parent"
    assert [json.loads(each.body)["phone"] for each in server.received] == ["parent"]


class TestOwnConnections:
    def test_parent_and_child_never_share_one(self, server: ScriptedServer) -> None:
        server.script = [echo_phone]
        with FollowUp(api_key="k", base_url=server.url) as client:
            derived = client.with_options(deadline=20)
            client.patients.create(phone="parent")
            assert in_a_child(lambda: client.patients.create(phone="child").phone) == "child"
            assert in_a_child(lambda: derived.patients.create(phone="derived").phone) == "derived"
            client.patients.create(phone="again")
        connections = {json.loads(each.body)["phone"]: each.connection for each in server.received}
        assert connections["parent"] == connections["again"]
        assert len(set(connections.values())) == 3

    def test_an_async_client_works_in_a_child(self, server: ScriptedServer) -> None:
        server.script = [echo_phone]
        client = AsyncFollowUp(api_key="k", base_url=server.url)

        async def create(phone: str) -> str | None:
            found = (await client.patients.create(phone=phone)).phone
            await client.close()
            return found

        assert in_a_child(lambda: asyncio.run(create("child"))) == "child"
        assert asyncio.run(create("parent")) == "parent"


class TestAtAnyMoment:
    def test_while_another_thread_makes_its_first_call(self, server: ScriptedServer) -> None:
        server.script = [reply(200, patient())]
        for number in range(12):
            with FollowUp(api_key="k", base_url=server.url) as client:
                other = threading.Thread(target=client.patients.retrieve, args=("pat_1",))
                other.start()
                time.sleep(number % 12 / 2400)
                assert in_a_child(lambda: client.patients.retrieve("pat_1").id) == "pat_1"
                other.join()

    def test_while_another_thread_looks_for_a_package_that_is_missing(
        self, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """To open a connection, httpcore looks for sniffio, and the import system takes a lock for that."""
        server.script = [reply(200, patient())]
        looking, forked = threading.Event(), threading.Event()

        class Finders(list[Any]):
            def __iter__(self) -> Iterator[Any]:
                if threading.current_thread() is other:
                    looking.set()
                    forked.wait(30)
                return super().__iter__()

        async def call() -> object:
            async with AsyncFollowUp(api_key="k", base_url=server.url) as client:
                return (await client.patients.retrieve("pat_1")).id

        asyncio.run(call())
        other = threading.Thread(target=importlib.import_module, args=("sniffio",))
        monkeypatch.setattr(sys, "meta_path", Finders(sys.meta_path))
        monkeypatch.setattr(threading, "excepthook", lambda _: None)  # the package is missing, in most environments
        other.start()
        try:
            if looking.wait(5):  # else it has been imported
                assert in_a_child(lambda: asyncio.run(call())) == "pat_1"
        finally:
            forked.set()
            other.join()

    @pytest.mark.parametrize("scheme", ["http", "https"])
    def test_while_other_threads_load_certificates(self, server: ScriptedServer, scheme: str) -> None:
        server.script = [reply(200, patient())]
        over = threading.Event()
        url = server.url if scheme == "http" else "https://127.0.0.1:1"
        client = FollowUp(api_key="k", base_url=url, max_retries=0)
        others = []  # kept, because OpenSSL takes locks to free certificates too

        def load() -> None:
            while not over.is_set():
                others.append(FollowUp(api_key="k", base_url="https://127.0.0.1:1", max_retries=0))
                with contextlib.suppress(APIConnectionError):
                    others[-1].patients.retrieve("pat_1")

        threads = [threading.Thread(target=load) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(12):
                found = in_a_child(lambda: client.patients.retrieve("pat_1").id)
                # Nothing listens there: what counts is that the child gets as far as finding out.
                assert found == "pat_1" if scheme == "http" else isinstance(found, APIConnectionError)
        finally:
            over.set()
            for thread in threads:
                thread.join()
            for other in others:
                other.close()


CALLS = """
import asyncio, contextlib, os, sys
from followup import AsyncFollowUp, FollowUp, FollowUpError
{make}
attempts = []
def note(event, args):
    # For those that are in there no lock is taken. httpcore tries sniffio for each connection, and it may be missing.
    if event == "import" and args[0] not in sys.modules and args[0] != "sniffio":
        attempts.append(args[0])
sys.addaudithook(note)
def calls(client):
    return [
        lambda: client.patients.retrieve("pat_1"),
        lambda: client.with_options(deadline=20).patients.retrieve("pat_1"),
        lambda: client.patients.create(phone="1", full_name="Ana"),
        lambda: client.patients.list(),
        lambda: client.patients.retrieve("pat_1"),
        lambda: client.events.create([{{"id": "1", "type": "patient.upserted", "data": {{}}}}]),
        lambda: client.patients.retrieve("pat_1"),
    ]
{use}
print(attempts)
"""
SYNC = {
    "make": """
client = FollowUp(api_key='k', base_url={url!r}, max_retries=0)
if child := os.fork():
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
""",
    "use": """
for call in calls(client):
    with contextlib.suppress(FollowUpError):
        call()
client.close()
""",
}
ASYNC = {
    "make": "client = AsyncFollowUp(api_key='k', base_url={url!r}, max_retries=0)",
    "use": """
async def use():
    for call in calls(client):
        with contextlib.suppress(FollowUpError):
            await call()
    await client.close()
asyncio.run(use())
""",
}


class TestImports:
    @pytest.mark.parametrize("kind", [SYNC, ASYNC], ids=["sync", "async"])
    def test_calls_after_a_fork_or_in_an_event_loop_import_nothing(
        self, server: ScriptedServer, kind: dict[str, str]
    ) -> None:
        # A lock of the import system that another thread holds while a process forks is never freed in the child. An
        # import that fails takes one too, each time that it is tried. In an event loop, an import blocks other tasks.
        server.script = [
            reply(200, patient()),
            reply(200, patient(new="field")),
            reply(200, patient(fullName=5)),
            reply(200, page(patient())),
            reply(404, error()),
            reply(400, error()),
            reply(200, b"<html>"),
        ]
        parts = {name: text.format(url=server.url.replace("127.0.0.1", "localhost")) for name, text in kind.items()}
        assert run(CALLS.format(**parts)) == "[]"
        assert len(server.received) == 7


def run(code: str) -> str:
    """What a program prints that runs in an interpreter of its own."""
    tests = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
    environment = {**os.environ, "PYTHONPATH": tests, "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
