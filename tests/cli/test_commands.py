"""``followup``: every operation as a command, events from a file, and errors as one clear line."""

import json
import signal
import time
from typing import Any

import pytest
from contract import specification as spec
from support.shell import Shell
from support.systems import HAS_MODES, needs_signals
from support.waiting import wait_for

from followup_mockserver import MockServer


def test_there_is_a_command_for_each_operation(shell: Shell) -> None:
    listed = shell.run("--help").stdout
    operations = [each.name.split(".") for each in spec.OPERATIONS]
    for group in dict.fromkeys(group for group, _ in operations):
        name = group.replace("_", "-")
        assert name in listed
        commands = shell.run(name, "--help").stdout
        for method in (method for of, method in operations if of == group):
            assert method in commands


def test_objects_in_and_out(shell: Shell) -> None:
    (patient,) = shell.json("patients", "create", "--phone", "+54 9 11 5555-0000", "--full-name", "Ana")
    assert (patient["phone"], patient["fullName"]) == ("+5491155550000", "Ana")
    assert shell.json("patients", "retrieve", patient["id"]) == [patient]
    doctor = '{"external_id": "D-1"}'
    (made,) = shell.json(
        "appointments", "create", "--patient", patient["id"], "--start-at", "2030-01-01T10:00:00Z", "--doctor", doctor
    )
    assert made["doctor"]
    assert shell.json("appointments", "cancel", made["id"], "--reason", "x")[0]["status"] == "cancelled"
    (endpoint,) = shell.json("webhook-endpoints", "create", "--url", "https://x.example", "--enabled-events", "*")
    assert shell.json("webhook-endpoints", "update", endpoint["id"], "--disabled")[0]["status"] == "disabled"
    assert shell.json("events", "create", '{"id": "1", "type": "order.issued", "data": {}}')[0]["status"] == "unhandled"


def test_lists_and_their_pages(shell: Shell) -> None:
    assert len(shell.json("doctors", "list", "--limit", "3")) == 3
    assert len(shell.json("doctors", "list", "--limit", "3", "--all")) == 4
    assert [each["active"] for each in shell.json("doctors", "list", "--no-active")] == [False]


def test_the_set_up_is_checked(shell: Shell) -> None:
    assert "Check FOLLOWUP_API_KEY" in shell.error("account", "retrieve", FOLLOWUP_API_KEY="wrong")
    assert "set the environment variable FOLLOWUP_API_KEY" in shell.error("account", "retrieve", FOLLOWUP_API_KEY="")
    assert "Check FOLLOWUP_BASE_URL" in shell.error("account", "retrieve", FOLLOWUP_BASE_URL="http://127.0.0.1:9")


def event(number: int, **fields: Any) -> dict[str, Any]:
    data = {"patient": {"phone": f"+54911555{number:05}"}, "visit": {"visitedAt": "2026-09-28T11:00:00Z"}}
    return {"id": f"e-{number}", "type": "visit.completed", "data": data, **fields}


class TestSend:
    def test_json_lines_in_batches_and_again(self, shell: Shell, server: MockServer) -> None:
        (shell.directory / "events.jsonl").write_text("\n".join(json.dumps(event(number)) for number in range(250)))
        first = shell.run("events", "send-all", "events.jsonl")
        assert first.returncode == 0, first.stderr
        assert "processed" in first.stderr
        assert "250" in first.stderr
        assert len([each for each in server.requests if each.operation == "events.create"]) == 3
        assert "duplicate" in shell.run("events", "send-all", "events.jsonl").stderr
        with server.client() as client:
            assert len([*client.visits.list(limit=100)]) == 250

    def test_rejected_events_go_to_a_file_with_the_reasons(self, shell: Shell, server: MockServer) -> None:
        cancel = {"id": "late", "type": "appointment.cancelled", "data": {"appointment": {"externalId": "A-1"}}}
        events = [event(1), event(2, type="visit.done"), cancel]
        (shell.directory / "events.json").write_text(json.dumps(events))
        file = shell.directory / "events.json.rejected.jsonl"
        file.touch(mode=0o644)  # also one that others could read before
        result = shell.run("events", "send-all", "events.json")
        assert result.returncode != 0
        assert "2 events were rejected" in result.stderr
        assert not HAS_MODES or file.stat().st_mode & 0o077 == 0
        lines = file.read_text().splitlines()
        rejected = {json.loads(line)["event"]["id"]: json.loads(line)["error"] for line in lines}
        assert set(rejected) == {"e-2", "late"}
        assert "type" in rejected["e-2"]
        attempts = [each for each in server.requests if each.operation == "events.create"]
        assert len(attempts) > 1

    @pytest.mark.parametrize(
        ("name", "text", "place"),
        [
            ("e.jsonl", '{valid}\n\n{"id": "2", "type": "x", "data": {}}', "line 3"),
            ("e.json", '[{valid}, {"id": "2", "type": "x", "data": {}}]', "event 2"),
            ("e.jsonl", "{valid}\n7", "line 2"),
            ("e.jsonl", '{"id": "2", "type": "order.issued", "data": {"notes": "a\\ud800"}}\n{valid}', "line 1"),
            ("e.jsonl", '{"id": "2", "type": "order.issued", "data": {"notes": NaN}}\n{valid}', "line 1"),
        ],
    )
    def test_a_reason_names_the_place_in_the_file_and_the_others_are_sent(
        self, shell: Shell, server: MockServer, name: str, text: str, place: str
    ) -> None:
        (shell.directory / name).write_text(text.replace("{valid}", json.dumps(event(1))))
        assert "1 event was rejected" in shell.run("events", "send-all", name).stderr
        (line,) = (shell.directory / f"{name}.rejected.jsonl").read_text().splitlines()
        assert json.loads(line)["error"].startswith(f"{place}: ")
        with server.client() as client:
            assert {each.source_ref for each in client.events.list()} == {"e-1"}

    @pytest.mark.parametrize(
        "text",
        [
            "\n".join(json.dumps(event(number)) for number in range(2)),
            f" {json.dumps([event(number) for number in range(2)], indent=2)}",
        ],
        ids=["JSON Lines", "JSON"],
    )
    def test_standard_input(self, shell: Shell, server: MockServer, text: str) -> None:
        result = shell.run("events", "send-all", "-", stdin=text)
        assert result.returncode == 0, result.stderr
        with server.client() as client:
            assert {each.source_ref for each in client.events.list()} == {"e-0", "e-1"}

    def test_rejected_events_are_fixed_and_sent(self, shell: Shell, server: MockServer) -> None:
        (shell.directory / "events.json").write_text(json.dumps([event(1), event(2, type="visit.done")]))
        shell.run("events", "send-all", "events.json")
        rejected = shell.directory / "events.json.rejected.jsonl"
        rejected.write_text(rejected.read_text().replace("visit.done", "visit.completed"))
        assert shell.run("events", "send-all", rejected.name).returncode == 0
        with server.client() as client:
            assert {each.source_ref for each in client.events.list()} == {"e-1", "e-2"}

    def test_rejected_events_never_overwrite_the_file(self, shell: Shell) -> None:
        file = shell.directory / "events.json"
        file.write_text(json.dumps([event(1, type="visit.done")]))
        assert "must not be the file that is sent" in shell.error(
            "events", "send-all", "events.json", "--rejected", "./events.json"
        )
        assert json.loads(file.read_text())

    @needs_signals
    def test_an_interrupted_run_reports_its_progress_and_can_be_repeated(
        self, shell: Shell, server: MockServer
    ) -> None:
        events = [event(number, **({"type": "visit.done"} if number == 3 else {})) for number in range(250)]
        (shell.directory / "events.jsonl").write_text("\n".join(map(json.dumps, events)))
        server.add_fault(operation="events.create", kind="delay", seconds=20, skip=1)
        process = shell.start("events", "send-all", "events.jsonl")
        assert wait_for(lambda: [each for each in server.requests if each.operation == "events.create"])
        while server.faults:  # until the second batch has met its fault
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
        assert process.returncode == 130
        assert "Traceback" not in stderr
        assert "interrupted; repeat the command" in stderr
        assert "e-3" in (shell.directory / "events.jsonl.rejected.jsonl").read_text()
        again = shell.run("events", "send-all", "events.jsonl").stderr
        assert "duplicate" in again
        with server.client() as client:
            assert len([*client.visits.list(limit=100)]) == 249
