"""The pages of objects as HTML: headings, fields, related objects."""

import re

from followup import FollowUp

from .html import Views, text_of

ANA = {"phone": "+5491155550001", "full_name": "Ana Díaz"}


def heading(html: str) -> str:
    found = re.search(r"<h1[^>]*>(.*?)</h1>", html, re.DOTALL)
    assert found is not None
    return text_of(found[1]).strip()


def test_the_name_is_the_heading_and_the_own_id_is_no_link(views: Views, client: FollowUp) -> None:
    booked = client.appointments.create(patient=ANA, start_at="2026-10-01T12:00:00Z")  # type: ignore[arg-type]
    patient = views.html(f"patients/{booked.patient}")
    assert heading(patient) == "Ana Díaz"
    assert f">{booked.patient}</code>" in patient
    assert f'href="#/patients/{booked.patient}"' not in patient
    appointment = views.html(f"appointments/{booked.id}")
    assert heading(appointment).startswith("Ana Díaz,")
    visit = client.visits.create(patient=booked.patient, visited_at="2026-09-28T11:00:00Z")
    assert heading(views.html(f"visits/{visit.id}")).startswith("Ana Díaz, 2026-09-28 11:00")
    assert f'href="#/patients/{booked.patient}"' in appointment
    assert f'href="#/appointments/{booked.id}"' not in appointment


def test_empty_fields_are_one_line(views: Views, client: FollowUp) -> None:
    patient = client.patients.create(phone="+5491155550001", full_name="Ana Díaz", external_id="P-1")
    html = views.html(f"patients/{patient.id}")
    assert re.findall(r"<dt>(\w+)</dt>", html) == [
        "externalId", "optedOut", "createdAt", "updatedAt",
    ]  # fmt: skip
    assert "Empty: email, dni, dateOfBirth" in html


def test_a_patient_has_only_tables_with_rows_and_no_column_of_the_patient(views: Views, client: FollowUp) -> None:
    booked = client.appointments.create(patient=ANA, start_at="2026-10-01T12:00:00Z")  # type: ignore[arg-type]
    html = views.html(f"patients/{booked.patient}")
    assert re.findall(r'<caption class="visually-hidden">(.*?)</caption>', html) == ["Appointments"]
    assert ">patient</th>" not in html
    assert (
        "No visits, treatments or intake requests. An API client creates them with visits.create , treatments.create or"
        " intake_requests.create ."
    ) in text_of(html)
