"""``followup person``: both stores of a database, of which a table may be missing."""

import json
from pathlib import Path

import pytest
from sqlalchemy import Engine
from support.databases import execute
from support.shell import run_here
from support.stores import receive, record

from followup import inbound
from followup.inbox import Inbox
from followup.outbox import Outbox

from .conftest import MARKS, PERSON, marks_in

PHONE = "+54 9 11 5555-0000"  # of the webhook that ``receive`` delivers


def person(url: str, *arguments: str, stdin: str = "") -> tuple[int, str, str]:
    environment = {"FOLLOWUP_DATABASE_URL": url}
    ended = run_here("followup", "person", *arguments, stdin=stdin.encode(), environment=environment)
    return ended.returncode, ended.stdout, ended.stderr


@pytest.fixture
def both(outbox: Outbox, inbox: Inbox, engine: Engine) -> None:
    """Events of two people in both stores; those of the person are sent, and wait to be handled."""
    event = {"id": "e1", "type": "patient.upserted", "data": {"patient": {**PERSON, "phone": PHONE}}}
    record(outbox, engine, event, inbound.patient_upserted(id="e2", patient={"phone": "+5491177777777"}))
    execute(engine, "UPDATE followup_outbox SET state = 'sent', blocks_subject = false")
    assert receive(inbox, "whd_1") == 204


@pytest.mark.on_all
def test_export_and_erase_in_both_stores(both: None, inbox: Inbox, database_url: str) -> None:
    arguments = ("--phone", PHONE)
    status, printed, _ = person(database_url, "export", *arguments)
    first, second = map(json.loads, printed.splitlines())
    assert (status, first["store"], first["id"], first["recordedAt"][:2]) == (0, "outbox", "e1", "20")
    assert (second["store"], second["id"], second["event"]["ref"]) == ("inbox", "whd_1", "apt_1")
    assert first["event"]["data"]["patient"]["fullName"] == PERSON["fullName"]

    status, printed, _ = person(database_url, "erase", *arguments, "--dry-run")
    listed = [json.loads(each) for each in printed.splitlines()]
    assert (status, listed) == (
        0,
        [{"store": "outbox", "id": "e1", "state": "sent"}, {"store": "inbox", "id": "whd_1", "state": "waiting"}],
    )
    status, printed, problem = person(database_url, "erase", *arguments)
    assert (status, printed) == (1, "")
    assert "are dead: whd_1. Nothing was erased; pass --waiting to give them up too" in problem
    assert len(person(database_url, "export", *arguments)[1].splitlines()) == 2

    erased = person(database_url, "erase", "--phone", "-", "--waiting", stdin=f"{PHONE}\n")
    assert erased == (0, "Erased 1 event of the outbox and 1 event of the inbox.\n", "")
    assert marks_in(database_url) == set()
    assert person(database_url, "export", *arguments) == (0, "", "")
    assert inbox.drain().done == 0


def test_nothing_personal_is_printed_by_erase(both: None, database_url: str) -> None:
    for options in (["--dry-run"], [], ["--waiting"]):
        _, printed, problem = person(database_url, "erase", "--phone", PHONE, "--email", str(PERSON["email"]), *options)
        assert not [each for each in (*MARKS, b"5555") if each in (printed + problem).encode()]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["export"], "followup: pass at least one of --phone, --dni, --external-id and --email\n"),
        (["erase", "--external-id", " "], "followup: --external-id must be a non-empty string\n"),
        (["erase", "--phone", "-", "--waiting"], "followup: --phone must be a non-empty string, with digits\n"),
    ],
)
def test_invalid_criteria(both: None, database_url: str, arguments: list[str], problem: str) -> None:
    assert person(database_url, *arguments) == (2, "", problem)


def test_a_store_without_tables_is_skipped(outbox: Outbox, engine: Engine, database_url: str, tmp_path: Path) -> None:
    record(outbox, engine, inbound.patient_upserted(id="e1", patient={"dni": "30111222"}))
    status, printed, remark = person(database_url, "export", "--dni", "30.111.222")
    assert (status, json.loads(printed)["id"], remark) == (0, "e1", "The database has no tables of the inbox.\n")
    execute(engine, "DROP TABLE followup_schema")
    status, printed, problem = person(database_url, "erase", "--dni", "30.111.222")
    assert (status, printed, problem.splitlines()[-1]) == (
        1,
        "",
        "followup: there is nothing to look at: check the URL of the database",
    )
    status, _, problem = person(f"sqlite:///{tmp_path / 'none.db'}", "export", "--dni", "1")
    assert (status, "which does not exist" in problem) == (1, True)
