"""The commands of ``manage.py``."""

import json
import signal
import socket
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import transaction
from support.systems import needs_signals

from followup.django import client, inbox, outbox
from followup_mockserver import MockService

from .conftest import EVENT, deliver, forget, write, written


def call(*args: str, **options: Any) -> str:
    """Call a command, and return what it printed."""
    printed = StringIO()
    call_command(*args, stdout=printed, **options)
    return printed.getvalue()


@pytest.fixture
def service() -> Any:
    """A mock that is reached by the client of the settings."""
    with MockService() as service:
        client._stand_for(service.client())
        yield service
        client._stand_for(None)


@pytest.mark.on_all
def test_relay_and_worker_end_when_nothing_waits(connection: Any, service: MockService) -> None:
    inbox.otherwise(lambda received: write(connection, received.event.id))
    with transaction.atomic(using=connection.alias):
        outbox.record(EVENT)
    deliver("whd_1")
    assert call("followup_relay", "--until-empty", "--quiet") == "1 sent, 0 duplicates, 0 rejected\n"
    assert call("followup_worker", "--until-empty") == ""
    assert (outbox.status().sent, inbox.status().done, written(connection)) == (1, 1, ["whd_1"])


def test_status_is_1_for_what_is_dead_or_waits_for_too_long(connection: Any, service: MockService) -> None:
    assert json.loads(call("followup_status", "--json")) == {
        "outbox": {"waiting": 0, "in_flight": 0, "held": 0, "dead": 0, "sent": 0, "oldest_waiting_seconds": None},
        "inbox": {"waiting": 0, "in_flight": 0, "dead": 0, "unhandled": 0, "done": 0, "oldest_waiting_seconds": None},
    }
    deliver("whd_1")
    assert "inbox: waiting 1, in_flight 0" in call("followup_status")
    assert call("followup_status", "--max-age", "5")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE followup_inbox SET received_at = received_at - 301000")
    with pytest.raises(CommandError, match="one of the inbox has waited for more than 5 minutes"):
        call("followup_status", "--max-age", "5")
    call("followup_worker", "--until-empty")
    assert (inbox.status().unhandled, bool(call("followup_status", "--max-age", "5"))) == (1, True)
    with transaction.atomic(using=connection.alias):
        outbox.record({**EVENT, "data": {"appointment": {"externalId": "T-1"}}})
    assert outbox.drain(client).rejected == 1
    with pytest.raises(CommandError, match="events: 1 of the outbox dead"):
        call("followup_status")


def test_catch_up_adds_what_never_arrived(connection: Any, service: MockService) -> None:
    with pytest.raises(CommandError, match="webhook_endpoint: the organization has none"):
        call("followup_catch_up")
    endpoint = client.webhook_endpoints.create(url="https://clinic.example/hooks", enabled_events=["*"])
    client.patients.create(phone="+54 9 11 5555-0000")
    assert call("followup_catch_up") == "1 deliveries seen, 1 events added\n"
    assert call("followup_catch_up", webhook_endpoint=endpoint.id) == "1 deliveries seen, 0 events added\n"


def test_errors_have_one_line(connection: Any, service: MockService) -> None:
    with transaction.atomic(using=connection.alias):
        outbox.record(EVENT)
    service.update_api_key(service.api_key, revoked=True)
    with pytest.raises(CommandError, match="401"):
        call("followup_relay", "--until-empty")
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE followup_schema")
    forget()
    for command in ("followup_relay", "followup_worker", "followup_status", "followup_catch_up"):
        with pytest.raises(CommandError, match=r"run manage.py migrate followup_django"):
            call(command)


PROGRAM = """
import sys
from support.connections import django_database
from support.django_apps import set_up, using
set_up()
from django.core.management import execute_from_command_line
with using("sqlite", django_database(sys.argv[1]), API_KEY="fu_test_mock", BASE_URL=sys.argv[2]):
    execute_from_command_line(["manage.py", sys.argv[3]])
"""


@needs_signals
@pytest.mark.parametrize(
    ("command", "number"), [("followup_relay", signal.SIGTERM), ("followup_worker", signal.SIGINT)]
)
def test_a_signal_ends_a_command_in_time(
    connection: Any, sqlite_url: str, command: str, number: signal.Signals
) -> None:
    """The event whose call takes long stays leased, and is sent again by the next relay."""
    with transaction.atomic(using=connection.alias):
        outbox.record(EVENT)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        arguments = [sys.executable, "-c", PROGRAM, sqlite_url, url, command]
        folder = Path(__file__).parents[1]
        with subprocess.Popen(arguments, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr
            first = next(line for line in process.stderr if "working in" in line)  # after what the checks say
            accepted = silent.accept()[0] if command == "followup_relay" else silent  # it never responds
            process.send_signal(number)
            errors = process.communicate(timeout=60)[1]
            accepted.close()
    assert process.returncode == 0
    assert "Traceback" not in errors
    assert f"working in {sqlite_url.removeprefix('sqlite:///')}, " in first
    assert outbox.status().in_flight == (1 if command == "followup_relay" else 0)
