"""``followup inbox``."""

import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from support.shell import Shell
from support.systems import needs_signals
from support.waiting import wait_for
from support.webhook_events import SECRET, body_of, headers_of

from followup.inbox import Inbox
from followup_mockserver import MockServer

PROGRAM = """
import time
from followup.inbox import Inbox

inbox = Inbox("sqlite:///clinic.db", max_attempts=1)
nothing = 3

@inbox.on("appointment.created")
def handle(received):
    if received.event.ref == "apt_bad":
        raise LookupError("Ana Núñez")
    if received.event.ref == "apt_slow":
        open("begun", "w").close()
        time.sleep(1)
"""


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """A shell in a folder with a program and a database."""
    (tmp_path / "clinic_webhooks.py").write_text(PROGRAM, encoding="utf-8")
    shell = Shell("http://127.0.0.1:9", "fu_test_mock", tmp_path)
    shell.environment["FOLLOWUP_DATABASE_URL"] = "sqlite:///clinic.db"
    Inbox(f"sqlite:///{tmp_path / 'clinic.db'}").create_tables()
    return shell


@pytest.fixture
def inbox(tmp_path: Path) -> Iterator[Inbox]:
    """The same database, for the test."""
    inbox = Inbox(f"sqlite:///{tmp_path / 'clinic.db'}", secret=SECRET)
    yield inbox
    inbox.close()


def deliver(inbox: Inbox, *args: str, **fields: str) -> None:
    body = body_of(*args, **fields)
    assert inbox.receive(body, headers_of(body)) == 204


def test_drain_handles_events_with_the_handlers_of_a_program(shell: Shell, inbox: Inbox) -> None:
    deliver(inbox, "whd_1", ref="apt_1")
    deliver(inbox, "whd_2", ref="apt_bad")
    deliver(inbox, "whd_3", "patient.silent")
    (report,) = shell.json("inbox", "drain", "clinic_webhooks:inbox")
    assert report == {"done": 1, "failed": 0, "dead": 1, "unhandled": 1, "remaining": 0}
    (status,) = shell.json("inbox", "status")
    assert status == {"waiting": 0, "inFlight": 0, "dead": 1, "unhandled": 1, "done": 1, "oldestWaitingSeconds": None}


def test_dead_shows_no_personal_data(shell: Shell, inbox: Inbox) -> None:
    deliver(inbox, "whd_2", ref="apt_bad")
    run = shell.run("inbox", "drain", "clinic_webhooks:inbox")
    assert "Núñez" not in run.stdout + run.stderr
    (dead,) = shell.json("inbox", "dead")
    assert dead == {
        "id": "whd_2",
        "type": "appointment.created",
        "ref": "apt_bad",
        "occurredAt": "2026-09-28T12:00:00.000Z",
        "attempts": 1,
        "error": "LookupError at clinic_webhooks.py:11",
    }
    assert "Ana Núñez" in inbox.dead()[0].error
    shown = shell.on_a_terminal(120, "inbox", "dead")
    assert "whd_2" in shown
    assert "Núñez" not in shown


def test_retry_takes_one_event_or_all(shell: Shell, inbox: Inbox) -> None:
    deliver(inbox, "whd_2", ref="apt_bad")
    deliver(inbox, "whd_3", "patient.silent")
    shell.run("inbox", "drain", "clinic_webhooks:inbox")
    assert shell.error("inbox", "retry", "whd_9") == "followup: no dead or unhandled event has the id 'whd_9'\n"
    assert shell.run("inbox", "retry", "whd_2").stdout == "1 event will be handled again.\n"
    assert shell.run("inbox", "retry").stdout == "1 event will be handled again.\n"
    assert inbox.status().waiting == 2
    assert shell.json("inbox", "status", "--name", "other")[0]["waiting"] == 0


def test_purge_takes_the_age_in_days(shell: Shell, inbox: Inbox) -> None:
    deliver(inbox, "whd_1", ref="apt_1")
    shell.run("inbox", "drain", "clinic_webhooks:inbox")
    assert shell.run("inbox", "purge", "--older-than", "1").stdout == "Purged 0 events.\n"
    assert shell.run("inbox", "purge", "--older-than", "0").stdout == "Purged 1 event.\n"
    assert "--older-than must be" in shell.error("inbox", "purge", "--older-than=-1")
    assert "--state must be" in shell.error("inbox", "purge", "--older-than", "1", "--state", "waiting")


@needs_signals
def test_run_finishes_the_event_in_flight_when_it_is_terminated(shell: Shell, inbox: Inbox, tmp_path: Path) -> None:
    deliver(inbox, "whd_1", ref="apt_slow")
    process = shell.start("inbox", "run", "clinic_webhooks:inbox")
    wait_for((tmp_path / "begun").exists)
    deliver(inbox, "whd_2", ref="apt_1")
    process.send_signal(signal.SIGTERM)
    output, log = process.communicate(timeout=60)
    assert (process.returncode, output) == (0, "")
    place = tmp_path / "clinic.db"
    assert [line[len("2026-01-01 00:00:00  ") :] for line in log.splitlines()] == [
        f"inbox default: working in {place}, max_attempts 1, until Ctrl-C or SIGTERM",
        "event whd_1 (appointment.created), attempt 1: done",
    ]
    assert (inbox.status().done, inbox.status().waiting) == (1, 1)


def test_catch_up_adds_what_never_arrived(tmp_path: Path, inbox: Inbox) -> None:
    with MockServer(start_time="2026-09-28T12:00:00Z") as server, server.client() as client:
        shell = Shell(server.url, server.api_key, tmp_path)
        shell.environment["FOLLOWUP_DATABASE_URL"] = f"sqlite:///{tmp_path / 'clinic.db'}"
        shell.run("inbox", "create-tables")
        assert "the organization has none" in shell.error("inbox", "catch-up")
        endpoint = client.webhook_endpoints.create(url="https://clinic.example/hooks", enabled_events=["*"])
        server.mount("https://clinic.example/hooks", lambda _: httpx.Response(503))
        client.patients.create(phone="+54 9 11 5555-0000")
        server.advance()
        assert shell.json("inbox", "catch-up") == [{"seen": 1, "added": 1}]
        arguments = ["--webhook-endpoint", endpoint.id, "--since", "2026-09-29T00:00:00Z"]
        assert shell.json("inbox", "catch-up", *arguments) == [{"seen": 0, "added": 0}]
        assert "--since must be a time with an offset" in shell.error(
            "inbox", "catch-up", "--since", "2026-09-29T00:00:00"
        )
        assert "NotFound" not in shell.error("inbox", "catch-up", "--webhook-endpoint", "we_missing")


@pytest.mark.parametrize(
    ("arguments", "status", "reason"),
    [
        (["drain", "clinic_webhooks"], 2, "must be MODULE:NAME"),
        (["drain", "clinic_webhooks:nothing"], 2, "is not an Inbox; it has clinic_webhooks:inbox"),
        (["drain", "broken:inbox"], 1, "cannot import broken: ZeroDivisionError"),
        (["drain", "clinic_webhooks:inbox", "--deadline", "0"], 2, "--deadline must be"),
        (["status", "--database", "oracle://db.example/clinic"], 2, "database must be SQLite, PostgreSQL"),
        (["status", "--database", "sqlite:///empty.db"], 1, ": run 'followup inbox create-tables' once"),
        (["status", "--database", "sqlite:///mispelt.db"], 1, "mispelt.db, which does not exist: check the path"),
        (["status", "--database", "sqlite:///none/clinic.db"], 1, "unable to open database file"),
    ],
)
def test_an_error_is_one_line(shell: Shell, tmp_path: Path, arguments: list[str], status: int, reason: str) -> None:
    (tmp_path / "broken.py").write_text("1 / 0", encoding="utf-8")
    (tmp_path / "empty.db").touch()
    result = shell.run("inbox", *arguments)
    assert result.returncode == status
    assert result.stdout == ""
    assert reason in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "mispelt.db").exists()
