"""The messages to a patient on the patient's phone, and the reminders in the timeline of an appointment."""

import re

from followup import FollowUp
from followup_mockserver import MockService

from .html import Views, short_times, text_of
from .test_timeline import timeline

ANA = {"phone": "+5491155550001", "full_name": "Ana Díaz"}
TEXT = "Hola Ana. Le recordamos su turno del 01/10/2026 a las 14:30 en Clínica de prueba."


def lines_of(html: str, begins: str) -> list[tuple[str, str]]:
    """Return the classes and the texts of the items of a list; times as month, day, hour and minute, UTC."""
    found = html.partition(begins)[2]
    items = re.findall(r'<li class="([^"]*)"[^>]*>(.*?)</li>', re.split("</[ou]l>", found)[0], re.DOTALL)
    return [(classes, text_of(short_times(item))) for classes, item in items]


def phone(views: Views, patient: str) -> list[tuple[str, str]]:
    return lines_of(views.html(f"patients/{patient}"), 'class="number"')


def reminders(views: Views, appointment: str) -> list[str]:
    """Return the entries of reminders in the timeline of an appointment."""
    return [line.text for line in timeline(views, f"appointments/{appointment}") if " reminder " in line.text]


def test_a_message_says_which_reminder_it_is_and_others_messages_are_not_there(
    views: Views, client: FollowUp, service: MockService
) -> None:
    booked = client.appointments.create(patient=ANA, start_at="2026-10-01T17:30:00Z")  # type: ignore[arg-type]
    eva = {"phone": "+5491155550002", "full_name": "Eva Sosa"}
    client.appointments.create(patient=eva, start_at="2026-10-01T17:30:00Z")  # type: ignore[arg-type]
    service.advance(days=2, hours=6)
    assert phone(views, booked.patient) == [
        ("note", "Appointment created : confirmed, 09-28 12:00"),
        ("succeeded", f"{TEXT} sent 09-30 17:30 Reminder 24 h before the start of 10-01 17:30"),
        ("pending", "Reminder 3 h before the start of 10-01 17:30 due 10-01 14:30"),
    ]
    assert views.text(f"patients/{booked.patient}").count(TEXT) == 1, "the timeline does not repeat it"
