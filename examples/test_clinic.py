"""The test suite of an imaginary clinic, on the pytest plugin of followup: ``pytest test_clinic.py``."""

import sqlite3
from datetime import timedelta
from pathlib import Path

import pytest
from flask_receiver import create_app
from sync_csv import sync

from followup import FollowUp
from followup_mockserver import MockService

ROW = {
    "patient_id": "P-1",
    "name": "Ana Pérez",
    "phone": "+54 9 11 5555-0000",
    "dni": "30.123.456",
    "appointment_id": "T-1",
    "kind": "check-up",
}


@pytest.fixture
def start(followup_service: MockService) -> str:
    return (followup_service.clock.now + timedelta(days=3)).isoformat()


def test_a_run_twice_books_once(followup_client: FollowUp, start: str) -> None:
    for _ in range(2):
        assert sync(followup_client, [{**ROW, "start": start}]) == (1, [])
    assert len([*followup_client.appointments.list()]) == 1


def test_a_wrong_row_is_named_and_the_others_go_through(followup_client: FollowUp, start: str) -> None:
    rows = [{**ROW, "start": start, "phone": "none"}, {**ROW, "start": start}]
    assert sync(followup_client, rows) == (1, ["line 2: phone: parameter_invalid"])


def test_a_failing_service_loses_nothing(followup_client: FollowUp, followup_service: MockService, start: str) -> None:
    followup_service.add_fault(operation="appointments.create", kind="disconnect", when="after")
    assert sync(followup_client, [{**ROW, "start": start}]) == (1, [])
    assert len([*followup_client.appointments.list()]) == 1


def test_the_patient_is_reminded(followup_client: FollowUp, followup_service: MockService, start: str) -> None:
    sync(followup_client, [{**ROW, "start": start}])
    followup_service.advance(days=3)
    assert [message.kind for message in followup_service.messages] == ["reminder", "reminder"]


def test_events_are_handled_once(
    followup_client: FollowUp, followup_service: MockService, tmp_path: Path, start: str
) -> None:
    endpoint = followup_client.webhook_endpoints.create(url="https://clinic.example/webhooks", enabled_events=["*"])
    receiver = create_app(str(tmp_path / "clinic.sqlite"), endpoint.secret)
    followup_service.mount("https://clinic.example", receiver)
    followup_service.disturb(kind="duplicate", times=2)
    sync(followup_client, [{**ROW, "start": start}])
    followup_service.advance()
    assert {delivery.status for delivery in followup_service.deliveries} == {"succeeded"}

    with sqlite3.connect(tmp_path / "clinic.sqlite") as connection:
        types = [row[0] for row in connection.execute("SELECT type FROM event ORDER BY occurred_at, rowid")]
    assert types == ["patient.upserted", "appointment.created"]
