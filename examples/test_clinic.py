"""The tests of the CSV import and of the receivers. Run them with ``pytest test_clinic.py``."""

import importlib
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from clinic_inbox import DIARY, create_inbox
from sqlalchemy import create_engine, select
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


def test_an_invalid_row_is_named_and_the_others_are_sent(
    followup_client: FollowUp, start: str
) -> None:
    rows = [{**ROW, "start": start, "phone": "none"}, {**ROW, "start": start}]
    assert sync(followup_client, rows) == (1, ["line 2: phone: parameter_invalid"])


def test_a_failing_service_loses_nothing(
    followup_client: FollowUp, followup_service: MockService, start: str
) -> None:
    followup_service.add_fault(operation="appointments.create", kind="disconnect", when="after")
    assert sync(followup_client, [{**ROW, "start": start}]) == (1, [])
    assert len([*followup_client.appointments.list()]) == 1


def test_the_patient_is_reminded(
    followup_client: FollowUp, followup_service: MockService, start: str
) -> None:
    sync(followup_client, [{**ROW, "start": start}])
    followup_service.advance(days=3)
    assert [message.kind for message in followup_service.messages] == ["reminder", "reminder"]


@pytest.fixture(params=["flask", "fastapi", "django"])
def receiver(
    request: pytest.FixtureRequest,
    followup_client: FollowUp,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Any:
    """The clinic's receiver, in each of the frameworks, registered with the service."""
    endpoint = followup_client.webhook_endpoints.create(
        url="https://clinic.example/webhooks", enabled_events=["*"]
    )
    monkeypatch.setenv("FOLLOWUP_WEBHOOK_SECRET", endpoint.secret or "")
    monkeypatch.setenv("FOLLOWUP_DATABASE_URL", f"sqlite:///{tmp_path / 'clinic.db'}")
    module = importlib.import_module(f"{request.param}_receiver")
    if request.param == "django":
        module.inbox.cache_clear()  # that of another test
        return module.application
    return module.create_app()


def handled(folder: Path) -> list[str]:
    """Let the clinic handle its events, and return the types in its diary, oldest event first."""
    url = f"sqlite:///{folder / 'clinic.db'}"
    create_inbox(url).drain()
    engine = create_engine(url)
    with engine.connect() as connection:
        return [*connection.execute(select(DIARY.c.type).order_by(DIARY.c.occurred_at)).scalars()]


def test_events_are_handled_once(
    followup_client: FollowUp,
    followup_service: MockService,
    tmp_path: Path,
    receiver: Any,
    start: str,
) -> None:
    followup_service.mount("https://clinic.example", receiver)
    followup_service.disturb(kind="duplicate", times=2)
    sync(followup_client, [{**ROW, "start": start}])
    followup_service.advance()
    assert {delivery.status for delivery in followup_service.deliveries} == {"succeeded"}
    assert handled(tmp_path) == ["patient.upserted", "appointment.created"]


def test_a_forged_event_is_rejected(
    followup_client: FollowUp,
    followup_service: MockService,
    tmp_path: Path,
    receiver: Any,
    start: str,
) -> None:
    followup_service.mount("https://clinic.example", receiver)
    followup_service.disturb(kind="wrong_signature", times=2)
    sync(followup_client, [{**ROW, "start": start}])
    followup_service.advance()
    assert {delivery.last_status_code for delivery in followup_service.deliveries} == {400}
    assert handled(tmp_path) == []
