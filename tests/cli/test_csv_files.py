"""CSV files of events as clinics have them: from spreadsheets, with other encodings and more columns."""

import json

import pytest
from support.shell import Shell

from followup_mockserver import MockServer

COLUMNS = (
    "the columns are id, type, schemaVersion, occurredAt, source, and those of the data, such as data.patient.phone"
)


def names(server: MockServer) -> list[str | None]:
    with server.client() as client:
        return [patient.full_name for patient in client.patients.list()]


@pytest.mark.parametrize("delimiter", [";", "\t", "|", ","])
def test_the_delimiter_is_found_in_the_header(shell: Shell, server: MockServer, delimiter: str) -> None:
    rows = [["data.patient.fullName", "data.patient.phone", "id", "type"]]
    rows.append(['"Gómez; Ana, |hija|\t"', "+5491155550000", "1", "patient.upserted"])
    text = "\r\n".join(delimiter.join(row) for row in rows)
    (shell.directory / "events.csv").write_bytes(text.encode("utf-8-sig"))
    assert shell.run("events", "send", "events.csv").returncode == 0
    assert names(server) == ["Gómez; Ana, |hija|\t"]


def test_another_encoding(shell: Shell, server: MockServer) -> None:
    row = "id;type;data.patient.phone;data.patient.fullName\n1;patient.upserted;+5491155550000;José\n"
    (shell.directory / "events.csv").write_bytes(row.encode("cp1252"))
    assert shell.error("events", "send", "events.csv") == (
        "followup: events.csv is not UTF-8; pass its encoding, such as --encoding cp1252, and send it again\n"
    )
    assert names(server) == []
    assert shell.run("events", "send", "events.csv", "--encoding", "cp1252").returncode == 0
    assert names(server) == ["José"]


@pytest.mark.parametrize("encoding", ["klingon", "hex", "a\nb", ""])
def test_an_unknown_encoding(shell: Shell, encoding: str) -> None:
    (shell.directory / "events.csv").write_text("id,type\n")
    result = shell.run("events", "send", "events.csv", "--encoding", encoding)
    expected = "--encoding must be the name of an encoding of text, such as cp1252, latin-1 or utf-16"
    assert (result.stderr, result.returncode) == (f"followup: {expected}\n", 2)


def test_a_column_that_cannot_be_sent_is_found_before_anything_is_sent(shell: Shell, server: MockServer) -> None:
    text = "id,type,note,room,data.patient.phone\n1,patient.upserted,x,2,+5491155550000\n"
    (shell.directory / "events.csv").write_text(text)
    assert shell.error("events", "send", "events.csv") == (
        f"followup: events.csv, line 1: no column note, room can be sent; {COLUMNS}. "
        "--ignore-columns note,room sends the others\n"
    )
    assert server.requests == []
    assert not (shell.directory / "events.csv.rejected.jsonl").exists()
    result = shell.run("events", "send", "events.csv", "--ignore-columns", "note", "--ignore-columns", "room")
    assert result.returncode == 0, result.stderr
    assert names(server) == [None]


def test_a_missing_column_is_named_with_the_others(shell: Shell) -> None:
    (shell.directory / "events.csv").write_text("\n\nnumber;type;data.patient.phone\n1;patient.upserted;1\n")
    assert shell.error("events", "send", "events.csv") == (
        f"followup: events.csv, line 3: missing the column id; {COLUMNS}\n"
    )


def test_columns_with_the_names_of_python(shell: Shell, server: MockServer) -> None:
    text = "id,type, occurred_at ,schema_version\n1,order.issued,2026-09-28T11:00:00Z,1\n"
    (shell.directory / "events.csv").write_text(text)
    assert shell.run("events", "send", "events.csv").returncode == 0
    with server.client() as client:
        (event,) = client.events.list()
    assert event.occurred_at.isoformat() == "2026-09-28T11:00:00+00:00"
    (shell.directory / "events.csv").write_text("id,type,occurredAt,occurred_at\n")
    assert "two columns are named occurredAt" in shell.error("events", "send", "events.csv")


@pytest.mark.parametrize("text", ["id,type\n", ""])
def test_a_file_without_rows_says_so(shell: Shell, text: str) -> None:
    (shell.directory / "events.csv").write_text(text)
    result = shell.run("events", "send", "events.csv")
    assert (result.stderr, result.returncode) == ("The file has no events.\n", 0)


def test_a_blank_line_is_no_row_and_counts_as_a_line(shell: Shell) -> None:
    (shell.directory / "events.csv").write_text("\nid,type\n\n1,nothing\n")
    result = shell.run("events", "send", "events.csv", "--rejected", "-")
    assert json.loads(result.stdout)["error"].startswith("line 4: type")
    assert "1 event was rejected; standard output has the reasons" in result.stderr
    assert [each.name for each in shell.directory.iterdir()] == ["events.csv"]


def test_options_of_csv_files_with_another_file(shell: Shell) -> None:
    (shell.directory / "events.json").write_text("[]")
    for option in ("--encoding", "--ignore-columns"):
        assert "are for CSV files" in shell.error("events", "send", "events.json", option, "x")


def test_both_spellings_of_a_key_in_json_reject_the_event_alone(shell: Shell) -> None:
    event = {"id": "1", "type": "order.issued", "data": {}}
    events = [{**event, "occurredAt": "2026-09-28T11:00:00Z", "occurred_at": None}, {**event, "id": "2"}]
    result = shell.run("events", "send", "-", "--rejected", "-", stdin=json.dumps(events))
    (rejected,) = result.stdout.splitlines()
    assert "unknown key 'occurredAt'" in json.loads(rejected)["error"]
