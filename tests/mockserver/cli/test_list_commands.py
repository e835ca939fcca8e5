"""The commands of ``followup-mock`` that list what was recorded, and ``listen``."""

import csv
import io
import json
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

import httpx
import pytest
from support.receivers import Inbox, listening
from support.shell import Shell
from support.systems import needs_signals, stop

from followup import APIStatusError, construct_event
from followup.cli.output import short_ids
from followup_mockserver import MockServer


@pytest.fixture
def server() -> Iterator[MockServer]:
    with MockServer(start_time="2026-09-28T12:00:00Z", rate_limit=0, allow_http_webhooks=True) as running:
        yield running


def create_patients(server: MockServer, *numbers: int) -> list[str]:
    with server.client() as client:
        return [client.patients.create(phone=f"+54911555500{number:02}").id for number in numbers]


def request_ids(server: MockServer) -> list[str]:
    """The ids of the calls, oldest first."""
    return [each.request_id for each in reversed(server.requests)]


class TestLists:
    def test_the_last_20_oldest_first_and_a_line_that_says_so(self, shell: Shell, server: MockServer) -> None:
        create_patients(server, *range(22))
        result = shell.run("requests")
        assert [json.loads(line)["requestId"] for line in result.stdout.splitlines()] == request_ids(server)[2:]
        assert result.stderr == "Showing the last 20 of 22; --all or --limit shows further ones.\n"
        everything = shell.run("requests", "--all")
        assert (len(everything.stdout.splitlines()), everything.stderr) == (22, "")
        assert shell.run("requests", "--limit", "3", "--ids").stdout.splitlines() == request_ids(server)[-3:]

    def test_requests_say_why_they_failed_and_what_was_refused(self, shell: Shell, server: MockServer) -> None:
        with server.client(max_retries=0) as client:
            for _ in range(2):
                client.patients.create(phone="+5491155550000", full_name="Ana", idempotency_key="k")
            with pytest.raises(APIStatusError):
                client.patients.create(phone="12")
            server.add_fault(operation="*", kind="status", status=503)
            with pytest.raises(APIStatusError):
                client.account.retrieve()
            order = {"type": "order.issued", "data": {}}
            events = [{"id": "e1", **order}, {"id": "e2", "type": "patient.upserted", "data": {}}]
            client.events.create(events)  # type: ignore[arg-type]
            with pytest.raises(APIStatusError):
                client.patients.create(phone="+5491155550001", idempotency_key="k")
            client.patients.create(phone="+5491155550000", full_name="Ana")
        first = server.requests[-1].request_id
        assert [each.possible_duplicate_of for each in server.requests] == [first, *[None] * 6]
        for width in (80, 200):
            lines = shell.on_a_terminal(width, "requests")
            assert [short_ids(each) in lines or each in lines for each in request_ids(server)] == [True] * 7, lines
            assert "attempt 2, replayed" in lines, lines
        shown = shell.on_a_terminal(120, "requests")
        for outcome in (
            "attempt 2, replayed",
            "parameter_invalid phone",
            "fault: status",
            "1 of 2 refused",
            "duplicate of",
        ):
            assert outcome in shown, shown
        for status, numbers in {"4xx": [2, 5], "5xx": [3], "503": [3], "200": [0, 1, 4, 6], "refused": [4]}.items():
            expected = [request_ids(server)[each] for each in numbers]
            assert [each["requestId"] for each in shell.json("requests", "--status", status)] == expected, status
        for option, expected in (
            ("--status", "a status such as 409, a class such as 4xx, or refused"),
            ("--operation", "the name of an operation, such as patients.create"),
        ):
            ended = shell.run("requests", option, "40x")
            assert (ended.returncode, ended.stderr) == (2, f"followup-mock: {option}: This must be {expected}.\n")

    def test_deliveries_and_messages_are_oldest_first_too(self, shell: Shell, server: MockServer) -> None:
        with server.client() as client:
            client.webhook_endpoints.create(url="http://127.0.0.1:9/hooks", enabled_events=["*"])
            patient = {"phone": "+5491155550000"}
            client.appointments.create(patient=patient, start_at="2026-09-30T12:00:00Z")
            (endpoint,) = client.webhook_endpoints.list()
            server.advance(hours=20)
            client.webhook_endpoints.update(endpoint.id, disabled=True)
        server.advance(days=3)
        expected = [each.id for each in reversed(server.deliveries)]
        assert len(expected) > 1
        assert [each["id"] for each in shell.json("deliveries")] == expected
        assert {(each["status"], each["state"]) for each in shell.json("deliveries")} == {("failed", "stopped")}
        assert "stopped" in (shown := shell.on_a_terminal(80, "deliveries"))
        assert [each in shown for each in expected] == [True] * len(expected)
        sent = [each["sentAt"] for each in shell.json("messages")]
        assert sent == ["2026-09-29T12:00:00.000Z", "2026-09-30T09:00:00.000Z"]
        assert [each["sentAt"] for each in shell.json("messages", "--limit", "1")] == [sent[1]]

    def test_an_empty_list_in_a_pipe_has_no_lines(self, shell: Shell) -> None:
        result = shell.run("messages")
        assert (result.stdout, result.stderr, result.returncode) == ("", "", 0)

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_follow_goes_on_with_new_calls_until_it_is_stopped(
        self, shell: Shell, server: MockServer, number: signal.Signals
    ) -> None:
        create_patients(server, 1, 2)
        with shell.start("requests", "--follow", "--limit", "1") as process:
            assert process.stdout
            assert json.loads(process.stdout.readline())["requestId"] == request_ids(server)[1]
            for patient in (3, 4):
                create_patients(server, patient)
                assert json.loads(process.stdout.readline())["requestId"] == request_ids(server)[-1]
            stop(process, number)
            assert process.stderr
            assert process.stderr.read() == ""

    @needs_signals
    def test_ctrl_c_does_not_reach_a_command_that_a_script_started_in_the_background(
        self, shell: Shell, server: MockServer
    ) -> None:
        create_patients(server, 1)
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as a shell without job control does
        try:
            process = shell.start("requests", "--follow")
        finally:
            signal.signal(signal.SIGINT, before)
        with process:
            assert process.stdout
            process.stdout.readline()
            process.send_signal(signal.SIGINT)
            create_patients(server, 2)
            assert json.loads(process.stdout.readline())["requestId"] == request_ids(server)[-1]
            stop(process)

    def test_follow_reports_a_delivery_again_when_it_has_changed(self, shell: Shell, server: MockServer) -> None:
        statuses = iter((500, 204))
        server.mount("https://clinic.example/hooks", lambda _: httpx.Response(next(statuses)))
        with server.client() as client:
            client.webhook_endpoints.create(url="https://clinic.example/hooks", enabled_events=["patient.upserted"])
        create_patients(server, 1)
        server.advance()
        with shell.start("deliveries", "--follow") as process:
            assert process.stdout
            first = json.loads(process.stdout.readline())
            assert (first["status"], first["attempts"]) == ("pending", 1)
            server.advance(minutes=1)
            lines = [json.loads(process.stdout.readline())]
            while lines[-1]["status"] == "pending":
                lines.append(json.loads(process.stdout.readline()))
            assert (lines[-1]["status"], lines[-1]["attempts"]) == ("succeeded", 2)
            stop(process)


class TestListen:
    @contextmanager
    def listen(self, shell: Shell, url: str, *options: str) -> Iterator[tuple[TextIO, TextIO]]:
        """Run ``listen``, and yield its two streams; stop it afterwards."""
        with shell.start("listen", "--forward-to", url, *options) as process:
            assert process.stdout
            assert process.stderr
            yield process.stdout, process.stderr
            stop(process)

    def test_its_secret_is_the_same_for_a_url_and_differs_between_them(self, shell: Shell) -> None:
        found = []
        for path in ("a", "a", "b"):
            with self.listen(shell, f"http://127.0.0.1:9/{path}") as (out, _):
                found.append(out.readline())
        assert found[0] == found[1] != found[2]

    def test_it_takes_a_secret_and_event_types_and_names_the_receiver_and_its_response(
        self, shell: Shell, server: MockServer
    ) -> None:
        options = ("--secret", "whsec_of_my_app", "--events", "visit.completed, patient.upserted")
        server.disturb(kind="duplicate")
        inbox = Inbox()
        with listening(inbox) as url, self.listen(shell, url, *options) as (out, err):
            assert out.readline() == "signing secret  whsec_of_my_app\n"
            assert err.readline() == f"Forwarding visit.completed, patient.upserted to {url}. Ctrl-C stops it.\n"
            create_patients(server, 1)
            lines = [out.readline(), out.readline()]
            assert all(re.search("attempt 1( .disturbance.)?  204\n$", line) for line in lines), lines
        for request in inbox.requests:
            construct_event(request.content, request.headers, "whsec_of_my_app")

    def test_a_failure_has_the_first_line_of_the_response(self, shell: Shell, server: MockServer) -> None:
        server.mount("https://clinic.example", lambda _: httpx.Response(500, text="database is locked\nat line 3"))
        with self.listen(shell, "https://clinic.example/hooks") as (out, _):
            out.readline()
            (patient,) = create_patients(server, 1)
            line = out.readline()
            assert patient not in line
            at, event_type, _, attempt, error, response = line.rstrip("\n").split("  ")
            assert (at, event_type, attempt) == ("2026-09-28T12:00:00.000Z", "patient.upserted", "attempt 1")
            assert "500" in error
            assert response == "database is locked"


@pytest.mark.parametrize(
    ("command", "identifier"),
    [
        ("requests", "requestId"),
        ("messages", "id"),
        ("deliveries", "id"),
        ("reminders", "appointment"),
        ("clock", "about"),
        ("fault", "id"),
        ("webhook-fault", "id"),
    ],
)
def test_every_list_has_csv_and_ids(shell: Shell, server: MockServer, command: str, identifier: str) -> None:
    with server.client() as client:
        client.webhook_endpoints.create(url="http://127.0.0.1:9/hooks", enabled_events=["*"])
        patient = {"phone": "+5491155550000"}
        client.appointments.create(patient=patient, start_at=server.clock.now.replace(year=2099))  # type: ignore[arg-type]
        client.visits.create(patient=patient, visited_at=server.clock.now.replace(year=2020))  # type: ignore[arg-type]
    server.advance()
    server.add_fault(operation="patients.list", kind="status")
    server.disturb(kind="late")
    rows = [*csv.DictReader(io.StringIO(shell.run(command, "--csv").stdout, newline=""))]
    assert rows
    assert shell.run(command, "--ids").stdout.splitlines() == [row[identifier] for row in rows]
    assert "cannot be combined" in shell.error(command, "--csv", "--ids")
