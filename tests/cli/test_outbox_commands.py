"""``followup outbox``: the relay as a process, and the commands for people."""

import json
import signal
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from sqlalchemy import Engine
from support.databases import engine_of
from support.shell import Shell
from support.systems import needs_signals
from support.waiting import wait_for

from followup import inbound
from followup.outbox import Outbox
from followup_mockserver import MockServer

PHONE = "+54 9 11 5555-0000"


@pytest.fixture
def database_url(request: pytest.FixtureRequest) -> str:
    """A SQLite file, unless a test asks for PostgreSQL."""
    return str(request.getfixturevalue(f"{getattr(request, 'param', 'sqlite')}_url"))


@pytest.fixture
def outbox(database_url: str, shell: Shell) -> Iterator[Outbox]:
    shell.environment["FOLLOWUP_DATABASE_URL"] = database_url
    outbox = Outbox(database_url)
    outbox.create_tables()
    yield outbox
    outbox.close()


@pytest.fixture
def engine(database_url: str) -> Engine:
    return engine_of(database_url)


def record(outbox: Outbox, engine: Engine, count: int) -> None:
    with engine.begin() as connection:
        for number in range(count):
            outbox.record(connection, inbound.order_issued(id=f"e{number}", patient={}, order={}))


@pytest.fixture
def dead(outbox: Outbox, engine: Engine, shell: Shell) -> Outbox:
    """An outbox with a dead event, which another one of its subject waits for."""
    with engine.begin() as connection:
        data = {"patient": {"phone": PHONE, "fullName": "Ana Pérez", "email": "Ana Pérez"}}
        outbox.record(connection, {"id": "bad", "type": "patient.upserted", "data": data})
        outbox.record(connection, inbound.patient_upserted(id="good", patient={"phone": PHONE}))
    assert "1 rejected" in shell.run("outbox", "run", "--until-empty").stdout
    return outbox


@pytest.mark.parametrize("database_url", ["sqlite", "postgresql"], indirect=True)
def test_run_until_empty_sends_all(outbox: Outbox, engine: Engine, shell: Shell, server: MockServer) -> None:
    record(outbox, engine, 150)
    result = shell.run("outbox", "run", "--until-empty")
    assert (result.returncode, result.stdout) == (0, "150 sent, 0 duplicates, 0 rejected\n"), result.stderr
    started, *batches = (line[len("2026-01-01 00:00:00  ") :] for line in result.stderr.splitlines())
    limit = "at most 600 calls a minute, until Ctrl-C or SIGTERM"
    assert started == f"outbox default: working in {engine.url.database}, {limit}"
    assert batches == [f"outbox default: {sent} accepted (0 duplicates), 0 failed, 0 rejected" for sent in (100, 50)]
    record(outbox, engine, 151)
    assert shell.run("outbox", "run", "--until-empty", "--quiet").stderr == ""
    with server.client() as client:
        assert len([*client.events.list(limit=100)]) == 151
    assert shell.json("outbox", "status") == [
        {"waiting": 0, "inFlight": 0, "held": 0, "dead": 0, "sent": 151, "oldestWaitingSeconds": None}
    ]


def test_run_until_empty_waits_for_retries(outbox: Outbox, engine: Engine, shell: Shell, server: MockServer) -> None:
    record(outbox, engine, 1)
    server.add_fault(operation="events.create", kind="status", status=503, times=2)
    assert shell.run("outbox", "run", "--until-empty").stdout == "1 sent, 0 duplicates, 0 rejected\n"


@needs_signals
@pytest.mark.parametrize(
    ("ignored", "sent", "status"),
    [
        (None, [signal.SIGTERM], 0),
        (None, [signal.SIGINT], 130),
        (signal.SIGINT, [signal.SIGINT, signal.SIGTERM], 0),  # as a shell without job control starts a command with &
    ],
)
def test_a_signal_ends_run_after_the_call_in_flight(
    outbox: Outbox,
    engine: Engine,
    shell: Shell,
    server: MockServer,
    ignored: signal.Signals | None,
    sent: list[signal.Signals],
    status: int,
) -> None:
    record(outbox, engine, 1)
    server.add_fault(operation="events.create", kind="delay", seconds=1, times=1)
    before = signal.signal(ignored, signal.SIG_IGN) if ignored else None
    process = shell.start("outbox", "run")
    if ignored:
        signal.signal(ignored, before)
    with process:
        wait_for(lambda: outbox.status().in_flight)
        for number in sent:
            process.send_signal(number)
        output, errors = process.communicate(timeout=60)
    assert (process.returncode, output) == (status, "1 sent, 0 duplicates, 0 rejected\n"), errors
    assert outbox.status().sent == 1


def test_run_ends_with_status_1_if_the_key_is_rejected(outbox: Outbox, engine: Engine, shell: Shell) -> None:
    record(outbox, engine, 1)
    result = shell.run("outbox", "run", FOLLOWUP_API_KEY="fu_test_unknown")
    assert result.returncode == 1
    assert "Check FOLLOWUP_API_KEY" in result.stderr
    assert outbox.status().waiting == 1


def test_drain_sends_what_is_due(outbox: Outbox, engine: Engine, shell: Shell) -> None:
    record(outbox, engine, 2)
    counts = {"sent": 2, "duplicates": 0, "failed": 0, "rejected": 0, "remaining": 0}
    assert shell.json("outbox", "drain", "--deadline", "50") == [counts]
    assert "deadline must be a positive number of seconds" in shell.error("outbox", "drain", "--deadline", "0")


def test_the_id_of_a_dead_event_is_whole_on_a_narrow_terminal(outbox: Outbox, engine: Engine, shell: Shell) -> None:
    with engine.begin() as connection:
        data = {"patient": {"phone": PHONE, "email": "Ana Pérez"}}
        event_id = outbox.record(connection, {"type": "patient.upserted", "data": data})
    shell.json("outbox", "drain")
    assert event_id in shell.on_a_terminal(60, "outbox", "dead").split()


def test_dead_shows_the_reason_and_no_personal_data(dead: Outbox, shell: Shell) -> None:
    assert shell.json("outbox", "status")[0] | {"oldestWaitingSeconds": 0} == {
        "waiting": 0, "inFlight": 0, "held": 1, "dead": 1, "sent": 0, "oldestWaitingSeconds": 0,
    }  # fmt: skip
    result = shell.run("outbox", "dead")
    (line,) = map(json.loads, result.stdout.splitlines())
    assert line.keys() == {"id", "type", "error", "attempts", "recordedAt", "diedAt"}
    assert (line["id"], line["type"], line["attempts"]) == ("bad", "patient.upserted", 1)
    assert "email" in line["error"]
    assert datetime.fromisoformat(line["recordedAt"]) <= datetime.fromisoformat(line["diedAt"])
    for shown in (result.stdout, shell.on_a_terminal(120, "outbox", "dead")):
        assert "bad" in shown
        assert "5555" not in shown
        assert "Ana" not in shown


def test_dead_events_are_retried_and_discarded(dead: Outbox, shell: Shell) -> None:
    assert shell.run("outbox", "retry", "bad").stdout == "1 event will be sent again.\n"
    assert shell.run("outbox", "run", "--until-empty").stdout == "0 sent, 0 duplicates, 1 rejected\n"
    assert shell.run("outbox", "retry").stdout == "1 event will be sent again.\n"
    shell.run("outbox", "run", "--until-empty")
    assert shell.run("outbox", "discard", "bad").stdout == "1 discarded\n"
    assert shell.run("outbox", "run", "--until-empty").stdout == "1 sent, 0 duplicates, 0 rejected\n"
    assert shell.run("outbox", "purge", "--older-than", "1").stdout == "Purged 0 events.\n"
    assert shell.run("outbox", "purge", "--older-than", "0").stdout == "Purged 2 events.\n"


def test_a_failing_event_is_listed_and_given_up(
    outbox: Outbox, engine: Engine, shell: Shell, server: MockServer
) -> None:
    with engine.begin() as connection:
        outbox.record(connection, inbound.appointment_cancelled(id="c1", external_id="T-1"))
    with server.client() as client:
        outbox.drain(client)
    (row,) = shell.json("outbox", "failing")
    assert row.keys() == {"id", "type", "error", "attempts", "recordedAt", "nextAttemptAt"}
    assert (row["id"], row["type"], row["attempts"]) == ("c1", "appointment.cancelled", 1)
    result = shell.run("outbox", "discard", "c1")
    assert result.returncode == 1
    assert result.stderr.startswith(
        "followup: no dead event has the id 'c1': its state is waiting; pass --waiting to give it up, "
    )
    assert shell.run("outbox", "discard", "c1", "--waiting").stdout == "1 discarded\n"
    assert shell.json("outbox", "failing") == []
    assert shell.run("outbox", "run", "--until-empty").stdout == "0 sent, 0 duplicates, 0 rejected\n"


@pytest.mark.parametrize("database_url", ["sqlite", "postgresql"], indirect=True)
def test_the_tables_can_be_created_by_a_command_or_by_its_sql(database_url: str, shell: Shell) -> None:
    missing = shell.error("outbox", "status", "--database", database_url)
    assert "run 'followup outbox create-tables' once" in missing
    assert "create_tables()" not in missing
    assert shell.run("outbox", "create-tables", "--database", database_url).returncode == 0
    sql = shell.run("outbox", "ddl", "--database", database_url).stdout
    assert sql == Outbox(database_url).ddl()
    with engine_of(database_url).begin() as connection:
        for statement in sql.split(";\n")[:-1]:
            connection.exec_driver_sql(statement)
    assert shell.run("outbox", "ddl", "--from", "1", "--database", database_url).stdout.strip() == ""


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("status",), "no database: pass --database URL, or set FOLLOWUP_DATABASE_URL"),
        (
            ("status", "--database", "oracle://me:secret@db.example/x"),
            "must be SQLite, PostgreSQL, MySQL or MariaDB, not oracle",
        ),
        (("status", "--database", "clinic.db"), "must be a SQLAlchemy URL"),
        (("run", "--database", "sqlite:///x.db", "--on-rejected", "drop"), '--on-rejected must be "hold" or "skip"'),
        (("run", "--database", "sqlite:///x.db", "--requests-per-minute=0"), "--requests-per-minute must be a whole"),
        (("purge", "--database", "sqlite:///x.db", "--older-than", "inf"), "--older-than must be"),
        (("purge", "--database", "sqlite:///x.db", "--older-than", "-1"), "--older-than must be"),
        (("purge", "--database", "sqlite:///x.db"), "--older-than"),
        (
            ("ddl", "--database", "sqlite:///x.db", "--from", "9"),
            "--from must be a version of the outbox's tables, 1 to ",
        ),
    ],
)
def test_bad_arguments_are_one_line_and_status_2(shell: Shell, arguments: tuple[str, ...], problem: str) -> None:
    result = shell.run("outbox", *arguments)
    assert result.returncode == 2
    assert problem in result.stderr
    assert "secret" not in result.stderr
    assert "Traceback" not in result.stderr


def test_an_unknown_id_is_one_line_and_status_1(outbox: Outbox, shell: Shell) -> None:
    for command in ("retry", "discard"):
        result = shell.run("outbox", command, "unknown")
        assert (result.returncode, result.stderr) == (1, "followup: no dead event has the id 'unknown'\n")


@pytest.mark.parametrize("command", ["outbox", "inbox"])
def test_a_database_that_cannot_be_opened_is_named(shell: Shell, tmp_path: Path, command: str) -> None:
    message = shell.error(command, "status", "--database", "postgresql://me:secret@127.0.0.1:1/clinic")
    assert " failed: OperationalError: " in message
    assert "secret" not in message
    missing = tmp_path / "nowhere" / "clinic.db"
    assert shell.error(command, "status", "--database", f"sqlite:///{missing}") == (
        f"followup: the database {missing} failed: OperationalError: unable to open database file\n"
    )
    (tmp_path / "text.db").write_text("no database, but long enough to be read as the header of one" * 20)
    assert shell.error(command, "status", FOLLOWUP_DATABASE_URL="sqlite:///text.db") == (
        f"followup: the database {tmp_path / 'text.db'} failed: DatabaseError: file is not a database\n"
    )
