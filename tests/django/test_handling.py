"""Handlers run in Django's transaction, together with the mark that their event is done."""

import os
import signal
import time
from contextlib import nullcontext, suppress
from typing import Any

import pytest
from django.db import transaction
from django.test import RequestFactory
from support.forks import forking
from support.times import ManualTime
from support.webhook_events import SECRET, body_of, headers_of

from followup.django import inbox, webhook
from followup.inbox import Inbox, InboxStatus, Received

from .conftest import deliver, write, written

pytestmark = pytest.mark.on_all


def test_the_work_and_the_mark_commit_and_roll_back_together(connection: Any) -> None:
    clock = inbox._clock = ManualTime()

    @inbox.on("appointment.created")
    def handle(received: Received) -> None:
        assert connection.in_atomic_block
        write(connection, received.event.id)
        if received.attempt == 1:
            raise LookupError

    assert deliver("whd_1") == 204
    assert deliver("whd_1") == 204
    with pytest.raises(LookupError):
        inbox.drain(raise_exceptions=True)
    assert (inbox.status().waiting, written(connection)) == (1, [])
    clock.advance(1)
    assert inbox.drain(raise_exceptions=True).done == 1
    assert inbox.drain().done == 0
    assert written(connection) == ["whd_1"]
    assert inbox.status() == InboxStatus(0, 0, 0, 0, 1, None)


@pytest.mark.parametrize("moment", ["written", "marked", "committed"])
def test_a_killed_worker_has_done_all_or_nothing(connection: Any, moment: str) -> None:
    attempts: list[int] = []

    @inbox.otherwise
    def handle(received: Received) -> None:
        attempts.append(received.attempt)
        write(connection, received.event.id)
        if received.attempt == 1 and moment == "written":
            os.kill(os.getpid(), signal.SIGKILL)

    def work() -> None:
        def kill(*args: Any) -> None:
            commit(*args)
            os.kill(os.getpid(), signal.SIGKILL)

        commit = connection._commit
        if moment != "written":
            connection._commit = kill if moment == "committed" else lambda: os.kill(os.getpid(), signal.SIGKILL)
        inbox.drain()

    deliver("whd_1")
    connection.close()
    child = forking().Process(target=work)
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    inbox._clock = ManualTime(time.time() + 60)
    assert inbox.drain(raise_exceptions=True).remaining == 0
    assert attempts == ([] if moment == "committed" else [2])
    assert written(connection) == ["whd_1"]
    assert inbox.status().done == 1


def test_a_handler_whose_lease_has_passed_is_rolled_back(connection: Any) -> None:
    clock = inbox._clock = ManualTime()

    @inbox.otherwise
    def handle(received: Received) -> None:
        write(connection, received.event.id)
        clock.advance(30)

    deliver("whd_1")
    with pytest.raises(ValueError, match="took longer than handler_timeout"):
        inbox.drain(raise_exceptions=True)
    assert written(connection) == []


def test_what_has_not_run_is_never_done(connection: Any) -> None:
    async def late() -> None: ...

    with pytest.raises(TypeError, match="is a coroutine function"):
        inbox.on("appointment.created")(late)  # type: ignore[arg-type]
    inbox.otherwise(lambda _: late())  # type: ignore[arg-type, return-value]
    deliver("whd_1")
    with pytest.raises(TypeError, match="whose work is perhaps not done"):
        inbox.drain(raise_exceptions=True)
    assert inbox.status().done == 0


def test_a_handler_has_no_connection_of_sqlalchemy_and_may_mark_its_event_itself(connection: Any) -> None:
    @inbox.on("appointment.created")
    def created(received: Received) -> None:
        with pytest.raises(RuntimeError, match=r"has no received.connection"):
            received.connection  # noqa: B018

    @inbox.on("patient.upserted", transaction="own")
    def changed(received: Received) -> None:
        with transaction.atomic(using=connection.alias):
            received.done(connection)

    deliver("whd_1")
    deliver("whd_2", "patient.upserted")
    assert inbox.drain(raise_exceptions=True).done == 2
    with pytest.raises(ValueError, match=r"appointment.created has a handler already, .*created"):
        inbox.on("appointment.created")(changed)


def test_the_handlers_of_a_transaction_that_is_open_cannot_commit(connection: Any) -> None:
    """A webhook that arrives in it is stored in it."""
    inbox.otherwise(lambda _: None)
    with suppress(LookupError), transaction.atomic(using=connection.alias):
        assert deliver("whd_1") == 204
        with pytest.raises(RuntimeError, match="in an open transaction"):
            inbox.drain()
        raise LookupError
    assert inbox.status().waiting == 0


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_a_webhook_in_a_transaction_with_another_search_path_finds_its_table(connection: Any) -> None:
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        cursor.execute("SET LOCAL search_path = nowhere")
        assert deliver("whd_1") == 204
        cursor.execute("SHOW search_path")
        assert cursor.fetchone() == ("nowhere",)
    assert inbox.status().waiting == 1


@pytest.mark.parametrize(
    ("method", "secret", "status"), [("post", SECRET, 204), ("post", "whsec_wrong", 400), ("get", SECRET, 405)]
)
def test_the_view_stores_a_webhook(connection: Any, method: str, secret: str, status: int) -> None:
    body = body_of("whd_1")
    headers = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers_of(body, secret).items()}
    request = RequestFactory(enforce_csrf_checks=True).generic(method.upper(), "/", body, **headers)
    assert webhook(request).status_code == status
    assert webhook.csrf_exempt  # type: ignore[attr-defined]
    assert webhook._non_atomic_requests == {"default"}  # type: ignore[attr-defined]
    assert inbox.status().waiting == (1 if status == 204 else 0)


@pytest.mark.parametrize("is_open", [False, True])
def test_the_view_is_503_while_the_tables_are_missing(connection: Any, is_open: bool) -> None:
    """It leaves a transaction that is open as it was."""
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE followup_inbox")
    with transaction.atomic(using=connection.alias) if is_open else nullcontext():
        assert deliver("whd_1") == 503
        write(connection, "ours")
    assert written(connection) == ["ours"]


def test_it_is_accepted_wherever_an_inbox_is(connection: Any) -> None:
    assert isinstance(inbox, Inbox)
    for name in dir(Inbox):
        assert hasattr(inbox, name)
