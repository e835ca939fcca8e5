"""The demonstration: patients and appointments in, signed webhooks out, and a table of what happened."""

import sys
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from followup import Appointment, FollowUp, FollowUpError, Patient, WebhookEvent
from followup._for_mockserver import visible
from followup.cli.application import Application
from followup_mockserver.cli.demo.receiver import Receiver
from followup_mockserver.cli.demo.rows import BadFile, Row, read_rows
from followup_mockserver.server import MockServer

DEFAULT_FILE = Path(__file__).with_name("clinic.csv")
START_TIME = "2026-12-01T09:00:00Z"
"""The mock's clock stands here, so that the dates of the default file are always ahead."""

SECONDS_TO_WAIT = 10.0
ANNOUNCED: Final = "appointment.created"

app = Application()


def run(arguments: list[str]) -> None:
    """Run ``followup demo`` with these arguments."""
    app(arguments, prog_name="followup demo")


@app.command()
def demo(
    file: Annotated[
        Path, typer.Argument(help="CSV with a header, or a JSON array of objects.", show_default="a small clinic")
    ] = DEFAULT_FILE,
) -> None:
    """Create the patients and appointments of a file in a mock of the service, and receive the signed webhooks.

    Columns: phone and start_at are needed; full_name, dni, email, date_of_birth, external_id, appointment_id, type and
    doctor (your id of one) may be given.
    """
    try:
        rows = read_rows(file)
        with (
            MockServer(start_time=START_TIME, allow_http_webhooks=True, rate_limit=0) as server,
            Receiver() as receiver,
            server.client() as client,
        ):
            complete = _demonstrate(server, client, receiver, rows)
    except (BadFile, ValueError) as error:
        sys.exit(f"followup demo: {visible(str(error))}")
    except FollowUpError as error:
        sys.exit(f"followup demo: the service rejected it: {visible(str(error))}")
    if not complete:
        sys.exit("followup demo: not everything arrived; see the table")


def _demonstrate(server: MockServer, client: FollowUp, receiver: Receiver, rows: list[Row]) -> bool:
    endpoint = client.webhook_endpoints.create(url=receiver.url, enabled_events=[ANNOUNCED, "patient.upserted"])
    receiver.secret = endpoint.secret or ""
    booked = [_book(client, row) for row in rows]
    listed = {appointment.id for appointment in client.appointments.list(limit=2)}
    expected = {appointment.id for _, appointment in booked}
    receiver.wait_for(lambda events: expected <= _announced(events), SECONDS_TO_WAIT)
    announced = _announced([*receiver.events.values()])
    _print_table(booked, listed, announced)
    server.advance(days=14)
    _print_summary(server, receiver)
    return expected <= listed and expected <= announced and not receiver.refused


def _book(client: FollowUp, row: Row) -> tuple[Patient, Appointment]:
    patient = client.patients.create(**row.patient)
    appointment = client.appointments.create(
        patient=patient.id,
        start_at=row.start_at,
        type=row.type,
        external_id=row.appointment_id,
        doctor=None if row.doctor is None else {"external_id": row.doctor},
    )
    return patient, appointment


def _announced(events: list[WebhookEvent]) -> set[str]:
    return {event.ref for event in events if event.type == ANNOUNCED}


def _print_table(booked: list[tuple[Patient, Appointment]], listed: set[str], announced: set[str]) -> None:
    table = Table(title="What happened", title_justify="left")
    for column in ("patient", "phone, normalized", "appointment", "status", "listed back", "webhook verified"):
        table.add_column(column)
    for patient, appointment in booked:
        table.add_row(
            Text(visible(patient.full_name or patient.id)),
            Text(visible(patient.phone or "-")),
            f"{appointment.start_at:%Y-%m-%d %H:%M} UTC",
            appointment.status,
            _mark(appointment.id in listed),
            _mark(appointment.id in announced),
        )
    Console(width=None if sys.stdout.isatty() else 120).print(table)


def _mark(done: bool) -> str:
    return "yes" if done else "NO"


def _print_summary(server: MockServer, receiver: Receiver) -> None:
    sent = len(server.messages)
    Console().print(
        f"{len(receiver.events)} signed webhooks received and verified, {receiver.refused} refused. "
        f"Two weeks later, by moving the mock's clock: {sent} reminders were written to the patients.",
        highlight=False,
        soft_wrap=not sys.stdout.isatty(),
    )
