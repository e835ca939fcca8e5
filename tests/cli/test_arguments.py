"""The values of options: JSON in both spellings, lists, times and dates. What is invalid is rejected before a call."""

import json
from typing import Any

import pytest
from support.responses import page, patient
from support.server import ScriptedServer, reply
from support.shell import Shell

from followup_mockserver import MockServer


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

    def test_nobody_elses_object_is_changed_where_a_service_ignores_a_filter(self, shell: Shell) -> None:
        with ScriptedServer() as service:
            service.script = [reply(200, page(patient(externalId="H-2")))]
            update = ("patients", "update", "H-1", "--full-name", "Ana")
            problem = shell.error(*update, FOLLOWUP_BASE_URL=service.url)
            assert "none of the patients has this external id" in problem
            assert [each.method for each in service.received] == ["GET"]

    def test_a_file_is_read(self, shell: Shell) -> None:
        (shell.directory / "patient.json").write_text('{"phone": "+5491155550000", "fullName": "Ana"}')
        made = booked(shell, "--patient", "@patient.json")
        (patient,) = shell.json("patients", "retrieve", made["patient"])
        assert patient["fullName"] == "Ana"
