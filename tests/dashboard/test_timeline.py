"""The timeline of objects: what happened, what caused what, what did not happen and why, and what is due."""

import re
from html import unescape
from typing import NamedTuple

import httpx
import pytest

from followup import FollowUp
from followup_mockserver import MockService

from .conftest import HOOKS
from .html import Views, short_times

OTHER = "https://lab.example/in"
ANA = {"phone": "+5491155550001", "full_name": "Ana Díaz"}


@pytest.fixture
def service(service: MockService) -> MockService:
    service.mount(HOOKS, lambda _: httpx.Response(204))
    return service


class Line(NamedTuple):
    """A line of a timeline: how deep it stands, its classes, and its text."""

    depth: int
    classes: str
    text: str


def timeline(views: Views, path: str) -> list[Line]:
    """Return the lines of the timeline of a page. A time is read as month, day, hour and minute, UTC."""
    history = short_times(views.html(path).partition('<section class="history"')[2].partition("</section>")[0])
    lines: list[Line] = []
    items: list[str] = []
    for closing, tag, attributes, text in re.findall(r"<(/?)(\w+)([^>]*)>([^<]*)", history):
        classes = "".join(re.findall(r'class="([^"]*)"', attributes)).strip()
        if tag == "li":
            items = items[:-1] if closing else [*items, classes]
        elif items and not closing and tag in ("p", "summary"):
            lines.append(Line(len(items), tag if tag == "summary" else classes or items[-1], ""))
        if items and lines:
            lines[-1] = lines[-1]._replace(text=lines[-1].text + unescape(text))
    return [line._replace(text=" ".join(line.text.split())) for line in lines]


def shown(lines: list[Line]) -> list[str]:
    """Return the lines as indented text, with the first class of each."""
    return [f"{'  ' * (line.depth - 1)}{line.text} [{line.classes.partition(' ')[0]}]" for line in lines]


def test_a_call_with_all_that_it_caused(views: Views, client: FollowUp, service: MockService) -> None:
    client.webhook_endpoints.create(url=HOOKS, enabled_events=["*"])
    booked = client.appointments.create(patient=ANA, start_at="2026-10-01T17:30:00Z")  # type: ignore[arg-type]
    service.advance(days=2, hours=6)
    assert shown(timeline(views, f"appointments/{booked.id}")) == [
        "09-28 12:00 appointments.create: 200 [succeeded]",
        "  appointment created: confirmed []",
        "    webhook to clinic.example/hooks: delivered (204) [succeeded]",
        "    1 attempt [summary]",
        "      09-28 12:00 attempt 1: 204 [succeeded]",
        "  2 reminders: planned []",
        (
            "09-30 17:30 reminder 24 h before the start of 10-01 17:30: sent"
            " (planned by appointments.create 09-28 12:00) [succeeded]"
        ),
        "Hola Ana. Le recordamos su turno del 01/10/2026 a las 14:30 en Clínica de prueba. [message]",
        "Now [now]",
        (
            "10-01 14:30 reminder 3 h before the start of 10-01 17:30: due (planned by appointments.create 09-28 12:00)"
            " [pending]"
        ),
    ]


def test_webhooks_that_were_not_sent_stand_where_they_would_have_been(views: Views, client: FollowUp) -> None:
    client.webhook_endpoints.create(url=HOOKS, enabled_events=["visit.completed"])
    client.webhook_endpoints.create(url=OTHER, enabled_events=["visit.completed"])
    disabled = client.webhook_endpoints.create(url="https://old.example/hooks", enabled_events=["*"])
    client.webhook_endpoints.update(disabled.id, disabled=True)
    booked = client.appointments.create(patient=ANA, start_at="2026-10-01T17:30:00Z")  # type: ignore[arg-type]
    assert shown(timeline(views, f"appointments/{booked.id}"))[2:4] == [
        "    webhook to old.example/hooks: not sent: the endpoint was disabled [muted]",
        "    2 endpoints: not sent: not subscribed to appointment.created [muted]",
    ]
    client.webhook_endpoints.update(disabled.id, enabled_events=["*"], disabled=False)
    client.patients.update(booked.patient, email="ana@example.com")
    changed = shown(timeline(views, f"patients/{booked.patient}"))
    assert [line for line in changed if "webhook_endpoints" in line] == []


def test_moved_reminders_stand_at_their_former_time(views: Views, client: FollowUp, service: MockService) -> None:
    booked = client.appointments.create(patient=ANA, start_at="2026-10-01T17:30:00Z")  # type: ignore[arg-type]
    service.advance(hours=1)
    client.appointments.update(booked.id, start_at="2026-10-02T17:30:00Z")
    lines = shown(timeline(views, f"appointments/{booked.id}"))
    top = [line.partition(" [")[0] for line in lines if not line.startswith(" ")]
    assert top[:4] == [
        "09-28 12:00 appointments.create: 200",
        "09-28 13:00 appointments.update: 200",
        "Now",
        (
            "09-30 17:30 reminder 24 h before the start of 10-01 17:30: moved: the appointment now starts at"
            " 10-02 17:30 (planned by appointments.create 09-28 12:00, moved by appointments.update 09-28 13:00)"
        ),
    ]
    assert [line[:11] for line in top[4:]] == ["10-01 14:30", "10-01 17:30", "10-02 14:30"]
    update = lines.index("09-28 13:00 appointments.update: 200 [succeeded]")
    assert lines[update + 1] == "  appointment rescheduled: start 10-02 17:30 instead of 10-01 17:30 []"


def test_reminders_that_were_not_sent(views: Views, client: FollowUp, service: MockService) -> None:
    late = client.appointments.create(patient=ANA, start_at="2026-09-28T14:00:00Z")  # type: ignore[arg-type]
    assert "  reminder 24 h before the start: not scheduled: 24 h before the start was already past [muted]" in shown(
        timeline(views, f"appointments/{late.id}")
    )
    booked = client.appointments.create(patient=late.patient, start_at="2026-09-29T14:00:00Z")
    service.update_patient(late.patient, opted_out=True)
    reminder = "09-28 14:00 reminder 24 h before the start of 09-29 14:00"
    planned = "the patient has opted out (planned by appointments.create 09-28 12:00) [muted]"
    page = f"appointments/{booked.id}"
    assert f"{reminder}: will not be sent: {planned}" in shown(timeline(views, page))
    service.advance(hours=3)
    client.appointments.cancel(booked.id)
    lines = "\n".join(shown(timeline(views, page)))
    assert f"{reminder}: not sent: the patient has opted out" in lines
    assert "09-29 11:00 reminder 3 h before the start of 09-29 14:00: cancelled: the appointment" in lines


def test_attempts_unfold_and_the_next_is_due(views: Views, client: FollowUp, service: MockService) -> None:
    responses = iter([500, 500, 204])
    service.mount(HOOKS, lambda _: httpx.Response(next(responses)))
    client.webhook_endpoints.create(url=HOOKS, enabled_events=["patient.upserted"])
    patient = client.patients.create(phone=ANA["phone"], full_name="Ana Díaz")
    webhook = "    webhook to clinic.example/hooks"
    service.advance(minutes=1)
    past = [
        "  patient upserted Ana Díaz: created []",
        f"{webhook}: 500; attempt 3 is due 09-28 12:06 [pending]",
        "    2 attempts [summary]",
        "      09-28 12:00 attempt 1: 500 [failed]",
        "      09-28 12:01 attempt 2: 500 [failed]",
        "Now [now]",
    ]
    path = f"webhook_deliveries/{service.deliveries[0].id}"
    assert shown(timeline(views, path))[1:] == [*past, "09-28 12:06 webhook attempt: due [pending]"]
    client.appointments.create(patient=patient.id, start_at="2026-10-01T17:30:00Z")
    times = [line.text[:11] for line in timeline(views, f"patients/{patient.id}") if line.depth == 1]
    assert times == ["09-28 12:00", "09-28 12:01", "Now", "09-28 12:06", "09-30 17:30", "10-01 14:30"]
    service.advance(minutes=5)
    assert f"{webhook}: delivered after 3 attempts (204) [succeeded]" in shown(timeline(views, path))


def test_a_visit_a_treatment_and_an_intake_request(views: Views, client: FollowUp, service: MockService) -> None:
    visit = client.visits.create(patient=ANA, visited_at="2026-09-28T11:00:00Z")  # type: ignore[arg-type]
    treatment = client.treatments.create(patient=visit.patient, name="ibuprofen", end_date="2026-09-29T00:00:00Z")
    intake = client.intake_requests.create(patient={"phone": "+5491155550002", "full_name": "Eva Sosa"})
    service.advance(days=1)
    assert "  1 message after the visit: planned []" in shown(timeline(views, f"visits/{visit.id}"))
    assert shown(timeline(views, f"treatments/{treatment.id}"))[-1] == (
        "09-29 00:00 end of the treatment: ended (planned by treatments.create 09-28 12:00) []"
    )
    assert "  question for missing data: sent [succeeded]" in shown(timeline(views, f"intake_requests/{intake.id}"))


def test_a_long_timeline_shows_the_newest_hundred_entries(views: Views, client: FollowUp) -> None:
    patient = client.patients.create(phone=ANA["phone"])
    for number in range(110):
        client.patients.update(patient.id, email=f"ana{number}@example.com")
    calls = [line for line in shown(timeline(views, f"patients/{patient.id}")) if "patients.update" in line]
    assert len(calls) == 100
    link = f'<a href="#/patients/{patient.id}?timeline=all">Show 11 earlier entries</a>'
    assert link in views.html(f"patients/{patient.id}")
    assert len([line for line in timeline(views, f"patients/{patient.id}?timeline=all") if line.depth == 1]) == 111


def test_a_run_has_its_jobs_in_groups_in_order_of_time_with_those_that_failed_first(
    views: Views, client: FollowUp, service: MockService
) -> None:
    service.mount(HOOKS, lambda _: httpx.Response(500))
    starts = ("2026-09-29T15:00:00Z", "2026-09-29T12:00:10Z", "2026-09-29T14:00:00Z")
    for number, start in enumerate(starts):
        patient = {"phone": f"+549115555000{number}", "full_name": f"Ana {number}"}
        client.appointments.create(patient=patient, start_at=start)  # type: ignore[arg-type]
    client.webhook_endpoints.create(url=HOOKS, enabled_events=["patient.upserted"])
    client.patients.create(phone="+5491155550009")
    service.advance()  # the first attempt
    service.advance(hours=3)
    html = views.html("history/last_run")
    assert ">Clock advanced<" in html
    assert "1 job ran" in views.html("history/ctl_1"), "an earlier run"
    assert re.findall(r"<h2[^>]*>(.*?)<", html) == [
        "Webhook attempt: 4 failed", "Reminder 24 h before the start: 3 sent"
    ]  # fmt: skip
    rows = [(row["time"], row["patient"], row["start"], row["result"]) for row in views.rows("history/last_run", 1)]
    assert [(time[11:16], about, start[11:16], result) for time, about, start, result in rows] == [
        ("12:00", "Ana 1", "12:00", "sent"), ("14:00", "Ana 2", "14:00", "sent"), ("15:00", "Ana 0", "15:00", "sent")
    ]  # fmt: skip
    attempt = views.rows("history/last_run")[0]
    assert (attempt["about"], attempt["endpoint"]) == ("+5491155550009", "clinic.example/hooks")
    assert attempt["result"] == "500, next attempt 2026-09-28 12:06:00Z"
    about = "about +5491155550009, to clinic.example/hooks"
    assert {row["whom"] for row in views.rows("clock?kind=webhook+attempt")} == {f"patient.upserted {about}"}
    assert about in views.text("overview").partition("Due next")[2]


def test_pages_of_a_job_a_message_and_a_control_call(views: Views, client: FollowUp, service: MockService) -> None:
    booked = client.appointments.create(patient=ANA, start_at="2026-09-29T14:00:00Z")  # type: ignore[arg-type]
    service.update_patient(booked.patient, opted_out=True)
    service.update_patient(booked.patient, opted_out=False)
    service.advance(hours=3)
    control = next(each.id for each in service.explain(booked.patient) if each.outcome == "update_patient")
    job = next(each.id for each in service.explain(booked.id) if each.kind == "reminder")
    for known, heading in (
        (job, "Reminder 24 h before the start"),
        (service.messages[0].id, "Reminder 24 h before the start"),
        (control, "Update_patient"),
    ):
        html = views.html(f"history/{known}")
        assert f">{heading}</h1>" in html
        assert "Ana Díaz" in html
        assert shown(timeline(views, f"history/{known}"))
    sent = service.messages[0]
    assert views.text(f"history/{sent.id}").count(sent.text) == 1, "not below the job, and as an effect of it again"


@pytest.mark.parametrize("id", ["job_999", "ctl_999", "msg_gone", "last_run", "nonsense", "pat_"])
def test_what_the_history_does_not_know_is_not_found(views: Views, client: FollowUp, id: str) -> None:
    patient = client.patients.create(phone=ANA["phone"]).id
    response = views.api.get(f"/_mock/views/history/{patient if id == 'pat_' else id}")
    assert response.status_code == 404
    assert "There is no such job, message or control call." in response.text


def test_the_events_of_a_batch_unfold(views: Views, client: FollowUp, service: MockService) -> None:
    service.mount(OTHER, lambda _: httpx.Response(500))
    client.webhook_endpoints.create(url=HOOKS, enabled_events=["*"])
    client.webhook_endpoints.create(url=OTHER, enabled_events=["appointment.created"])
    batch = client.events.create(
        [
            {
                "id": f"e{day}",
                "type": "appointment.created",
                "data": {"patient": {"phone": ANA["phone"]}, "appointment": {"startAt": f"2026-10-0{day}T17:30:00Z"}},
            }
            for day in (1, 2)
        ]
    )
    service.advance(days=3)
    lines = shown(timeline(views, f"calls/{batch.last_response.request_id}"))
    shown_lines = [line for line in lines if "  reminder" not in line and not line.startswith("      ")]
    assert shown_lines[:6] == [
        "09-28 12:00 events.create: 200 [succeeded]",
        "  inbound event +5491155550001, 10-01 17:30: processed [succeeded]",
        "  2 webhooks delivered, 1 webhook failed, 1 reminder sent, 1 reminder due [summary]",
        "    patient upserted +5491155550001: created []",
        "    appointment created +5491155550001, 10-01 17:30: confirmed []",
        "  inbound event +5491155550001, 10-02 17:30: processed [succeeded]",
    ]
    assert len([line for line in lines if line.startswith("    reminder")]) == 4, "each stands below its event only"
