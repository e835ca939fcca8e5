"""The values of options: JSON in both spellings, lists, times and dates. What is invalid is rejected before a call."""

import json
from typing import Any

import pytest
from support.shell import Shell

from followup_mockserver import MockServer

TIME = "must be a time with an offset, such as 2030-05-17T14:30:00-03:00 (Z means UTC)"


def booked(shell: Shell, *arguments: str) -> dict[str, Any]:
    (appointment,) = shell.json("appointments", "create", "--start-at", "2030-05-17T14:30:00-03:00", *arguments)
    return dict(appointment)


class TestKeys:
    @pytest.mark.parametrize("key", ["full_name", "fullName"])
    def test_an_input_takes_the_keys_of_the_api_and_those_of_python(
        self, shell: Shell, server: MockServer, key: str
    ) -> None:
        made = booked(shell, "--patient", json.dumps({"phone": "+5491155550000", key: "Ana"}))
        with server.client() as client:
            assert client.patients.retrieve(made["patient"]).full_name == "Ana"

    def test_events_take_both_and_their_data_is_unchanged(self, shell: Shell, server: MockServer) -> None:
        event = {"id": "1", "type": "order.issued", "data": {"order": {"due_at": 1, "dueAt": 2}}}
        events = [{**event, "occurredAt": "2026-09-28T11:00:00Z"}, {**event, "id": "2", "occurred_at": None}]
        assert len(shell.json("events", "create", json.dumps(events))) == 2
        with server.client() as client:
            (first,) = (each for each in client.events.list() if each.source_ref == "1")
        assert first.occurred_at.isoformat() == "2026-09-28T11:00:00+00:00"

    @pytest.mark.parametrize(
        ("arguments", "problem"),
        [
            (
                ("intake-requests", "create", "--patient", '{"full_name": "Ana", "fullName": "Eva"}'),
                "--patient has both full_name and fullName, which are the same field",
            ),
            (
                ("events", "create", '[{"id": "1"}, {"occurredAt": null, "occurred_at": null}]'),
                "events has both occurredAt and occurred_at, which are the same field",
            ),
        ],
    )
    def test_both_spellings_of_one_key_are_an_error_that_names_them(
        self, shell: Shell, server: MockServer, arguments: tuple[str, ...], problem: str
    ) -> None:
        assert shell.error(*arguments) == f"followup: {problem}\n"
        assert server.requests == []

    def test_an_object_that_a_command_printed_stands_for_its_id(self, shell: Shell) -> None:
        printed = shell.run("patients", "create", "--phone", "+5491155550000").stdout
        made = shell.run(
            "appointments", "create", "--patient", "-", "--start-at", "2030-05-17T14:30:00Z", stdin=printed
        ).stdout
        assert json.loads(made)["patient"] == json.loads(printed)["id"]


class TestLists:
    def test_items_are_separated_by_commas_or_the_option_is_repeated(self, shell: Shell) -> None:
        (endpoint,) = shell.json(
            "webhook-endpoints", "create", "--url", "https://x.example", "--enabled-events",
            "intake.ready, visit.completed", "--enabled-events", "order.issued",
        )  # fmt: skip
        assert endpoint["enabledEvents"] == ["intake.ready", "visit.completed", "order.issued"]

    def test_objects_are_an_array_or_the_option_is_repeated(self, shell: Shell) -> None:
        contacts = [{"name": "Eva"}, {"name": "Luz"}, {"nombre": "Sol"}]
        written = shell.error(
            "intake-requests", "create", "--contacts", json.dumps(contacts[:2]), "--contacts", json.dumps(contacts[2])
        )
        assert "contacts[2] has an unknown key 'nombre'" in written

    def test_fields_to_clear(self, shell: Shell) -> None:
        (made,) = shell.json(
            "patients", "create", "--phone", "+5491155550000", "--email", "a@x.example", "--dni", "30123456",
            "--external-id", "P-1",
        )  # fmt: skip
        (changed,) = shell.json("patients", "update", made["id"], "--clear", "email,dni", "--clear", "external-id")
        assert (changed["email"], changed["dni"], changed["externalId"]) == (None, None, None)

    def test_all_pages_are_large_ones(self, shell: Shell, server: MockServer) -> None:
        shell.json("doctors", "list", "--all")
        with server.client() as client:
            for number in range(11):
                client.patients.create(phone=f"+5491155{number:06}")
        before = len(server.requests)
        assert len(shell.json("patients", "list", "--all")) == 11
        assert len(server.requests) == before + 1


class TestObjects:
    def test_an_external_id_or_a_phone_stands_for_the_id(self, shell: Shell) -> None:
        made = booked(shell, "--patient", '{"phone": "+5491155550000", "external_id": "H-1"}', "--external-id", "T-1")
        for typed in ("H-1", "+54 9 11 5555-0000", made["patient"]):
            (patient,) = shell.json("patients", "retrieve", typed)
            assert patient["id"] == made["patient"]
        (cancelled,) = shell.json("appointments", "cancel", "T-1")
        assert (cancelled["id"], cancelled["status"]) == (made["id"], "cancelled")

    def test_what_is_found_twice_or_not_at_all_changes_nothing(self, shell: Shell, server: MockServer) -> None:
        with server.client() as client:
            phone = client.patients.create(phone="+5491155550000")
            number = client.patients.create(phone="+5491155550001", external_id="+5491155550000")
        both = ", ".join(sorted((phone.id, number.id)))
        for typed, problem in (
            (phone.phone, f"2 patients have this external id or phone; pass the id of one: {both}"),
            ("H-2", "this is no id, and none of the patients has this external id or phone"),
            ("30111222", "this is no id, and none of the patients has this external id or phone"),
        ):
            result = shell.run("patients", "update", str(typed), "--full-name", "Ana")
            assert (result.returncode, result.stderr) == (1, f"followup: {problem}\n")
        assert not any("PATCH" in each.method for each in server.requests)

    @pytest.mark.parametrize("typed", ["T-1", "pat_1"])
    def test_where_no_filter_finds_it_only_an_id_is_taken(self, shell: Shell, server: MockServer, typed: str) -> None:
        assert "ID must be a string that begins with 'trt_'" in shell.error("treatments", "retrieve", typed)
        assert server.requests == []

    def test_a_file_is_read(self, shell: Shell, server: MockServer) -> None:
        (shell.directory / "patient.json").write_text('{"phone": "+5491155550000", "fullName": "Ana"}')
        made = booked(shell, "--patient", "@patient.json")
        (patient,) = shell.json("patients", "retrieve", made["patient"])
        assert patient["fullName"] == "Ana"
        count = len(server.requests)
        for typed, problem in (
            (
                "patient.json",
                "--patient must be an id of the service, or JSON: an object, @FILE, or - for standard input",
            ),
            ("@patients.json", "cannot read patients.json: No such file or directory"),
        ):
            shown = shell.error("appointments", "create", "--start-at", "2030-05-17T14:30:00Z", "--patient", typed)
            assert shown == f"followup: {problem}\n"
        assert len(server.requests) == count


class TestErrors:
    @pytest.mark.parametrize(
        ("arguments", "expected"),
        [
            (("patients", "retrieve", "apt_1"), "ID must be a string that begins with 'pat_'"),
            (
                ("patients", "update", "pat_1", "--full-name", "\udcff"),
                "--full-name is not valid Unicode: it contains a lone surrogate",
            ),
        ],
    )
    def test_an_error_of_the_sdk_names_the_option(
        self, shell: Shell, arguments: tuple[str, ...], expected: str
    ) -> None:
        assert shell.error(*arguments) == f"followup: {expected}\n"

    @pytest.mark.parametrize(
        ("arguments", "shown"),
        [
            (("patients", "create", "--phone", "x", "--full-name", "Ana"), "[--phone]"),
            (("appointments", "list", "--starting-after", "pat_1"), "[--starting-after]"),
            (("intake-requests", "create", "--patient", '{"phone": "1"}'), "[--patient, patient.phone]"),
        ],
    )
    def test_an_error_of_the_service_names_the_option(
        self, shell: Shell, arguments: tuple[str, ...], shown: str
    ) -> None:
        assert f" {shown} [" in shell.error(*arguments)


class TestTimes:
    @pytest.mark.parametrize(
        ("arguments", "problem"),
        [
            (("appointments", "update", "apt_1", "--start-at", "2030-05-17T14:30:00"), f"--start-at {TIME}"),
            (("appointments", "update", "apt_1", "--start-at", "2030-05-17"), f"--start-at {TIME}"),
            (("appointments", "list", "--start-at-gte", "2030-05-17"), f"--start-at-gte {TIME}"),
            (
                ("appointments", "list", "--start-at-lt", "0001-01-01T00:00:00+10:00"),
                "--start-at-lt is out of range: in UTC it is before the year 1 or after the year 9999",
            ),
            (
                ("patients", "create", "--phone", "1", "--date-of-birth", "29/02/1980"),
                "--date-of-birth must be a date, such as 1980-02-29",
            ),
        ],
    )
    def test_an_invalid_one_is_rejected_locally(
        self, shell: Shell, server: MockServer, arguments: tuple[str, ...], problem: str
    ) -> None:
        result = shell.run(*arguments)
        assert (result.stderr, result.returncode) == (f"followup: {problem}\n", 2)
        assert server.requests == []
