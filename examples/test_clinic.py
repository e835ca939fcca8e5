"""The tests of the nightly import and of the receivers. Run them with ``pytest test_clinic.py``."""

import importlib
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from clinic_inbox import DIARY, create_inbox
from sqlalchemy import create_engine, select

from followup import FollowUp
from followup.imports import Import, Report
from followup.outbox import Outbox
from followup_mockserver import MockService

MAP = Path(__file__).parent / "import" / "turnos.toml"
HEADER = "Nro Turno;Fecha;Hora;Estado;Práctica;Profesional;HC;Apellido;Nombre;Documento;Celular"
ANA = "T-1;17/05/2030;{};{};Control;Dra. Ruiz;P-1;Pérez;Ana;30.123.456;{}"
BOOKED = ANA.format("10:00", "Confirmado", "11 15-5555-0000")

Night = Callable[..., Report]


@pytest.fixture
def night(followup_client: FollowUp, tmp_path: Path) -> Night:
    """What the clinic does every night: import the rows of its export, and send what changed."""
    outbox = Outbox(f"sqlite:///{tmp_path / 'outbox.db'}")
    outbox.create_tables()
    job = Import.load(MAP)

    def run(*rows: str) -> Report:
        export = tmp_path / "turnos.csv"
        export.write_text("\n".join([HEADER, *rows]), encoding="cp1252")
        report = job.run(export, outbox)
        outbox.drain(followup_client)
        return report

    return run


def test_a_run_twice_books_once(night: Night, followup_client: FollowUp) -> None:
    night(BOOKED)
    assert night(BOOKED).unchanged == 1
    assert len([*followup_client.appointments.list()]) == 1


def test_another_time_and_a_cancellation_are_sent(night: Night, followup_client: FollowUp) -> None:
    night(BOOKED)
    night(ANA.format("11:30", "Confirmado", "11 15-5555-0000"))
    (moved,) = followup_client.appointments.list()
    assert moved.start_at == datetime(2030, 5, 17, 14, 30, tzinfo=UTC)
    night(ANA.format("11:30", "Anulado", "11 15-5555-0000"))
    assert followup_client.appointments.retrieve(moved.id).status == "cancelled"


def test_an_invalid_row_is_named_and_the_others_are_sent(
    night: Night, followup_client: FollowUp
) -> None:
    others = [
        f"T-{number};17/05/2030;09:00;Confirmado;;;P-{number};;;;11 15-5555-{number:04}"
        for number in range(10, 30)
    ]
    report = night(ANA.format("25:00", "Confirmado", "11 15-5555-0000"), *others)
    assert [(each.row, each.column, each.code) for each in report.doubts] == [
        (2, "Fecha + Hora", "time_format")
    ]
    assert len([*followup_client.appointments.list()]) == 20


def test_a_lost_response_repeats_nothing(
    night: Night, followup_client: FollowUp, followup_service: MockService
) -> None:
    followup_service.add_fault(operation="events.create", kind="disconnect", when="after")
    night(BOOKED)
    night(BOOKED)
    assert len([*followup_client.appointments.list()]) == 1


def test_the_patient_is_reminded(night: Night, followup_service: MockService) -> None:
    night(BOOKED)
    followup_service.advance(to="2030-05-17T12:00:00Z")
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
    night: Night,
) -> None:
    followup_service.mount("https://clinic.example", receiver)
    followup_service.disturb(kind="duplicate", times=2)
    night(BOOKED)
    followup_service.advance()
    assert {delivery.status for delivery in followup_service.deliveries} == {"succeeded"}
    assert handled(tmp_path) == ["patient.upserted", "appointment.created"]


def test_a_forged_event_is_rejected(
    followup_client: FollowUp,
    followup_service: MockService,
    tmp_path: Path,
    receiver: Any,
    night: Night,
) -> None:
    followup_service.mount("https://clinic.example", receiver)
    followup_service.disturb(kind="wrong_signature", times=2)
    night(BOOKED)
    followup_service.advance()
    assert {delivery.last_status_code for delivery in followup_service.deliveries} == {400}
    assert handled(tmp_path) == []
