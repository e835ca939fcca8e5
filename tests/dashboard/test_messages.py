"""The list of messages to patients: what was sent, what is due, and what was not sent, with the reason and cause."""

import re

import pytest

from followup import FollowUp
from followup_mockserver import MockService

from .html import Views, short_times, text_of


@pytest.fixture
def booked(service: MockService, client: FollowUp) -> dict[str, str]:
    """Book appointments of four patients, advance the clock, and return the ids of the patients by name."""
    starts = {"Ana": "2026-09-30T12:00:00Z", "Bruno": "2026-09-30T12:30:00Z", "Carla": "2026-09-30T13:00:00Z"}
    patients = {}
    for number, (name, start) in enumerate({**starts, "Diego": "2026-09-29T00:00:00Z"}.items()):
        patient = {"phone": f"+549115555000{number}", "full_name": name}
        patients[name] = client.appointments.create(patient=patient, start_at=start, external_id=name).patient  # type: ignore[arg-type]
    for each in client.appointments.list(patient=patients["Ana"]):
        client.appointments.update(each.id, start_at="2026-09-30T14:00:00Z")
    for each in client.appointments.list(patient=patients["Carla"]):
        client.appointments.cancel(each.id)
    service.update_patient(patients["Bruno"], opted_out=True)
    service.advance(hours=30)
    return patients


class TestMessages:
    def test_the_tabs_say_what_was_sent_what_is_due_and_what_was_not_and_why(
        self, service: MockService, views: Views, booked: dict[str, str]
    ) -> None:
        assert views.tabs("messages") == {"Sent": 2, "Due": 1, "Not sent": 5}
        sent = views.rows("messages")
        assert [(row["time"], row["patient"], row["kind"], row["text"], row["state"]) for row in sent] == [
            (f"{message.sent_at:%Y-%m-%d %H:%M:%S}Z", name, "reminder", message.text, "sent")
            for message, name in zip(reversed(service.messages), ("Ana", "Diego"), strict=True)
        ]
        assert [(row["time"], row["patient"], row["state"]) for row in views.rows("messages?show=due")] == [
            (f"{each.send_at:%Y-%m-%d %H:%M:%S}Z", "Ana", "due")
            for each in service.reminders
            if each.patient != booked["Bruno"]
        ]
        cancelled = ("Carla", "the appointment was cancelled", "13:00", "cancelled")
        opted_out = ("Bruno", "the patient has opted out", "12:30")
        shown = views.rows("messages?show=not_sent")
        assert [
            (row["patient"], row["reason and cause"].partition(" (")[0], row["appointment"][11:16], row["state"])
            for row in shown
        ] == [
            cancelled, (*opted_out, "will not be sent"), cancelled, (*opted_out, "not sent"),
            ("Diego", "24 h before the start was already past", "00:00", "not scheduled"),
        ]  # fmt: skip
        assert shown[0]["reason and cause"].endswith("( appointments.cancel )"), "not what planned it"
        causes = re.findall(r"\(<a href=\"#/(\w+)", views.html("messages?show=not_sent"))
        assert causes == ["calls", "history", "calls", "history", "calls"], "the test control that opted him out"
        assert views.link("messages", "Ana") == f"patients/{booked['Ana']}"

    def test_filters_and_the_overview_count_the_same(
        self, client: FollowUp, views: Views, booked: dict[str, str]
    ) -> None:
        client.visits.create(patient=booked["Ana"], visited_at="2026-09-29T18:00:00Z")
        assert views.column("messages?show=due&kind=message+after+the+visit", "patient") == ["Ana"]
        assert views.column("messages?show=not_sent&day=2026-09-30", "patient") == ["Carla", "Bruno"]
        assert "Messages to patients 2 sent 2 due, 5 not sent" in views.text("overview")

    def test_an_empty_list_says_what_makes_a_message(self, views: Views) -> None:
        assert "No messages yet." in views.text("messages")


def phone(views: Views, patient: str) -> list[tuple[str, str]]:
    """Return the classes and the texts of the messages on a patient's phone; times as month, day, hour and minute."""
    items = views.html(f"patients/{patient}").partition('class="number"')[2].partition("</ol>")[0]
    found = re.findall(r'<li class="([^"]*)"[^>]*>(.*?)</li>', items, re.DOTALL)
    return [(classes, text_of(short_times(item))) for classes, item in found]


def test_a_message_says_which_reminder_it_is_and_others_messages_are_not_there(
    views: Views, client: FollowUp, service: MockService
) -> None:
    booked = client.appointments.create(
        patient={"phone": "+5491155550001", "full_name": "Ana Díaz"}, start_at="2026-10-01T17:30:00Z"
    )
    eva = {"phone": "+5491155550002", "full_name": "Eva Sosa"}
    client.appointments.create(patient=eva, start_at="2026-10-01T17:30:00Z")
    service.advance(days=2, hours=6)
    text = "Hola Ana. Le recordamos su turno del 01/10/2026 a las 14:30 en Clínica de prueba."
    assert phone(views, booked.patient) == [
        ("note", "Appointment created : confirmed, 09-28 12:00"),
        ("succeeded", f"{text} sent 09-30 17:30 Reminder 24 h before the start of 10-01 17:30"),
        ("pending", "Reminder 3 h before the start of 10-01 17:30 due 10-01 14:30"),
    ]
    assert views.text(f"patients/{booked.patient}").count(text) == 1, "the timeline does not repeat it"
