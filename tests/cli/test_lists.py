"""The lists of ``followup``: chosen columns, times with their zone, and what a page leaves out."""

import json
import re
from typing import Any

import pytest
from support.shell import Shell

from followup_mockserver import MockServer


def book(server: MockServer, *starts: str) -> list[Any]:
    """Book an appointment at each of these times, with the external ids T-1, T-2 and so on."""
    with server.client() as client:
        patient = client.patients.create(phone="+5491155550000", full_name="Ana")
        return [
            client.appointments.create(patient=patient.id, start_at=start, external_id=f"T-{number}", type="control")
            for number, start in enumerate(starts, start=1)
        ]


def cells(shown: str, text: str) -> list[str]:
    """Return the cells of the row that contains a text."""
    (row,) = [line for line in shown.splitlines() if text in line]
    return re.split(" {2,}", row.strip())


class TestColumns:
    def test_the_chosen_columns_are_shown_in_their_order_with_whole_ids(self, shell: Shell, server: MockServer) -> None:
        (made,) = book(server, "2030-05-17T14:30:00Z")
        shown = shell.on_a_terminal(80, "appointments", "list", "--columns", "external-id, id,start_at")
        assert cells(shown, "T-1") == ["T-1", made.id, "2030-05-17 14:30"]
        assert "confirmed" not in shown
        assert "--json" not in shown

    def test_columns_that_do_not_fit_are_wrapped_and_never_cut(self, shell: Shell, server: MockServer) -> None:
        (made,) = book(server, "2030-05-17T14:30:00Z")
        shown = shell.on_a_terminal(40, "appointments", "list", "--columns", "id,patient,status")
        assert all(len(line) <= 40 for line in shown.splitlines())
        heading, *rows = shown.splitlines()
        second, third = heading.index("patient"), heading.index("status")
        columns = (slice(second), slice(second, third), slice(third, None))
        texts = ["".join(row[column].strip() for row in rows) for column in columns]
        assert texts == [made.id, made.patient, "confirmed"]

    @pytest.mark.parametrize("all_pages", [(), ("--all",)])
    def test_json_has_only_the_chosen_fields(
        self, shell: Shell, server: MockServer, all_pages: tuple[str, ...]
    ) -> None:
        book(server, "2030-05-17T14:30:00Z")
        result = shell.run("appointments", "list", "--columns", "startAt,doctor,external_id", *all_pages)
        assert result.stdout == '{"startAt": "2030-05-17T14:30:00.000Z", "doctor": null, "externalId": "T-1"}\n'

    @pytest.mark.parametrize(
        ("columns", "problem"), [("id,begin", "there is no column begin"), (" , ", "it names no column")]
    )
    def test_an_unknown_column_is_rejected_before_anything_is_sent(
        self, shell: Shell, server: MockServer, columns: str, problem: str
    ) -> None:
        written = shell.error("appointments", "list", "--columns", columns)
        assert written == (
            f"followup: --columns: {problem}; the columns are id, object, patient, doctor, startAt, status, type, "
            "externalId, source, cancelledAt, createdAt, updatedAt\n"
        )
        assert server.requests == []


class TestTimes:
    @pytest.mark.parametrize(
        ("zone", "heading", "time"),
        [
            ("Europe/Madrid", "(CEST)", "2030-05-17 16:30"),
            ("America/Argentina/Buenos_Aires", "(UTC-3)", "2030-05-17 11:30"),
            ("Asia/Kathmandu", "(UTC+5:45)", "2030-05-17 20:15"),
        ],
    )
    def test_the_heading_names_the_time_zone(
        self, shell: Shell, server: MockServer, zone: str, heading: str, time: str
    ) -> None:
        book(server, "2030-05-17T14:30:00Z")
        shown = shell.on_a_terminal(100, "appointments", "list", "--columns", "start-at,type", TZ=zone)
        assert cells(shown, "control") == [time, "control"]
        assert heading in shown

    def test_a_time_on_the_other_side_of_a_change_of_the_clocks_names_its_zone(
        self, shell: Shell, server: MockServer
    ) -> None:
        book(server, "2030-10-26T10:00:00Z", "2030-10-28T10:00:00Z")
        shown = shell.on_a_terminal(80, "appointments", "list", TZ="Europe/Madrid")
        assert cells(shown, "T-1")[0] == "2030-10-26 12:00 CEST"
        assert cells(shown, "T-2")[0] == "2030-10-28 11:00"
        assert "(CET)" in shown


class TestMore:
    def test_a_pipe_learns_that_there_is_more_without_a_line_in_its_data(
        self, shell: Shell, server: MockServer
    ) -> None:
        made = book(server, *(f"2030-05-17T{hour:02}:00:00Z" for hour in range(4)))
        result = shell.run("appointments", "list", "--limit", "3")
        assert [json.loads(line)["externalId"] for line in result.stdout.splitlines()] == ["T-4", "T-3", "T-2"]
        assert result.stderr == (
            f"Showing 3, and there are more: use --all, --limit (up to 100) or --starting-after {made[1].id}.\n"
        )
        rest = shell.run("appointments", "list", "--starting-after", made[1].id)
        assert [json.loads(line)["externalId"] for line in rest.stdout.splitlines()] == ["T-1"]
        assert rest.stderr == ""

    def test_a_list_that_goes_back_continues_backwards(self, shell: Shell, server: MockServer) -> None:
        made = book(server, *(f"2030-05-17T{hour:02}:00:00Z" for hour in range(4)))
        result = shell.run("appointments", "list", "--limit", "2", "--ending-before", made[0].id)
        assert [json.loads(line)["externalId"] for line in result.stdout.splitlines()] == ["T-3", "T-2"]
        assert f"--ending-before {made[2].id}." in result.stderr
