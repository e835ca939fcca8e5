"""The pages of objects as HTML: headings, fields, related objects."""

import re
from html import unescape

import httpx
import pytest
from support.http import Api

from followup import FollowUp
from followup_mockserver import MockService
from followup_mockserver.transport import InProcessTransport

from .conftest import NOON

ANA = {"phone": "+5491155550001", "full_name": "Ana Díaz"}


@pytest.fixture
def service() -> MockService:
    return MockService(start_time=NOON, rate_limit=0, seed=1)


@pytest.fixture
def api(service: MockService) -> Api:
    return Api(httpx.Client(transport=InProcessTransport(service.app), base_url=service.url), service.api_key)


@pytest.fixture
def client(service: MockService) -> FollowUp:
    return service.client(max_retries=0)


def shown(api: Api, path: str) -> str:
    """Return the main part of a view, with tags."""
    response = api.get(f"/_mock/views/{path}")
    assert response.status_code == 200, response.text
    return unescape(response.text.partition("<main")[2])


def text_of(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", html))


def heading(html: str) -> str:
    found = re.search(r"<h1[^>]*>(.*?)</h1>", html, re.DOTALL)
    assert found is not None
    return text_of(found[1]).strip()


def test_the_name_is_the_heading_and_the_own_id_is_no_link(api: Api, client: FollowUp) -> None:
    booked = client.appointments.create(patient=ANA, start_at="2026-10-01T12:00:00Z")  # type: ignore[arg-type]
    patient = shown(api, f"patients/{booked.patient}")
    assert heading(patient) == "Ana Díaz"
    assert f">{booked.patient}</code>" in patient
    assert f'href="#/patients/{booked.patient}"' not in patient
    appointment = shown(api, f"appointments/{booked.id}")
    assert heading(appointment).startswith("Ana Díaz,")
    assert f'href="#/patients/{booked.patient}"' in appointment
    assert f'href="#/appointments/{booked.id}"' not in appointment


def test_a_patient_without_name_and_phone_has_a_heading(api: Api, client: FollowUp) -> None:
    treatment = client.treatments.create(patient={"dni": "30123456", "phone": "+5491155550002"}, name="ibuprofen")
    assert heading(shown(api, f"patients/{treatment.patient}")) == "+5491155550002"
    assert heading(shown(api, f"treatments/{treatment.id}")) == "ibuprofen"


def test_empty_fields_are_one_line(api: Api, client: FollowUp) -> None:
    patient = client.patients.create(phone="+5491155550001", full_name="Ana Díaz", external_id="P-1")
    html = shown(api, f"patients/{patient.id}")
    assert re.findall(r"<dt>(\w+)</dt>", html) == [
        "fullName", "phone", "externalId", "stage", "optedOut", "createdAt", "updatedAt",
    ]  # fmt: skip
    assert "Empty: email, dni, dateOfBirth" in html


def test_a_patient_has_only_tables_with_rows_and_no_column_of_the_patient(api: Api, client: FollowUp) -> None:
    booked = client.appointments.create(patient=ANA, start_at="2026-10-01T12:00:00Z")  # type: ignore[arg-type]
    html = shown(api, f"patients/{booked.patient}")
    assert re.findall(r'<caption class="visually-hidden">(.*?)</caption>', html) == ["Appointments"]
    assert ">patient</th>" not in html
    assert (
        "No visits, treatments or intake requests. An API client creates them with visits.create , treatments.create or"
        " intake_requests.create ."
    ) in text_of(html)


def test_the_phone_shows_messages_and_no_other_jobs(api: Api, client: FollowUp) -> None:
    booked = client.appointments.create(patient=ANA, start_at="2026-10-01T12:00:00Z")  # type: ignore[arg-type]
    html = shown(api, f"patients/{booked.patient}")
    assert html.count('class="bubble pending"') == 2
    assert "stage scheduled" not in html
