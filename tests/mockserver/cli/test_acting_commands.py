"""The commands by which a person acts as a patient, as staff and as the service itself."""

import json
from typing import Any

import httpx
import pytest
from support.shell import Shell

from followup import FollowUp, Patient
from followup_mockserver import MockServer

START = "2030-10-05T12:00:00Z"


@pytest.fixture
def server() -> Any:
    with MockServer(rate_limit=0, start_time="2030-09-28T12:00:00Z") as running:
        running.mount("https://clinic.example", lambda _: httpx.Response(204))
        yield running


@pytest.fixture
def client(server: MockServer) -> Any:
    with server.client(max_retries=0) as client:
        yield client


@pytest.fixture
def ana(client: FollowUp) -> Patient:
    return client.patients.create(phone="+5491155550000", full_name="Ana Pérez")


def output(shell: Shell, *arguments: str) -> Any:
    (found,) = shell.json(*arguments)
    return found


def test_a_patient(shell: Shell, client: FollowUp, ana: Patient) -> None:
    assert output(shell, "patients", "update", ana.id, "--opted-out")["optedOut"] is True
    changed = output(shell, "patients", "update", ana.id, "--no-opted-out", "--stage", "discharged")
    assert (changed["optedOut"], changed["stage"]) == (False, "discharged")
    assert output(shell, "patients", "reply", ana.id)["stage"] == "in_conversation"
    assert output(shell, "patients", "silence", ana.id)["stage"] == "lost"
    assert output(shell, "patients", "handoff", ana.id, "--reason", "asks for a person")["stage"] == "in_conversation"
    assert client.patients.retrieve(ana.id).stage == "in_conversation"
    failed = shell.run("patients", "reply", "pat_none")
    assert (failed.returncode, failed.stderr) == (1, "followup-mock: ID: There is no such patient.\n")


def test_the_roster(shell: Shell, client: FollowUp) -> None:
    added = output(shell, "doctors", "add", "--full-name", "Dra. Nueva", "--specialty", "oncology", "--no-active")
    assert client.doctors.retrieve(added["id"]).active is False
    updated = output(shell, "doctors", "update", added["id"], "--active", "--external-id", "D-9")
    assert (updated["active"], updated["externalId"], updated["specialty"]) == (True, "D-9", "oncology")


def test_appointments_and_visits(shell: Shell, client: FollowUp, ana: Patient) -> None:
    made = output(shell, "appointments", "add", "--patient", ana.id, "--start-at", START, "--status", "pending")
    assert (made["patient"], made["status"], made["source"]) == (ana.id, "pending", "agent")
    assert output(shell, "appointments", "confirm", made["id"])["status"] == "confirmed"
    moved = output(shell, "appointments", "reschedule", made["id"], "--start-at", "2030-10-06T12:00:00Z")
    assert (moved["status"], moved["startAt"]) == ("rescheduled", "2030-10-06T12:00:00.000Z")
    assert output(shell, "appointments", "cancel", made["id"], "--reason", "rain")["status"] == "cancelled"
    patient = '{"phone": "+54 9 11 5555-0001", "full_name": "Luz Gil", "dateOfBirth": "1980-05-17"}'
    visit = output(
        shell, "visits", "add", "--patient", patient, "--visited-at", "2030-09-28T11:00:00Z", "--doctor",
        '{"externalId": "D-1"}', "--source", "manual",
    )  # fmt: skip
    assert visit["source"] == "manual"
    assert visit["doctor"] == client.doctors.list(external_id="D-1").data[0].id
    luz = client.patients.retrieve(visit["patient"])
    assert (luz.full_name, luz.phone, str(luz.date_of_birth)) == ("Luz Gil", "+5491155550001", "1980-05-17")


def test_intake_requests(shell: Shell, client: FollowUp, ana: Patient) -> None:
    made = client.intake_requests.create(patient={"phone": "+5491155550000"})
    ready = output(
        shell, "intake-requests", "answer", made.id, "--patient", '{"dni": "30.123.456"}', "--coverage",
        '{"insurer": "OSDE", "member_id": "1"}', "--address", "Mitre 1", "--requested-service", "nursing",
        "--contacts", '[{"name": "Eva", "phone": "+54 9 11 5555-0002"}]', "--no-hospitalized",
    )  # fmt: skip
    assert (ready["status"], ready["missing"]) == ("ready", [])
    assert ready["data"]["coverage"] == {"insurer": "OSDE", "memberId": "1"}
    assert ready["data"]["contacts"] == [{"name": "Eva", "phone": "+5491155550002"}]
    assert ready["data"]["hospitalized"] is False
    assert output(shell, "intake-requests", "load", made.id)["status"] == "loaded"
    other = client.intake_requests.create(patient={"phone": "+5491155550003"})
    discarded = output(shell, "intake-requests", "discard", other.id, "--reason", "twice")
    assert (discarded["status"], discarded["discardReason"]) == ("discarded", "twice")


def test_events_of_other_sources(shell: Shell, client: FollowUp, ana: Patient) -> None:
    booking = {"patient": {"phone": "+5491155550000"}, "appointment": {"startAt": START, "externalId": "A-1"}}
    event = json.dumps({"id": "1", "type": "appointment.created", "occurred_at": START, "data": booking})
    stored = output(shell, "events", "receive", "--source", "import", "--event", event)
    assert (stored["source"], stored["status"], stored["data"]) == ("import", "processed", booking)
    assert client.appointments.list(external_id="A-1").data[0].source == "pms"
    failed = shell.run("events", "receive", "--source", "pms", "--event", '{"id": "2", "type": "x", "data": {}}')
    assert failed.returncode == 1
    assert failed.stderr.startswith("followup-mock: event.type: This must be one of ")


def test_settings_of_the_organization(shell: Shell, server: MockServer, client: FollowUp, ana: Patient) -> None:
    client.appointments.create(patient=ana.id, start_at=START)
    output(shell, "organization", "update", "--activated-events", "patient.silent, order.issued", "--language", "en")
    client.webhook_endpoints.create(url="https://clinic.example", enabled_events=["patient.silent"])
    output(shell, "patients", "silence", ana.id)
    assert [each.event_type for each in server.deliveries] == ["patient.silent"]
    client.appointments.create(patient=ana.id, start_at=START)
    assert len(server.reminders) == 4, "omitted settings stay unchanged"
    updated = output(shell, "organization", "update", "--reminder-hours", "", "--service-lines", "follow_up")
    assert updated["serviceLines"] == ["follow_up"]
    client.appointments.create(patient=ana.id, start_at=START)
    assert len(server.reminders) == 4


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (
            ("appointments", "add", "--patient", "pat_x", "--start-at", "2030-01-01"),
            "--start-at must be a time with an offset, such as 2030-05-17T14:30:00-03:00 (Z means UTC)",
        ),
        (
            ("appointments", "add", "--patient", "pat_x", "--start-at", "2030-01-01T09:00:00Z"),
            "--patient: There is no such patient.",
        ),
        (("explain", "\udcff"), "an option or argument has characters that cannot be sent"),
        (("patients", "update", "../patients/pat_x", "--opted-out"), "an id is expected, such as pat_"),
        (("explain", "req_1", "--api-key", ""), "--api-key must not be empty"),
        (("explain", "req_1", "--token", "ñ"), "an option or argument has characters that cannot be sent"),
        (
            ("explain", "req_1", "--url", "clinic"),
            "--url must be the base URL of a mock, such as http://127.0.0.1:4210",
        ),
    ],
)
def test_an_error_names_the_option(shell: Shell, arguments: tuple[str, ...], problem: str) -> None:
    assert shell.error(*arguments).startswith(f"followup-mock: {problem}")


def test_what_stands_for_an_id(shell: Shell, client: FollowUp, ana: Patient) -> None:
    """An external id, a phone in any spelling, the beginning of an id, and an id as a list shortens it."""
    for number in (1, 2):
        client.appointments.create(patient=ana.id, start_at=START, external_id=f"T-{number}", type="check")
    first, second = client.appointments.list().data
    for text in ("+54 9 11 5555-0000", "5555-0000", ana.id[:8], f"{ana.id[:8]}…{ana.id[-4:]}"):
        assert output(shell, "patients", "reply", text)["id"] == ana.id, text
    assert output(shell, "appointments", "confirm", "T-1")["id"] == second.id
    assert len(shell.json("reminders", "--appointment", "T-2")) == 2
    assert shell.json("explain", "T-2") == shell.json("explain", first.id)
    booked = output(shell, "appointments", "add", "--patient", "5555-0000", "--start-at", START)
    assert booked["patient"] == ana.id
    luz = client.patients.create(phone="+5491155550001", external_id="T-2")
    assert output(shell, "patients", "silence", "T-2")["id"] == luz.id, "only patients count"
    ambiguous = shell.error("explain", "T-2")
    assert ambiguous == f"followup-mock: 'T-2' may mean {luz.id} (external id), {first.id} (external id)\n"
    assert shell.error("patients", "reply", "5555-000").startswith("followup-mock: '5555-000' may mean pat_")
    assert (
        shell.run("patients", "reply", f"pat_{'x' * 20}0000").stderr == "followup-mock: ID: There is no such patient.\n"
    )


def test_webhook_faults_and_resends(shell: Shell, server: MockServer, client: FollowUp) -> None:
    client.webhook_endpoints.create(url="https://clinic.example", enabled_events=["*"])
    (fault,) = shell.json("webhook-fault", "late", "--type", "patient.upserted", "--seconds", "60")
    assert (fault["kind"], fault["type"], fault["seconds"]) == ("late", "patient.upserted", 60)
    assert len(shell.json("webhook-fault")) == 1
    (sent,) = shell.json("trigger", "patient.silent")
    assert output(shell, "resend", sent["id"])["status"] == "succeeded"


def test_a_trigger_that_nobody_receives_fails(shell: Shell, client: FollowUp) -> None:
    failed = shell.run("trigger", "patient.silent")
    assert (failed.returncode, failed.stdout) == (1, "")
    assert failed.stderr == (
        "followup-mock: No enabled webhook endpoint is subscribed to patient.silent: create or enable one, "
        "or run followup-mock listen.\n"
    )
    client.webhook_endpoints.create(url="https://clinic.example", enabled_events=["visit.completed"])
    assert "is subscribed to patient.silent" in shell.run("trigger", "patient.silent").stderr
