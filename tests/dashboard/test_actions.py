"""What the pages of objects offer to do, the equal lines of Python, and causes by their names."""

import ast
import inspect
import re
from html import unescape

import httpx
import pytest

from followup import APIStatusError, FollowUp
from followup_mockserver import MockService

from .html import Views

ANA = {"phone": "+5491155550001", "full_name": "Ana Díaz"}


def lines_of_python(views: Views, path: str) -> list[ast.Call]:
    """Return the lines of Python that a page shows, with None for values that are not entered yet."""
    lines = re.findall(r'<p class="python">same as <code>(.*?)</code>', views.html(path))
    calls = [ast.parse(unescape(re.sub("<[^>]*>", "", line)).replace("…", "None"), mode="eval").body for line in lines]
    return [each for each in calls if isinstance(each, ast.Call)]


def test_each_action_has_the_line_of_python_that_does_the_same(views: Views, client: FollowUp) -> None:
    booked = client.appointments.create(patient=ANA, start_at="2026-10-01T12:30:00Z")  # type: ignore[arg-type]
    intake = client.intake_requests.create(patient={"phone": "+5491155550002"})
    expected = {
        f"patients/{booked.patient}": [
            "receive_reply", "report_silence", "hand_off_conversation", "update_patient", "update_patient",
        ],
        f"appointments/{booked.id}": ["confirm_appointment", "reschedule_appointment", "cancel_appointment"],
        f"intake_requests/{intake.id}": ["answer_intake_request", "load_intake_request", "discard_intake_request"],
    }  # fmt: skip
    for path, names in expected.items():
        calls = lines_of_python(views, path)
        assert [ast.unparse(call.func) for call in calls] == [f"followup_service.{name}" for name in names]
        for call, name in zip(calls, names, strict=True):
            assert ast.literal_eval(call.args[0]) == path.partition("/")[2]
            arguments = {each.arg or "": ast.literal_eval(each.value) for each in call.keywords}
            inspect.signature(getattr(MockService, name)).bind(None, "id", **arguments)
    (answer, *_) = lines_of_python(views, f"intake_requests/{intake.id}")
    assert ast.unparse(answer).partition(", ")[2] == (
        "patient={'full_name': None, 'dni': None}, coverage={'insurer': None}, address=None, requested_service=None)"
    )


def test_what_cannot_be_done_is_not_offered(views: Views, client: FollowUp, service: MockService) -> None:
    def offered(path: str) -> list[str]:
        enabled = re.findall(r'<button(?: class="primary")?>([^<]*)</button>', views.html(path))
        return [each for each in enabled if each != "Set stage"]

    booked = client.appointments.create(patient={"dni": "30123456"}, start_at="2026-10-01T12:30:00Z")
    assert offered(f"patients/{booked.patient}") == []
    assert offered(f"appointments/{booked.id}") == ["Move", "Cancel"]
    service.reschedule_appointment(booked.id, start_at="2026-10-01T13:00:00Z")
    assert offered(f"appointments/{booked.id}") == ["Confirm", "Move", "Cancel"]
    client.visits.create(patient=booked.patient, visited_at="2026-09-28T11:00:00Z", appointment=booked.id)
    assert offered(f"appointments/{booked.id}") == ["Cancel"]
    service.cancel_appointment(booked.id)
    assert offered(f"appointments/{booked.id}") == []


def test_causes_have_names(views: Views, client: FollowUp, service: MockService) -> None:
    patient = client.patients.create(**ANA)  # type: ignore[arg-type]
    service.update_patient(patient.id, opted_out=True)
    service.update_patient(patient.id, stage="discharged")
    assert views.link(f"patients/{patient.id}", "test control update_patient") == "history/ctl_1"
    assert "opted out of messages by test control update_patient" in views.text(f"patients/{patient.id}")
    client.webhook_endpoints.create(url="https://clinic.example/hooks", enabled_events=["*"])
    service.report_silence(patient.id)
    assert views.column("outbound_events", "cause") == ["test control report_silence", "patients.create"]
    page = views.link("outbound_events", "patient.silent")
    assert "caused by test control report_silence" in views.text(page)


def test_amber_is_for_what_failed_and_may_still_succeed(views: Views, client: FollowUp, service: MockService) -> None:
    def colours(path: str, text: str) -> set[str]:
        return {*re.findall(rf'class="status ([^"]*)">{text}<', views.html(path))}

    service.mount("https://clinic.example/hooks", lambda _: httpx.Response(500))
    client.webhook_endpoints.create(url="https://clinic.example/hooks", enabled_events=["*"])
    client.patients.create(**ANA)  # type: ignore[arg-type]
    assert colours("webhook_deliveries", "pending") == colours("outbound_events", "1 pending") == {"pending"}
    service.advance()
    assert colours("webhook_deliveries", "pending") == colours("outbound_events", "1 pending") == {"retried"}
    for status in (400, 500):
        service.add_fault(operation="patients.create", kind="status", status=status)
        with pytest.raises(APIStatusError):
            client.patients.create(**ANA)  # type: ignore[arg-type]
        assert colours("overview", str(status)) == colours("calls", f"{status} fault") == {"failed"}
